import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials

private typealias Tag = TestSupport.Tag

@Suite("Incremental stores")
struct IncrementalStoreTests {
    private let server = Server()

    private func venues(_ predicate: NSPredicate? = nil) -> NSFetchRequest<Venue> {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = predicate
        request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: true)]
        return request
    }

    // MARK: - Faults

    @Test
    func `a fetch reads no values, a fault reads them once, and other contexts share them`() throws {
        let stack = try CustomStack.server(server)
        try stack.storeVenues(["a", "b"])
        let second = try CustomStack.server(server)
        _ = server.calls()
        let context = second.context()
        try context.performAndWait {
            let found = try context.fetch(venues())
            expectEqual(server.calls(), [.fetch])
            expect(found.allSatisfy { $0.isFault })
            expect(found[0].name == "a" && found[0].price == 1)
            expectEqual(server.calls(), [.values])
        }
        try second.inContext { other throws in
            try expectEqual(other.fetch(venues())[0].name, "a")
            expectEqual(server.calls(), [.fetch])
        }
    }

    @Test
    func `a request for realised objects reads their values with the fetch`() throws {
        let stack = try CustomStack.server(server)
        let ids = try stack.storeVenues(["a", "b"])
        let second = try CustomStack.server(server)
        _ = server.calls()
        try second.inContext { context throws in
            let request = venues()
            request.returnsObjectsAsFaults = false
            let found = try context.fetch(request)
            expect(found.allSatisfy { !$0.isFault })
            expectEqual(server.calls(), [.fetch, .values, .values])
            server.change { $0.records[second.text(ids[0])]?.poke("price", 40) }
            request.shouldRefreshRefetchedObjects = true
            try expectEqual(context.fetch(request).map(\.price), [2, 40])
        }
    }

    @Test
    func `to-many relationships are read when they are used, a missing to-one with its object`() throws {
        let stack = try CustomStack.server(server)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "a"
            venue.city = City(context: context)
            venue.city?.name = "Porto"
            try context.save()
        }
        server.change { $0.omitsToOne = true }
        let second = try CustomStack.server(server)
        _ = server.calls()
        try second.inContext { context throws in
            let venue = try context.fetch(venues())[0]
            expectEqual(venue.name, "a")
            expectEqual(server.calls(), [.fetch, .values, .toOne, .toOne])
            let city = try require(venue.city)
            expect(city.isFault)
            expectEqual(city.name, "Porto")
            expectEqual(server.calls(), [.values])
            expectEqual(city.venues, [venue])
            expectEqual(server.calls(), [.toMany])
            expectEqual(city.venues.count, 1)
            expectEqual(server.calls(), [])
        }
    }

    @Test
    func `an object that the server has lost shows as missing`() throws {
        let stack = try CustomStack.server(server)
        try stack.storeVenues(["a", "b"])
        let second = try CustomStack.server(server)
        try second.inContext { context throws in
            let found = try context.fetch(venues())
            server.change { $0.records[second.text(found[0].objectID)] = nil }
            let error = expectThrows(CocoaError.self) { try context.existingObject(with: found[0].objectID) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
            expectEqual(found[0].name, nil)
            expectEqual(found[1].name, "b")
        }
    }

    // MARK: - Values

    @Test
    func `values of every type go through a node`() throws {
        let stack = try CustomStack.server(server)
        let date = Date(timeIntervalSinceReferenceDate: 1234.5)
        let code = UUID()
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.distance = 1.5
            venue.createdAt = date
            venue.favorite = true
            venue.rating = Decimal(string: "4.25")
            venue.code = code
            venue.site = URL(string: "https://example.org/a")
            venue.map = Data([1, 2, 3])
            venue.seats = 70_000
            venue.visits = 1 << 40
            venue.score = 0.5
            venue.colour = NSArray(array: ["red"])
            try context.save()
        }
        try CustomStack.server(server).inContext { context throws in
            let venue = try context.fetch(venues())[0]
            expect(venue.distance == 1.5 && venue.createdAt == date && venue.favorite)
            expect(venue.rating == Decimal(string: "4.25") && venue.code == code)
            expect(venue.site?.absoluteString == "https://example.org/a" && venue.map == Data([1, 2, 3]))
            expect(venue.seats == 70_000 && venue.visits == 1 << 40 && venue.score == 0.5)
            expectEqual(venue.colour?.firstObject as? String, "red")
            expect(venue.name == nil && venue.city == nil)
        }
    }

    @Test
    func `references of any text and number come back from URIs as they were`() throws {
        let stack = try CustomStack.server(server)
        let store = try require(stack.coordinator.persistentStores[0] as? ServerStore)
        let entity = try require(stack.coordinator.managedObjectModel.entitiesByName["Venue"])
        var seen: Set<URL> = []
        for text in ["1", "-5", "a/b?c#d e", "'quoted", "p1", "ü", "", "%41"] {
            let id = store.newObjectID(for: entity, referenceObject: text)
            expect(store.newObjectID(for: entity, referenceObject: NSString(string: text)) === id)
            expect(seen.insert(id.uriRepresentation()).inserted)
            let second = try CustomStack.server(server)
            let other = try require(second.coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()))
            let otherStore = try require(second.coordinator.persistentStores[0] as? ServerStore)
            expectEqual(otherStore.referenceObject(for: other) as? String, text)
            expect(store.referenceObject(for: other) is NSNull)
        }
        let number = store.newObjectID(for: entity, referenceObject: 1)
        expect(number !== store.newObjectID(for: entity, referenceObject: "1"))
        expect(number === store.newObjectID(for: entity, referenceObject: NSNumber(value: 1)))
        expectEqual(number.uriRepresentation().lastPathComponent, "p1")
        let useless = store.newObjectID(for: entity, referenceObject: 1.5)
        expect(useless.isTemporaryID)
    }

    @Test
    func `a node answers for its properties and takes new values`() throws {
        let stack = try CustomStack.server(server)
        let id = try stack.storeVenues(["a"])[0]
        let node = NSIncrementalStoreNode(objectID: id, withValues: ["name": "a", "city": NSNull()], version: 3)
        let properties = id.entity.propertiesByName
        expect(node.objectID === id && node.version == 3)
        expectEqual(node.value(for: try require(properties["name"])) as? String, "a")
        expect(node.value(for: try require(properties["city"])) is NSNull)
        expect(node.value(for: try require(properties["price"])) == nil)
        node.update(withValues: ["price": 4], version: 5)
        expectEqual(node.version, 5)
        expect(node.value(for: try require(properties["name"])) == nil)
        expectEqual(node.value(for: try require(properties["price"])) as? Int, 4)
    }

    // MARK: - Saving and versions

    @Test
    func `a save request names inserted, changed and deleted objects, and metadata go with an empty one`() throws {
        let stack = try CustomStack.server(server)
        let ids = try stack.storeVenues(["a", "b"])
        _ = server.calls()
        try stack.inContext { context throws in
            try context.get(ids[0], Venue.self).price = 7
            context.delete(try context.get(ids[1], Venue.self))
            let city = City(context: context)
            city.name = "Porto"
            city.venues = [try context.get(ids[0], Venue.self)]
            try context.save()
            expectEqual(server.calls().filter { $0 == .save || $0 == .ids }, [.ids, .save])
            let texts = server.current.records
            expectEqual(texts.count, 2)
            expectEqual(texts[stack.text(ids[0])]?.version, 2)
            expectEqual(texts[stack.text(city.objectID)]?.links["venues"], [stack.text(ids[0])])
            try context.save()
            expectEqual(server.calls(), [])
        }
        let request = NSSaveChangesRequest(inserted: nil, updated: nil, deleted: nil, locked: nil)
        expectEqual(request.requestType, .saveRequestType)
        expectEqual((request.copy() as? NSSaveChangesRequest)?.insertedObjects, nil)
    }

    @Test
    func `others' changes of a server are found by its versions`() throws {
        let stack = try CustomStack.server(server)
        let id = try stack.storeVenues(["a"])[0]
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.price = 30
            server.change { $0.records[stack.text(id)]?.poke("name", "elsewhere") }
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectMerge)
            expect(venue.price == 30 && venue.name == "a")
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try context.save()
            expect(venue.name == "elsewhere" && venue.price == 30)
        }
        expectEqual(server[stack.text(id)]?.values["price"] as? Int, 30)
        expectEqual(server[stack.text(id)]?.values["name"] as? String, "elsewhere")
    }

    @Test(arguments: [0, 1, UInt64.max])
    func `versions that a server does not count still order what its contexts do`(_ version: UInt64) throws {
        server.change { $0.fixedVersion = version }
        let stack = try CustomStack.server(server)
        let id = try stack.storeVenues(["a"])[0]
        let late = stack.context()
        try late.performAndWait {
            let venue = try late.get(id, Venue.self)
            venue.price = 5
            for price: Int16 in [6, 7] {
                try stack.inContext { context throws in
                    context.stalenessInterval = 0
                    try context.get(id, Venue.self).price = price
                    try context.save()
                }
            }
            let error = expectThrows(CocoaError.self) { try late.save() }
            expectEqual(error?.code, .managedObjectMerge)
            late.rollback()
            late.refresh(venue, mergeChanges: false)
            expectEqual(venue.price, 7)
        }
    }

    @Test
    func `a context that needs fresh values asks the server again`() throws {
        let stack = try CustomStack.server(server)
        let id = try stack.storeVenues(["a"])[0]
        server.change { $0.records[stack.text(id)]?.poke("name", "new") }
        try stack.inContext { context throws in
            try expectEqual(context.get(id, Venue.self).name, "a")
        }
        try stack.inContext { context throws in
            context.stalenessInterval = 0
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.name, "new")
            venue.price = 2
            try context.save()
        }
        expectEqual(server[stack.text(id)]?.version, 3)
    }

    // MARK: - Errors

    @Test(arguments: [Server.Method.fetch, .count, .save, .values, .ids, .metadata])
    func `an error of any method reaches the caller, and the context is as it was`(_ method: Server.Method) throws {
        let stack = try CustomStack.server(server)
        let ids = try stack.storeVenues(["a", "b"])
        let second = try CustomStack.server(server)
        let ours = try require(second.coordinator.managedObjectID(for: ids[0].uriRepresentation().absoluteString))
        let context = second.context()
        try context.performAndWait {
            let changed = try require(try context.existingObject(with: ours) as? Venue)
            changed.price = 9
            let new = City(context: context)
            new.name = "Porto"
            server.change { $0.fails = [method] }
            #expect(throws: ServerDown(method: method)) {
                switch method {
                case .fetch: _ = try context.fetch(venues())
                case .count: _ = try context.count(for: NSFetchRequest<Tag>(entityName: "Tag"))
                case .save, .ids: try context.save()
                case .values: _ = try context.existingObject(with: try second.known(ids[1]))
                default: _ = try CustomStack.server(server)
                }
            }
            expect(context.insertedObjects == [new] && context.updatedObjects == [changed])
            expectEqual(changed.changedValues().keys.sorted(), ["price"])
            server.change { $0.fails = [] }
            try context.save()
            expect(!context.hasChanges)
        }
        expectEqual(server.current.records.count, 3)
    }

    @Test(arguments: [Server.Method.values, .toMany])
    func `an error where nothing can throw is reported`(_ method: Server.Method) throws {
        let stack = try CustomStack.server(server)
        try stack.storeVenues(["a"])
        let second = try CustomStack.server(server)
        let reported = Shared<[String]>([])
        second.coordinator.unreportableErrorHandler = { error, _ in
            let text = "\(error)"
            reported.update { $0.append(text) }
        }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = second.coordinator
        try context.insideQuietly {
            let venue = try context.fetch(venues())[0]
            server.change { $0.fails = [method] }
            expect(venue.tags.isEmpty)
            expect(reported.current.count >= 1)
            server.change { $0.fails = [] }
            context.refresh(venue, mergeChanges: false)
            expectEqual(venue.name, "a")
        }
    }

    @Test(arguments: [Server.Method.values, .toMany, .toOne])
    func `a block in which the store cannot answer fails, and nothing computed from it is saved`(
        _ method: Server.Method
    )
        throws
    {
        let stack = try CustomStack.server(server)
        try stack.storeVenues(["a"])
        try stack.inContext { context throws in
            let venue = try context.fetch(venues())[0]
            venue.city = City(context: context)
            venue.city?.name = "Porto"
            venue.tags = [Tag(context: context)]
            try context.save()
        }
        server.change { $0.omitsToOne = method == .toOne }
        let second = try CustomStack.server(server)
        let context = second.context()
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        expectThrows(ServerDown.self) {
            try context.performAndWait { () throws in
                let venue = try context.fetch(venues())[0]
                if method == .toMany { expectEqual(venue.name, "a") }
                server.change { $0.fails = [method] }
                venue.price = Int16(10 + venue.tags.count) + (venue.city == nil ? 0 : 100)
                venue.price += 1
            }
        }
        server.change { $0.fails = [] }
        try context.performAndWait { () throws in
            let error = try require(expectThrows(CocoaError.self) { try context.save() })
            expectEqual(CoreDataFailure(error), .environment)
            expectEqual(error.userInfo[NSUnderlyingErrorKey] as? ServerDown, ServerDown(method: method))
            context.rollback()
            let venue = try context.fetch(venues())[0]
            expect(venue.name == "a" && venue.price == 1)
            venue.price = Int16(10 + venue.tags.count) + (venue.city == nil ? 0 : 100)
            try context.save()
        }
        try stack.inContext { other throws in
            other.stalenessInterval = 0
            try expectEqual(other.fetch(venues())[0].price, 111)
        }
    }

    @Test func `a fetch that cannot read whether a deleted object exists again throws, and leaves nothing out`() throws
    {
        let stack = try CustomStack.server(server)
        let id = try stack.storeVenues(["a"])[0]
        let context = stack.context()
        try context.insideQuietly {
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.name, "a")
            let records = server.current.records
            server.change { $0.records = [:] }
            for store in stack.coordinator.openStores { store.cache.removeAll() }
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectIDsKey: [id]], into: [context])
            expect(venue.isDeleted)
            server.change { ($0.records, $0.fails) = (records, [.values]) }
            let request = venues()
            request.fetchBatchSize = 2
            expectThrows(ServerDown.self) { _ = try context.fetch(request) }
            server.change { $0.fails = [] }
            try expectEqual(context.fetch(request), [venue])
            expect(!venue.isDeleted && venue.name == "a")
        }
    }

    @Test(arguments: Server.Lie.allCases)
    func `an answer that makes no sense is an error that names the store`(_ lie: Server.Lie) throws {
        let stack = try CustomStack.server(server)
        let other = Server()
        try stack.coordinator.addPersistentStore(
            type: ServerStore.storeType,
            at: other.url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        let id = try stack.storeVenues(["a"])[0]
        let store = stack.coordinator.persistentStores[0]
        let reported = Shared<[CocoaError.Code]>([])
        stack.coordinator.unreportableErrorHandler = { error, _ in
            let code = error.cocoaCode
            reported.update { $0.append(code ?? .coreData) }
        }
        let context = stack.context()
        try context.insideQuietly {
            server.change { $0.lie = lie }
            var error: (any Error)?
            do {
                switch lie {
                case .otherEntity, .otherStore, .temporaryID, .noID, .noArray, .unusableReference:
                    let request = venues()
                    request.affectedStores = [store]
                    _ = try context.fetch(request)
                case .twoCounts: _ = try context.count(for: venues())
                case .otherNode, .wrongType, .wrongDestination:
                    context.stalenessInterval = 0
                    _ = try context.existingObject(with: id)
                case .noCollection: try expect(context.get(id, Venue.self).tags.isEmpty)
                case .fewIDs, .oneIDForAll, .knownID:
                    _ = (Venue(context: context), Venue(context: context))
                    if lie == .knownID { context.delete(try require(context.insertedObjects.first)) }
                    defer { context.rollback() }
                    try context.save()
                }
            } catch let thrown {
                error = thrown
            }
            if lie == .noCollection {
                expectEqual(reported.current, [.persistentStoreOperation])
            } else {
                expectEqual(error?.cocoaCode, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains("ServerStore"), true)
            }
            context.rollback()
            server.change { $0.lie = nil }
            let names = try context.fetch(venues()).map(\.name)
            expectEqual(names, ["a"])
        }
        expectEqual(server.current.records.count, 1)
    }

    @Test
    func `a new object is not given the ID of another entity`() throws {
        let stack = try CustomStack.server(server)
        try stack.inContext { context throws in
            server.change { $0.lie = .otherEntity }
            let venue = Venue(context: context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreOperation)
            expect(venue.objectID.isTemporaryID && venue.isInserted)
        }
    }

    @Test
    func `metadata without a UUID, or none at all, keep the store from being added`() throws {
        precondition(ServerStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        server.change { $0.metadata = [NSStoreUUIDKey: ""] }
        let error = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(type: ServerStore.storeType, at: server.url)
        }
        expectEqual(error?.code, .persistentStoreOpen)
        server.change { $0.metadata = [NSStoreTypeKey: ""] }
        expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(type: ServerStore.storeType, at: server.url)
        }
        NSPersistentStoreCoordinator.registerStoreClass(NSIncrementalStore.self, forStoreType: "Bare")
        defer { NSPersistentStoreCoordinator.registerStoreClass(nil, forStoreType: "Bare") }
        expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(ofType: "Bare", configurationName: nil, at: nil)
        }
        expect(coordinator.persistentStores.isEmpty)
        server.change { $0.metadata = [NSStoreUUIDKey: "mine"] }
        let store = try coordinator.addPersistentStore(type: ServerStore.storeType, at: server.url)
        expectEqual(store.identifier, "mine")
    }

    // MARK: - Registrations

    @Test
    func `a store is notified which objects contexts hold, and when they release them`() throws {
        let stack = try CustomStack.server(server)
        let ids = try stack.storeVenues(["a", "b"])
        expect(server.current.registered.values.allSatisfy { $0 == 0 })
        let first = stack.context()
        let second = stack.context()
        let text = stack.text(ids[0])
        try first.performAndWait { _ = try first.fetch(venues()) }
        expectEqual(server.current.registered[text], 1)
        try second.performAndWait { _ = try second.fetch(venues()) }
        expectEqual(server.current.registered[text], 2)
        first.performAndWait { first.reset() }
        expectEqual(server.current.registered[text], 1)
        try second.performAndWait {
            second.delete(try second.existingObject(with: ids[0]))
            try second.save()
            _ = try second.fetch(venues())
        }
        expectEqual(server.current.registered[text], 0)
        expectEqual(server.current.registered[stack.text(ids[1])], 1)
    }

    // MARK: - Threads

    @Test
    func `a store is used by one thread at a time`() async throws {
        let stack = try CustomStack.server(server)
        try stack.storeVenues(["a", "b", "c"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    let context = stack.context()
                    try await context.perform {
                        for price in 0..<20 {
                            let found = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
                            if number == 0 { found[0].price = Int16(price) }
                            try context.save()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        expectEqual(server.current.mostInside, 1)
    }

    @Test
    func `a store may use the context that asks it, and another one, while it answers`() throws {
        let stack = try CustomStack.server(server)
        try stack.storeVenues(["a"])
        let other = stack.context()
        let nested = Shared<[String?]>([])
        try stack.inContext { context throws in
            let box = UncheckedContext(context)
            server.whenAsked.withLock { hook in
                hook = { method in
                    guard method == .count else { return }
                    for context in [box.context, other] {
                        let names = context.performAndWait {
                            (try? context.fetch(NSFetchRequest<Venue>(entityName: "Venue")))?.map(\.name) ?? []
                        }
                        nested.update { $0 += names }
                    }
                }
            }
            try expectEqual(context.count(for: NSFetchRequest<Venue>(entityName: "Venue")), 1)
        }
        expectEqual(nested.current, ["a", "a"])
    }

    @Test
    func `a call that waits too long for a store throws an error`() throws {
        let stack = try CustomStack.server(server, options: [NSPersistentStoreTimeoutOption: 0.01])
        try stack.storeVenues(["a"])
        let (entered, leave, done) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        server.whenAsked.withLock { hook in
            hook = { method in
                guard method == .count else { return }
                entered.signal()
                leave.wait()
            }
        }
        let slow = stack.context()
        slow.perform {
            _ = try? slow.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
            done.signal()
        }
        entered.wait()
        try stack.inContext { context throws in
            let error = expectThrows(CocoaError.self) { try context.fetch(venues()) }
            expectEqual(error?.code, .persistentStoreTimeout)
            leave.signal()
            done.wait()
            try expectEqual(context.fetch(venues()).count, 1)
        }
    }
}

/// A context that a test passes to a hook on the same thread.
private struct UncheckedContext: @unchecked Sendable {
    // @unchecked Sendable: used inside the context's scope only.
    let context: NSManagedObjectContext
    init(_ context: NSManagedObjectContext) { self.context = context }
}

extension CustomStack {
    /// The server's text for an object of any coordinator.
    fileprivate func text(_ id: NSManagedObjectID) -> String {
        (id.persistentStore as? NSIncrementalStore)?.referenceObject(for: id) as? String ?? "?"
    }

    /// The ID of this coordinator for an ID of another one.
    fileprivate func known(_ id: NSManagedObjectID) throws -> NSManagedObjectID {
        try require(coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()))
    }
}

extension Server.Record {
    /// Changes a value as another client would.
    fileprivate mutating func poke(_ name: String, _ value: any Sendable) {
        values[name] = value
        version += 1
    }
}
