import CoreData
import Expectations
import StrataLocks
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Statements about coordinators, stores and containers")
struct StoreStatementTests {
    @Test(arguments: StoreKind.allCases)
    func `contexts on one coordinator that save at the same time lose nothing (CS-211)`(_ kind: StoreKind) async throws
    {
        let stack = try Stack(kind)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    let context = stack.context("writer \(writer)")
                    for round in 0..<25 {
                        try await context.perform {
                            City(context: context).name = "\(writer)/\(round)"
                            try context.save()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let reader = stack.context()
        let names = try reader.performAndWait { Set(try reader.all(City.self).map(\.name)) }
        expectEqual(names.count, 200)
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that has ended is in the next fetch of any other context (CS-212)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (writer, reader) = (stack.context("writer"), stack.context("reader"))
        for round in 1...20 {
            try await writer.perform {
                City(context: writer).name = "city \(round)"
                try writer.save()
            }
            let count = try await reader.perform { try reader.all(City.self).count }
            expectEqual(count, round)
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `contexts read at once, and one saves meanwhile (CS-213)`() async throws {
        let stack = try Stack(.database, model: GuideModel.make())
        try stack.makeTagsEndless(givingRows: true)
        // Two fetches that never end are inside the store together, while a third context saves and a fourth one
        // reads. A build with small sizes has one such fetch at a time.
        let (readers, reader) = AsyncStream<Int>.makeStream()
        let tasks = (0..<min(2, WorkSize.backgroundReads)).map { number in
            let context = stack.context("reader \(number)")
            return Task {
                try await context.fetch(allTags()) { progress in
                    if progress.expectedRows == nil || progress.completedRows > 0 { reader.yield(number) }
                } _: {
                    $0.count
                }
            }
        }
        var reading: Set<Int> = []
        for await number in readers {
            reading.insert(number)
            if reading.count == tasks.count { break }
        }
        let cityID = try stack.storeCity("Porto")
        try expectEqual(stack.read(cityID, City.self) { $0.name }, "Porto")
        for task in tasks {
            task.cancel()
            await expectThrows(CancellationError.self) { try await task.value }
        }
    }

    @Test func `as many readers as the pool's option says and a writer are inside SQLite at once (CS-213)`() throws {
        let stack = try Stack(
            .sqlite,
            model: GuideModel.make(),
            options: [NSPersistentStoreConnectionPoolMaxSizeKey: 3]
        )
        try stack.storeVenues(3)
        let store = try require(stack.coordinator.persistentStores.first as? SQLiteStore)
        let pool = try store.openFile().pool
        expectEqual(pool.options.maximumReaders, 3)
        // Two readers and the writer are inside SQLite at the same moment: each waits there for the others.
        let meeting = Meeting(3)
        struct Undo: Error {}
        let writer: @Sendable () throws -> Void = {
            try pool.write { connection in
                try connection.execute("DELETE FROM ZVENUE")
                expect(meeting.attend())
                throw Undo()
            }
        }
        let reader: @Sendable () throws -> Void = {
            try pool.read { connection in
                let statement = try connection.statement("SELECT COUNT(*) FROM ZVENUE")
                defer { statement.reset() }
                try expect(statement.step())
                expect(meeting.attend())
            }
        }
        let threads = DispatchGroup()
        for (number, work) in [writer, reader, reader].enumerated() {
            threads.enter()
            Thread {
                defer { threads.leave() }
                if number == 0 {
                    #expect(throws: Undo.self, performing: work)
                } else {
                    #expect(throws: Never.self, performing: work)
                }
            }.start()
        }
        threads.wait()
        try expectEqual(stack.count("Venue"), 3)
    }

    /// A place at which several threads wait for each other.
    private final class Meeting: Sendable {
        private let absent: Locked<Int>
        private let complete = DispatchSemaphore(value: 0)

        init(_ count: Int) { absent = Locked(count) }

        /// Waits until all are there; `false` if that does not happen.
        func attend() -> Bool {
            let isLast = absent.withLock { absent in
                absent -= 1
                return absent == 0
            }
            if !isLast, complete.wait(timeout: .now() + 20) == .timedOut { return false }
            complete.signal()
            return true
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a new object goes to the store that it is assigned to, else to the first that holds its entity (CS-31, 214)`(
        _ kind: StoreKind
    ) throws {
        let parts = try TwoStores(kind)
        let context = parts.context()
        try context.performAndWait {
            let note = parts.insert("Note", [:], context)
            let person = parts.insert("Person", [:], context)
            let (label, assigned) = (parts.insert("Label", [:], context), parts.insert("Label", [:], context))
            context.assign(assigned, to: parts.second)
            try context.obtainPermanentIDs(for: [note, person, label, assigned])
            let stores = [note, person, label, assigned].map(\.objectID.persistentStore)
            expectEqual(stores, [parts.first, parts.second, parts.first, parts.second])
            try context.save()
            expectEqual([note, person, label, assigned].map(\.objectID.persistentStore), stores)
        }
        // A read-only store is passed over.
        parts.first.isReadOnly = true
        let later = parts.context()
        try later.performAndWait {
            let label = parts.insert("Label", [:], later)
            try later.save()
            expect(label.objectID.persistentStore === parts.second)
        }
    }

    @Test func `assigning an object to a store that lacks its entity stops the program (CS-214)`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let parts = try TwoStores(.memory)
            let context = parts.context()
            context.performAndWait { context.assign(parts.insert("Note", [:], context), to: parts.second) }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("cannot hold entity Note"), "\(text)")
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch spans all stores that hold the entity, and a relationship none but one (CS-95, 215)`(
        _ kind: StoreKind
    )
        throws
    {
        let parts = try TwoStores(kind)
        let context = parts.context()
        try context.performAndWait {
            context.assign(parts.insert("Label", ["title": "a"], context), to: parts.second)
            context.assign(parts.insert("Label", ["title": "b"], context), to: parts.first)
            try context.save()
            let request = NSFetchRequest<NSManagedObject>(entityName: "Label")
            request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
            let found = try context.fetch(request)
            expectEqual(found.map(\.objectID.persistentStore), [parts.second, parts.first])
            let note = parts.insert("Note", [:], context)
            note.setValue(parts.insert("Person", [:], context), forKey: "author")
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectExternalRelationship)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the objects of a store that was removed are like faults whose rows have gone (CS-216)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (loadedID, faultID) = (try stack.storeCity("loaded"), try stack.storeCity("fault"))
        let store = try require(stack.coordinator.persistentStores.first)
        let (context, heeding) = (stack.context(), stack.context("heeding"))
        let cities = try context.performAndWait {
            let cities = [try context.get(loadedID, City.self), try context.get(faultID, City.self)]
            expectEqual(cities[0].name, "loaded")
            return cities
        }
        try stack.coordinator.remove(store)
        context.performAndWait {
            expect(cities[1].value(forKey: "name") == nil && cities[1].isDeleted)
            let error = expectThrows(CocoaError.self) { _ = try context.existingObject(with: faultID) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
            context.refresh(cities[0], mergeChanges: false)
            expect(cities[0].value(forKey: "name") == nil)
            expectThrows(CocoaError.self) { _ = try context.fetch(City.fetchRequest()) }
        }
        heeding.performAndWait {
            heeding.shouldDeleteInaccessibleFaults = false
            var told: [NSManagedObjectID] = []
            heeding.inaccessibleFaultHandler = { told.append($0.objectID) }
            expect(heeding.object(with: loadedID).value(forKey: "name") == nil)
            expectEqual(told, [loadedID])
        }
    }

    @Test func `a store is destroyed and replaced in its file, under SQLite's locks (CS-217)`() throws {
        let stack = try Stack(.sqlite)
        _ = try stack.storeCity("old")
        let url = stack.storeURL
        func inode() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: url.path)[.systemFileNumber] as? Int
        }
        let before = try inode()
        let source = try Stack(.sqlite)
        _ = try source.storeCity("new")
        // One connection is reading, and goes on with its version. Another one is writing, and the replacement waits
        // for it.
        let reader = try Connection(path: url.path, access: .readOnly)
        try reader.execute("BEGIN")
        try expectEqual(reader.firstString("SELECT ZNAME FROM ZCITY"), "old")
        let writer = try Connection(path: url.path, access: .readWrite)
        try writer.execute("BEGIN IMMEDIATE")
        try stack.coordinator.remove(try require(stack.coordinator.persistentStores.first))
        let free = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        func replace() throws {
            try free.replacePersistentStore(
                at: url,
                destinationOptions: [NSPersistentStoreTimeoutOption: 1],
                withPersistentStoreFrom: source.storeURL,
                type: .sqlite
            )
        }
        let error = expectThrows(CocoaError.self) { try replace() }
        expectEqual(error?.code, .persistentStoreTimeout)
        try writer.execute("COMMIT")
        writer.close()
        try replace()
        try expectEqual(reader.firstString("SELECT ZNAME FROM ZCITY"), "old")
        try reader.execute("COMMIT")
        try expectEqual(reader.firstString("SELECT ZNAME FROM ZCITY"), "new")
        try expectEqual(inode(), before)
        let opened = try free.addPersistentStore(type: .sqlite, at: url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = free
        try expectEqual(context.performAndWait { try context.all(City.self).map(\.name) }, ["new"])
        try free.remove(opened)
        try free.destroyPersistentStore(at: url, type: .sqlite)
        try expectEqual(inode(), before)
    }

    @Test func `a model with other hashes is refused with 134100, unless versioning is ignored by option (CS-218)`()
        throws
    {
        let stack = try Stack(.database)
        _ = try stack.storeCity("Porto")
        func other() throws -> NSPersistentStoreCoordinator {
            let model = GuideModel.make()
            try require(model.entitiesByName["City"]).versionHashModifier = "2"
            return NSPersistentStoreCoordinator(managedObjectModel: model)
        }
        let error = expectThrows(CocoaError.self) {
            try other().addPersistentStore(type: stack.kind.type, at: stack.storeURL)
        }
        expectEqual(error?.code.rawValue, 134100)
        let lenient = try other()
        try lenient.addPersistentStore(
            type: stack.kind.type,
            at: stack.storeURL,
            options: [NSIgnorePersistentStoreVersioningOption: true]
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = lenient
        try expectEqual(context.performAndWait { try context.all(City.self).map(\.name) }, ["Porto"])
    }

    @Test func `a store of another type is refused (CS-219)`() throws {
        let folder = try ScratchFolder()
        let url = folder.file("letter.sqlite")
        try Data(repeating: 65, count: 5000).write(to: url)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        expectThrows(CocoaError.self) { try coordinator.addPersistentStore(type: .sqlite, at: url) }
        let stack = try Stack(.sqlite)
        let types: [(String, CocoaError.Code)] = [
            (NSBinaryStoreType, .persistentStoreTypeMismatch), (NSXMLStoreType, .persistentStoreInvalidType),
        ]
        for (type, code) in types {
            let error = expectThrows(CocoaError.self) {
                try coordinator.addPersistentStore(ofType: type, configurationName: nil, at: stack.storeURL)
            }
            expectEqual(error?.code, code)
        }
        expect(coordinator.persistentStores.isEmpty)
        try expectEqual(Data(contentsOf: url).count, 5000)
    }

    @Test func `a store at the null device is a private database in memory with constraints and batches (CS-224)`()
        throws
    {
        let coordinators = try (0..<2).map { _ in
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            try coordinator.addPersistentStore(type: .sqlite, at: URL(fileURLWithPath: "/dev/null"))
            return coordinator
        }
        let contexts = coordinators.map { coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return context
        }
        try contexts[0].performAndWait {
            User(context: contexts[0]).email = "a@b"
            try contexts[0].save()
            User(context: contexts[0]).email = "a@b"
            try expectEqual(contexts[0].constraintConflictsOfSave().count, 1)
            contexts[0].rollback()
            let insert = NSBatchInsertRequest(entityName: "User", objects: [["email": "c@d"], ["email": "e@f"]])
            try contexts[0].execute(insert)
            let others = NSFetchRequest<User>(entityName: "User")
            others.predicate = NSPredicate(format: "email != 'c@d'")
            try contexts[0].execute(NSBatchDeleteRequest(fetchRequest: others))
            try expectEqual(contexts[0].all(User.self).map(\.email), ["c@d"])
        }
        try expectEqual(contexts[1].performAndWait { try contexts[1].all(User.self).count }, 0)
    }
}
