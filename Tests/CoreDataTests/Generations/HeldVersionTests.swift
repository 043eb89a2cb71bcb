import CoreData
import Expectations
import Foundation
import StrataLocks
import Synchronization
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// The costs of a held version, and the time of its release.
@Suite("Pinned contexts: held versions")
struct HeldVersionTests {
    /// The guide model, which keeps maps of venues in separate files.
    private func modelWithExternalMaps() throws -> NSManagedObjectModel {
        let model = GuideModel.make()
        let map = try require(model.entitiesByName["Venue"]?.attributesByName["map"])
        map.allowsExternalBinaryDataStorage = true
        return model
    }

    @Test func `unpinned, reset to nil or gone, a context lets go of its version`() async throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        var context: NSManagedObjectContext? = try stack.pinnedContext()
        try expect(!stack.isQuiet())
        try context?.inside { () throws in try context?.setQueryGenerationFrom(nil) }
        try await expect(stack.becomesQuiet())
        try context?.inside { () throws in
            try context?.setQueryGenerationFrom(.current)
            _ = try context?.storedCityNames()
        }
        try expect(!stack.isQuiet())
        var token = context?.performAndWait { context?.queryGenerationToken }
        context = nil
        try expect(!stack.isQuiet())
        expect(token != nil)
        token = nil
        try await expect(stack.becomesQuiet())
        if stack.kind == .sqlite { try expectEqual(stack.pool.snapshotCount.value, 0) }
    }

    @Test func `a save lets go of the version before it`() throws {
        let stack = try Stack(.sqlite)
        let context = try stack.pinnedContext()
        for _ in 1...40 {
            try context.inside { () throws in
                City(context: context).name = "A"
                try context.save()
            }
            try expectEqual(stack.pool.snapshotCount.value, 1)
        }
    }

    @Test func `too many versions are an error of the first read, which ends when one is let go of`() throws {
        let stack = try Stack(.sqlite)
        let limit = try stack.pool.options.maximumSnapshots
        var contexts = try (1...limit).map { number in
            let context = try stack.pinnedContext("\(number)")
            _ = try stack.storeCity("new")
            return context
        }
        let late = stack.context("late")
        let reported = Locked(0)
        stack.coordinator.unreportableErrorHandler = { _, _ in reported.withLock { $0 += 1 } }
        try late.insideQuietly {
            try late.setQueryGenerationFrom(.current)
            let error = expectThrows(CocoaError.self) { try late.storedCityNames() }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("\(limit) snapshots"), true)
            // Reading a fault cannot throw, so the error is reported.
            let id = try stack.storeCity("A")
            try expectEqual(late.get(id, City.self).name, "")
        }
        expect(reported.withLock { $0 } > 0)
        contexts.removeLast()
        let names = ["A"] + Array(repeating: "new", count: limit)
        try late.inside { () throws in try expectEqual(late.storedCityNames(), names) }
        // Any number of contexts can share one version.
        let token = late.performAndWait { late.queryGenerationToken }
        for number in 1...2 * limit {
            let context = stack.context("sharing \(number)")
            try context.inside { () throws in
                try context.setQueryGenerationFrom(token)
                try expectEqual(context.storedCityNames(), names)
            }
            contexts.append(context)
        }
        // Contexts without the version's token share it too, even if no connection is left.
        for number in 1...2 * limit { contexts.append(try stack.pinnedContext("newest \(number)")) }
        for context in contexts.suffix(2 * limit) {
            try context.inside { () throws in try expectEqual(context.storedCityNames(), names) }
        }
    }

    @Test func `contexts that are pinned to the newest share connections as long as there is no commit`() throws {
        let stack = try Stack(.sqlite)
        _ = try stack.storeCity("A")
        let pool = try stack.pool
        var count: Int { pool.snapshotCount.value }
        let limit = pool.options.connectionsPerVersion
        var contexts = try (1...limit + 20).map { try stack.pinnedContext("\($0)") }
        expectEqual(count, limit)
        // One commit comes from this coordinator, and the next from another one, which stands for another process.
        _ = try stack.storeCity("B")
        contexts.append(try stack.pinnedContext("after B"))
        expectEqual(count, limit + 1)
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()
        try other.inside { () throws in
            other.makeCity("C")
            try other.save()
        }
        contexts.append(try stack.pinnedContext("after C"))
        expectEqual(count, limit + 2)
        let seen = try contexts.map { context in try context.inside { () throws in try context.storedCityNames() } }
        expect(seen.dropLast(2).allSatisfy { $0 == ["A"] })
        expectEqual(seen.suffix(2).map { $0 }, [["A", "B"], ["A", "B", "C"]])
        contexts.removeFirst(limit + 19)
        expectEqual(count, 3)
        contexts = []
        expectEqual(count, 0)
    }

    @Test func `data in a file that another process has removed is an error for a pinned context, and never nil`()
        async throws
    {
        let stack = try Stack(.sqlite, model: modelWithExternalMaps())
        let id = try stack.store(Venue.self) { venue, _ in venue.map = Data(repeating: 1, count: 200_000) }
        _ = try stack.store(Venue.self) { venue, _ in venue.map = Data(repeating: 1, count: 200_000) }
        let pinned = try stack.pinnedContext()
        var loop = stack.context().rows(for: NSFetchRequest<Venue>(entityName: "Venue"), batchSize: 1)
            .makeAsyncIterator()
        try await expectEqual(loop.next()?.count, 1)
        let external = try stack.externalFiles
        let old = external.names()
        let new = Data(repeating: 2, count: 200_000)
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator(model: try modelWithExternalMaps())
        try other.inside { () throws in
            for venue in try other.fetch(NSFetchRequest<Venue>(entityName: "Venue")) { venue.map = new }
            try other.save()
        }
        // Another process, which does not know the versions held here, would do the same.
        for name in old { external.remove(name) }
        let reported = Locked<[CocoaError]>([])
        stack.coordinator.unreportableErrorHandler = { error, _ in
            reported.withLock { $0 += [error as? CocoaError].compactMap { $0 } }
        }
        try pinned.insideQuietly {
            let error = expectThrows(CocoaError.self) {
                try pinned.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("external data file"), true)
            // Reading a fault cannot throw, so the object stays a fault.
            let venue: Venue = try typed(pinned.object(with: id))
            _ = venue.map
            expect(venue.isFault && reported.withLock { $0.last?.code } == .persistentStoreOperation)
            try expectEqual(pinned.count(for: NSFetchRequest<Venue>(entityName: "Venue")), 2)
            try pinned.setQueryGenerationFrom(.current)
            expectEqual(venue.map, new)
        }
        await expectThrows(CocoaError.self) { try await loop.next() }
    }

    @Test func `a store that was added later is not seen, and a fetch from a removed one throws (CS-183)`() throws {
        let (folder, kind) = (try ScratchFolder(), StoreKind.database)
        defer { for name in ["first.sqlite", "second.sqlite"] { DatabaseTexts.drop(folder.file(name)) } }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        func add(_ name: String) throws -> NSPersistentStore {
            try coordinator.addPersistentStore(type: kind.type, configuration: nil, at: folder.file(name), options: nil)
        }
        func context() -> NSManagedObjectContext {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return context
        }
        let first = try add("first.sqlite")
        let writer = context()
        try writer.inside { () throws in
            City(context: writer).name = "A"
            try writer.save()
        }
        let pinned = context()
        try pinned.inside { () throws in
            try pinned.setQueryGenerationFrom(.current)
            try expectEqual(pinned.storedCityNames(), ["A"])
        }
        let second = try add("second.sqlite")
        let id = try writer.inside { () throws in
            let city = City(context: writer)
            city.name = "B"
            writer.assign(city, to: second)
            try writer.save()
            return city.objectID
        }
        try pinned.inside { () throws in
            try expectEqual(pinned.storedCityNames(), ["A"])
            expectThrows(CocoaError.self) { try pinned.existingObject(with: id) }
            try pinned.setQueryGenerationFrom(.current)
            try expectEqual(pinned.storedCityNames(), ["A", "B"])
        }
        try coordinator.remove(first)
        // No file of the removed store stays open.
        expect(!FileManager.default.fileExists(atPath: folder.file("first.sqlite-wal").path))
        try pinned.inside { () throws in
            let error = expectThrows(CocoaError.self) { try pinned.storedCityNames() }
            expectEqual(error?.code, .persistentStoreOperation)
            try pinned.setQueryGenerationFrom(.current)
            try expectEqual(pinned.storedCityNames(), ["B"])
        }
        try coordinator.remove(second)
    }

    @Test func `more versions than half of the connections always fit`() throws {
        let folder = try ScratchFolder()
        var options = PoolOptions()
        options.connectionsPerVersion = 8
        let pool = try ConnectionPool(.file(folder.file("numbers.sqlite").path), options: options)
        try pool.write { try $0.execute("CREATE TABLE number (value INTEGER)") }
        var held: [PinnedSnapshot] = []
        // The first versions get as many readers as ask for them.
        for version in 1...9 {
            for _ in 1...20 { held.append(try pool.sharedSnapshot()) }
            if version == 1 { expectEqual(pool.snapshotCount.value, 8) }
            try pool.write { try $0.execute("INSERT INTO number VALUES (1)") }
        }
        expectEqual(pool.snapshotCount.value, 16)
        for (place, snapshot) in held.enumerated() {
            let count = try snapshot.read { try $0.firstInt64("SELECT COUNT(*) FROM number") }
            expectEqual(count, Int64(place / 20))
        }
        expectThrows(SQLiteError.self) { try pool.sharedSnapshot() }
    }

    /// The writer that replaces and deletes what a pinned context sees.
    enum Writer: CaseIterable {
        case context
        case batches
        case anotherCoordinator
    }

    @Test(arguments: Writer.allCases)
    func `external data that others replace or delete stays readable, and its files go afterwards`(
        _ writer: Writer
    ) throws {
        let stack = try Stack(.database, model: modelWithExternalMaps())
        let (old, new) = (Data(repeating: 1, count: 200_000), Data(repeating: 2, count: 200_000))
        let changed = try stack.store(Venue.self) { venue, _ in venue.map = old }
        let deleted = try stack.store(Venue.self) { venue, _ in venue.map = old }
        let before = try stack.externalNames()
        if stack.kind == .sqlite { expectEqual(before.count, 2) }
        let context = try stack.pinnedContext()
        switch writer {
        case .context:
            try stack.change(changed, Venue.self) { venue, _ in venue.map = new }
            try stack.delete(deleted)
        case .batches:
            let update = NSBatchUpdateRequest(entityName: "Venue")
            update.predicate = NSPredicate(format: "SELF == %@", changed)
            update.propertiesToUpdate = ["map": new]
            try stack.execute(update)
            try stack.execute(NSBatchDeleteRequest(objectIDs: [deleted]))
        case .anotherCoordinator:
            let other = NSManagedObjectContext(.privateQueue)
            let second = try stack.secondCoordinator(model: modelWithExternalMaps())
            other.persistentStoreCoordinator = second
            try other.inside { () throws in
                for venue in try other.all(Venue.self) {
                    let isChanged = venue.objectID.uriRepresentation() == changed.uriRepresentation()
                    if isChanged { venue.map = new } else { other.delete(venue) }
                }
                try other.save()
            }
        }
        // A batch update keeps the new data in its rows, and a server keeps all data there.
        let newFiles = writer == .batches || stack.kind != .sqlite ? 0 : 1
        try expectEqual(stack.externalNames().count, before.count + newFiles)
        try context.inside { () throws in
            try expectEqual(context.get(changed, Venue.self).map, old)
            try expectEqual(context.get(deleted, Venue.self).map, old)
            try context.setQueryGenerationFrom(nil)
        }
        try expectEqual(stack.externalNames().count, newFiles)
        try expect(before.isDisjoint(with: stack.externalNames()))
        let reader = stack.context("reading")
        try reader.inside { () throws in try expectEqual(reader.all(Venue.self).map(\.map), [new]) }
    }

    @Test func `external data that two versions hold stays until the second is given up`() throws {
        let stack = try Stack(.database, model: modelWithExternalMaps())
        let data = (0...2).map { Data(repeating: UInt8($0), count: 200_000) }
        let id = try stack.store(Venue.self) { venue, _ in venue.map = data[0] }
        let first = try stack.pinnedContext("first")
        // This change gives the second context another version.
        try stack.change(id, Venue.self) { venue, _ in venue.name = "renamed" }
        let second = try stack.pinnedContext("second")
        try stack.change(id, Venue.self) { venue, _ in venue.map = data[1] }
        try first.inside { () throws in try first.setQueryGenerationFrom(nil) }
        if stack.kind == .sqlite { try expectEqual(stack.externalNames().count, 2) }
        try second.inside { () throws in
            try expectEqual(second.get(id, Venue.self).map, data[0])
            try second.setQueryGenerationFrom(nil)
        }
        if stack.kind == .sqlite { try expectEqual(stack.externalNames().count, 1) }
        try expect(stack.read(id, Venue.self) { $0.map } == data[1])
    }

    @Test func `external data of rows that no context holds goes with the save`() throws {
        let stack = try Stack(.sqlite, model: modelWithExternalMaps())
        let changed = try stack.store(Venue.self) { venue, _ in venue.map = Data(repeating: 1, count: 200_000) }
        let before = try stack.externalFiles.names()
        try stack.change(changed, Venue.self) { venue, _ in venue.map = Data(repeating: 2, count: 200_000) }
        try expectEqual(stack.externalFiles.names().count, 1)
        try expect(stack.externalFiles.names() != before)
        try expect(stack.read(changed, Venue.self) { $0.map } == Data(repeating: 2, count: 200_000))
    }

    @Test func `contexts of one version that read at the same time see one state while others write`() throws {
        let stack = try Stack(.database)
        let accounts = 50
        try stack.storeCities((1...accounts).map { "City \($0)" })
        let total = Int64(accounts * (accounts + 1) / 2)
        let isOver = Atomic(false)
        let wrong = Locked<[String]>([])
        let writers = DispatchQueue(label: "writers", attributes: .concurrent)
        let group = DispatchGroup()
        for number in 0..<2 {
            writers.async(group: group) {
                let context = stack.context("writer \(number)")
                context.performAndWait {
                    context.stalenessInterval = 0
                    while !isOver.load(ordering: .relaxed) {
                        guard let cities = try? context.fetch(citiesByName()) else { continue }
                        // One save takes from a city and gives to another.
                        let (from, to) = (cities.randomElement(), cities.randomElement())
                        from?.population -= 1
                        to?.population += 1
                        if (try? context.save()) == nil { context.rollback() }
                        context.reset()
                    }
                }
            }
        }
        for round in 0..<10 {
            let first = try stack.pinnedContext("first")
            let token = first.performAndWait { first.queryGenerationToken }
            DispatchQueue.concurrentPerform(iterations: 4) { number in
                let context = stack.context("reader \(number)")
                context.performAndWait {
                    do {
                        try context.setQueryGenerationFrom(token)
                        let names = try context.fetch(citiesByName())
                        let sum = names.reduce(0) { $0 + $1.population }
                        context.refreshAllObjects()
                        let again = names.reduce(0) { $0 + $1.population }
                        if sum != total || again != total {
                            wrong.withLock { $0.append("round \(round): \(sum), \(again)") }
                        }
                    } catch {
                        wrong.withLock { $0.append("\(error)") }
                    }
                }
            }
        }
        isOver.store(true, ordering: .relaxed)
        group.wait()
        expectEqual(wrong.withLock { $0 }, [])
    }
}

extension Stack {
    /// The names of the files with external data; none on a server.
    fileprivate func externalNames() throws -> Set<String> {
        kind == .sqlite ? Set(try externalFiles.names()) : []
    }

    /// The data that the store keeps in separate files.
    fileprivate var externalFiles: ExternalData {
        get throws {
            guard let store = coordinator.persistentStores.first as? SQLiteStore else { throw WrongClass() }
            return try store.openFile().external
        }
    }
}
