import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Batches and stores")
struct BatchStoresTests {
    /// A coordinator with two stores of the guide model.
    private func twoStores(_ kind: StoreKind) throws -> (Stack, NSPersistentStore, NSPersistentStore) {
        let stack = try Stack(kind)
        let second = try stack.coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: stack.folder.appendingPathComponent("second.sqlite")
        )
        let context = stack.context()
        try context.performAndWait {
            for (number, store) in stack.coordinator.persistentStores.enumerated() {
                let venue = Venue(context: context)
                venue.name = "in \(number)"
                context.assign(venue, to: store)
                let user = User(context: context)
                user.email = "same"
                context.assign(user, to: store)
            }
            try context.save()
        }
        return (stack, stack.coordinator.persistentStores[0], second)
    }

    @Test(arguments: StoreKind.allCases)
    func `a request runs in all stores, or in those that it names (CS-175)`(_ kind: StoreKind) throws {
        let (stack, first, second) = try twoStores(kind)
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.propertiesToUpdate = ["price": 1]
        request.resultType = .updatedObjectsCountResultType
        try expectEqual(stack.execute(request).value as? Int, 2)
        request.affectedStores = [second]
        request.propertiesToUpdate = ["price": 2]
        try expectEqual(stack.execute(request).value as? Int, 1)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["in 0 1", "in 1 2"])
        let insert = NSBatchInsertRequest(entityName: "Venue", objects: [["name": "new"]])
        try stack.execute(insert)
        insert.affectedStores = [second]
        insert.resultType = .objectIDs
        let ids = try stack.execute(insert).value as? [NSManagedObjectID]
        expect(ids?.first?.persistentStore === second)
        let delete = NSBatchDeleteRequest("Venue")
        delete.affectedStores = [first]
        delete.resultType = .resultTypeCount
        try expectEqual(stack.execute(delete).value as? Int, 2)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["in 1 2", "new 0"])
        delete.affectedStores = []
        try expectEqual(stack.execute(delete).value as? Int, 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `what fails in one store is not undone in another (CS-175)`(_ kind: StoreKind) throws {
        let (stack, _, second) = try twoStores(kind)
        let context = stack.context()
        try context.performAndWait {
            let user = User(context: context)
            user.email = "other"
            context.assign(user, to: second)
            try context.save()
        }
        let request = NSBatchUpdateRequest(entityName: "User")
        request.propertiesToUpdate = ["email": "clash"]
        expectThrows(CocoaError.self) { try stack.execute(request) }
        try expectEqual(stack.all(User.self) { $0.email }, ["clash", "other", "same"])
    }

    @Test(arguments: StoreKind.allCases)
    func `the error reports what changed in stores before, in a form that contexts merge (CS-175)`(_ kind: StoreKind)
        throws
    {
        let (stack, first, second) = try twoStores(kind)
        let reader = stack.context("reader")
        let (user, id) = try reader.performAndWait {
            let other = User(context: reader)
            other.email = "other"
            reader.assign(other, to: second)
            try reader.save()
            let fetch = NSFetchRequest<User>(entityName: "User")
            fetch.affectedStores = [first]
            let user = try require(try reader.fetch(fetch).first)
            expectEqual(user.email, "same")
            return (UncheckedSendable(user), user.objectID)
        }
        let request = NSBatchUpdateRequest(entityName: "User")
        request.propertiesToUpdate = ["email": "clash"]
        request.resultType = .updatedObjectIDsResultType
        let refusal = expectThrows(CocoaError.self) { try stack.execute(request) }
        let error = try require(refusal)
        expectEqual(error.code, .managedObjectConstraintMerge)
        expectEqual(error.userInfo[NSBatchChangedStoresErrorKey] as? [NSPersistentStore], [first])
        let ids = error.userInfo[NSUpdatedObjectsKey] as? [NSManagedObjectID]
        expectEqual(ids, [id])
        expect(error.userInfo[NSInsertedObjectsKey] == nil && error.userInfo[NSDeletedObjectsKey] == nil)
        reader.performAndWait { expectEqual(user.value.email, "same") }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: error.userInfo, into: [reader])
        reader.performAndWait { expectEqual(user.value.email, "clash") }
    }

    @Test
    func `for rows that are not listed the error names only the stores, and nothing if none changed`() throws {
        let (stack, first, second) = try twoStores(.database)
        let context = stack.context()
        try context.performAndWait {
            let user = User(context: context)
            user.email = "other"
            context.assign(user, to: second)
            try context.save()
        }
        let request = NSBatchUpdateRequest(entityName: "User")
        request.propertiesToUpdate = ["email": "clash"]
        let refusal = expectThrows(CocoaError.self) { try stack.execute(request) }
        let error = try require(refusal)
        expectEqual(error.userInfo[NSBatchChangedStoresErrorKey] as? [NSPersistentStore], [first])
        // A server works out unique values row by row, and so lists the rows.
        expectEqual(error.userInfo[NSUpdatedObjectsKey] == nil, stack.kind == .sqlite)
        request.affectedStores = [second]
        let alone = expectThrows(CocoaError.self) { try stack.execute(request) }
        expect(alone?.userInfo[NSBatchChangedStoresErrorKey] == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `beside a store that takes no batches nothing is changed`(_ kind: StoreKind) throws {
        expect(PlainAtomicStore.isRegistered)
        let stack = try Stack(kind)
        _ = try stack.storeCity("Porto")
        let url = stack.folder.appendingPathComponent("plain")
        let plain = try stack.coordinator.addPersistentStore(type: PlainAtomicStore.storeType, at: url)
        let request = NSBatchUpdateRequest(entityName: "City")
        request.propertiesToUpdate = ["name": "changed"]
        let refusal = expectThrows(CocoaError.self) { try stack.execute(request) }
        let error = try require(refusal)
        expectEqual(error.code, .persistentStoreUnsupportedRequestType)
        expect(error.localizedDescription.contains("NSBatchUpdateRequest"))
        expectEqual(error.userInfo[NSAffectedStoresErrorKey] as? [NSPersistentStore], [plain])
        try expectEqual(stack.all(City.self) { $0.name }, ["Porto"])
        request.affectedStores = [stack.coordinator.persistentStores[0]]
        try stack.execute(request)
        try expectEqual(stack.all(City.self) { $0.name }, ["changed"])
    }

    @Test
    func `an error of a custom store keeps its domain and code, and names the stores before it`() throws {
        expect(BatchServerStore.isRegistered)
        let stack = try Stack(.memory)
        let city = try stack.storeCity("Porto")
        let store = try stack.coordinator.addPersistentStore(
            type: BatchServerStore.storeType,
            at: URL(fileURLWithPath: "/batch/\(UUID().uuidString)")
        )
        let server = try require(store as? BatchServerStore)
        server.answer.withLock { $0 = .failure }
        let request = NSBatchUpdateRequest(entityName: "City")
        request.propertiesToUpdate = ["name": "changed"]
        request.resultType = .updatedObjectIDsResultType
        let thrown = #expect(throws: (any Error).self) { try stack.execute(request) }
        let (error, plain) = (try require(thrown) as NSError, ServerFailure() as NSError)
        expect(error.domain == plain.domain && error.code == plain.code)
        expect(error.userInfo[NSUnderlyingErrorKey] is ServerFailure)
        expectEqual(error.userInfo[NSUpdatedObjectsKey] as? [NSManagedObjectID], [city])
        try expectEqual(require(error.userInfo[NSBatchChangedStoresErrorKey] as? [NSPersistentStore]).count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a relationship into another store is refused`(_ kind: StoreKind) throws {
        let (stack, first, second) = try twoStores(kind)
        let context = stack.context()
        let city = try context.performAndWait {
            let city = City(context: context)
            city.name = "second"
            context.assign(city, to: second)
            try context.save()
            return city.objectID
        }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.propertiesToUpdate = ["city": city]
        let error = expectThrows(CocoaError.self) { try stack.execute(request) }
        expectEqual(error?.code, .managedObjectExternalRelationship)
        request.affectedStores = [second]
        try stack.execute(request)
        let insert = NSBatchInsertRequest(entityName: "Venue", objects: [["city": city]])
        insert.affectedStores = [first]
        expectThrows(CocoaError.self) { try stack.execute(insert) }
        try expectEqual(stack.read(city, City.self) { $0.venues.count }, 1)
    }

    @Test
    func `a store that is read-only is refused before anything is written`() throws {
        let stack = try Stack(.database)
        try stack.storeNumberedVenues(1)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(type: .inMemory, configuration: nil, at: URL(fileURLWithPath: "/dev/null"))
        try coordinator.addPersistentStore(
            type: stack.kind.type,
            configuration: nil,
            at: stack.storeURL,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: [["name": "memory"]]))
            let error = expectThrows(CocoaError.self) { try context.execute(NSBatchDeleteRequest("Venue")) }
            expectEqual(error?.localizedDescription.contains("read-only"), true)
            try expectEqual(context.count(for: NSFetchRequest<Venue>(entityName: "Venue")), 2)
        }
    }

    // MARK: - Custom stores

    @Test
    func `a store that takes no batches refuses them, and says so (CS-173)`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        expect(PlainAtomicStore.isRegistered && BatchServerStore.isRegistered)
        for type in [PlainAtomicStore.storeType, BatchServerStore.storeType] {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            try coordinator.addPersistentStore(type: type, at: folder.appendingPathComponent(type.rawValue))
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            context.performAndWait {
                let error = expectThrows(CocoaError.self) {
                    try context.execute(NSBatchInsertRequest(entityName: "City", objects: []))
                }
                expectEqual(error?.code, .persistentStoreUnsupportedRequestType)
                expectEqual(error?.localizedDescription.contains("NSBatchInsertRequest"), true)
            }
        }
    }

    @Test
    func `an incremental store is handed the request itself, and its answer is the result`() throws {
        expect(BatchServerStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(
            type: BatchServerStore.storeType,
            at: URL(fileURLWithPath: "/batch/\(UUID().uuidString)")
        )
        let server = try require(store as? BatchServerStore)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let request = NSBatchUpdateRequest(entityName: "City")
            request.propertiesToUpdate = ["name": "x"]
            server.answer.withLock { $0 = .count(3) }
            expectEqual((try context.execute(request) as? NSBatchUpdateResult)?.result as? Bool, true)
            request.resultType = .updatedObjectsCountResultType
            expectEqual((try context.execute(request) as? NSBatchUpdateResult)?.result as? Int, 3)
            request.resultType = .updatedObjectIDsResultType
            expectThrows(CocoaError.self) { try context.execute(request) }
            server.answer.withLock { $0 = .ids }
            let ids = (try context.execute(request) as? NSBatchUpdateResult)?.result as? [NSManagedObjectID]
            expectEqual(ids?.map { "\(server.referenceObject(for: $0))" }, ["porto"])
            server.answer.withLock { $0 = .failure }
            expectThrows(ServerFailure.self) { try context.execute(request) }
            expect(server.asked.withLock { $0 }.allSatisfy { $0 == "NSBatchUpdateRequest" })
        }
    }

    @Test
    func `a window over several incremental stores gives each its part, and no request to a store without a part`()
        throws
    {
        expect(BatchServerStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let servers = try (0..<2).map { _ in
            let url = URL(fileURLWithPath: "/batch/\(UUID().uuidString)")
            let store = try coordinator.addPersistentStore(type: BatchServerStore.storeType, at: url)
            return try require(store as? BatchServerStore)
        }
        for server in servers { server.answer.withLock { $0 = .ids } }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let fetch = NSFetchRequest<City>(entityName: "City")
            fetch.fetchLimit = 1
            let request = NSBatchDeleteRequest(fetchRequest: fetch)
            request.resultType = .resultTypeObjectIDs
            let ids = (try context.execute(request) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID]
            expectEqual(ids?.map(\.persistentStore), [servers[0]])
            let asked = servers.map { server in server.asked.withLock { $0.map { String($0.prefix { $0 != "<" }) } } }
            expectEqual(asked, [["NSFetchRequest", "NSBatchDeleteRequest"], ["NSFetchRequest"]])
        }
    }
}

private struct ServerFailure: Error {}

/// A store that answers batches with the answer that a test has set.
private final class BatchServerStore: NSIncrementalStore, @unchecked Sendable {
    // @unchecked Sendable: a lock guards all state.

    enum Answer {
        case nothing, count(Int), ids, failure
    }

    static let storeType = NSPersistentStore.StoreType(rawValue: "BatchServer")
    static let isRegistered: Bool = {
        NSPersistentStoreCoordinator.registerStoreClass(BatchServerStore.self, type: storeType)
        return true
    }()

    let answer = Locked(Answer.nothing)
    let asked = Locked<[String]>([])

    override var type: String { Self.storeType.rawValue }

    override func loadMetadata() throws {
        metadata = [NSStoreTypeKey: type, NSStoreUUIDKey: UUID().uuidString]
    }

    override func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext?) throws -> Any {
        asked.withLock { $0.append("\(Swift.type(of: request))") }
        switch answer.withLock({ $0 }) {
        // A store that does not know the request answers like this.
        case .nothing: return NSNull()
        case .count(let count): return NSNumber(value: count)
        case .ids:
            let city = persistentStoreCoordinator?.managedObjectModel.entitiesByName["City"]
            return city.map { [newObjectID(for: $0, referenceObject: "porto")] } ?? []
        case .failure: throw ServerFailure()
        }
    }
}

/// An atomic store without objects.
private final class PlainAtomicStore: NSAtomicStore, @unchecked Sendable {
    // @unchecked Sendable: nothing is here.

    static let storeType = NSPersistentStore.StoreType(rawValue: "PlainAtomic")
    static let isRegistered: Bool = {
        NSPersistentStoreCoordinator.registerStoreClass(PlainAtomicStore.self, type: storeType)
        return true
    }()

    override var type: String { Self.storeType.rawValue }

    override func load() throws { metadata = [NSStoreTypeKey: type, NSStoreUUIDKey: UUID().uuidString] }
    override func save() throws {}
}
