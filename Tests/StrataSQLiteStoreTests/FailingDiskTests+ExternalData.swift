import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataSQLite
@testable import StrataSQLiteStore

extension FailingDiskTests {
    private func model() throws -> NSManagedObjectModel {
        let model = GuideModel.make()
        let map = try require(model.entitiesByName["Venue"]?.attributesByName["map"])
        map.allowsExternalBinaryDataStorage = true
        return model
    }

    private func data(_ byte: UInt8) -> Data { Data(repeating: byte, count: 200_000) }

    private func maps(_ url: URL) throws -> [String: Data?] {
        let coordinator = try open(url, model: model())
        defer { try? close(coordinator) }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait {
            let venues = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            return Dictionary(uniqueKeysWithValues: venues.map { ($0.name ?? "", $0.map) })
        }
    }

    /// The number that a test has set in the metadata of a store.
    private func number(_ url: URL) throws -> Int? {
        try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)["number"] as? Int
    }

    /// A copy of the store as the next process would find it if this one were killed now.
    private func copy(_ url: URL) throws -> URL {
        let files = FileManager.default
        let folder = url.deletingLastPathComponent().appendingPathComponent("copy")
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        for name in ["store.sqlite", "store.sqlite-wal", ".store_SUPPORT"] {
            let source = url.deletingLastPathComponent().appendingPathComponent(name)
            guard files.fileExists(atPath: source.path) else { continue }
            try files.copyItem(at: source, to: folder.appendingPathComponent(name))
        }
        return folder.appendingPathComponent("store.sqlite")
    }

    @Test
    func `a failed save that the log brings back has its external data, and none stays after the next save`() throws {
        var point = 0
        var hasSaved = false
        var comebacks = 0
        repeat {
            point += 1
            try withStore { url in
                FailingDisk.fail(url.path, at: 0)
                let coordinator = try open(url, model: model())
                let context = NSManagedObjectContext(.privateQueue)
                context.persistentStoreCoordinator = coordinator
                try context.performAndWait {
                    let venue = Venue(context: context)
                    (venue.name, venue.map) = ("changed", data(1))
                    let store = try require(coordinator.persistentStores.first as? SQLiteStore)
                    coordinator.setMetadata(["number": 1], for: store)
                    try context.save()
                    venue.map = data(2)
                    let new = Venue(context: context)
                    (new.name, new.map) = ("new", data(3))
                    coordinator.setMetadata(["number": 2], for: store)
                    FailingDisk.fail(url.path, at: point, forGood: true)
                    hasSaved = (try? context.save()) != nil
                    FailingDisk.fail(url.path, at: 0)
                    guard !hasSaved else { return }
                    let copy = try copy(url)
                    let found = try maps(copy)
                    try expectEqual(number(copy), found["new"] == nil ? 1 : 2, "from operation \(point) on")
                    if found["new"] != nil { comebacks += 1 }
                    let expected = found["new"] == nil ? ["changed": data(1)] : ["changed": data(2), "new": data(3)]
                    expectEqual(found, expected, "from operation \(point) on")
                    try context.save()
                    try expectEqual(store.openFile().external.names().count, 2, "from operation \(point) on")
                }
                try close(coordinator)
                try expectEqual(number(url), 2, "from operation \(point) on")
                try expectEqual(maps(url), ["changed": data(2), "new": data(3)], "from operation \(point) on")
            }
        } while !hasSaved
        // Otherwise the test would have tried nothing.
        expect(comebacks > 0)
    }

    /// The operations of the disk during a save that replaces external data.
    private func eventsOfReplacing(_ synchronous: String) throws -> [FailingDisk.Event] {
        var events: [FailingDisk.Event] = []
        try withStore { url in
            let folder = url.deletingLastPathComponent().path
            FailingDisk.fail(folder, at: 0)
            let coordinator = try open(url, model: model(), synchronous: synchronous)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                let venue = Venue(context: context)
                venue.map = data(1)
                try context.save()
                venue.map = data(2)
                FailingDisk.fail(folder, at: 0)
                try context.save()
            }
            events = FailingDisk.events
            try close(coordinator)
        }
        return events
    }

    @Test(arguments: ["NORMAL", "FULL", "OFF"])
    func `external data is synced before its row is committed, and goes when that is durable`(_ synchronous: String)
        throws
    {
        let events = try eventsOfReplacing(synchronous)
        let external = events.map { $0.path.contains("_EXTERNAL_DATA") }
        let log = events.map { $0.path.hasSuffix("-wal") }
        let places = Array(events.indices)
        let written = try require(places.first { external[$0] && events[$0].kind == .write })
        let committed = try require(places.last { log[$0] && events[$0].kind == .write })
        let deleted = try require(places.first { external[$0] && events[$0].kind == .delete })
        expect(written < committed)
        expect(committed < deleted)
        let name = events[written].path
        let isSynced = places.contains { $0 < committed && events[$0].kind == .sync && events[$0].path == name }
        let isDurable = places.contains {
            committed < $0 && $0 < deleted && events[$0].kind == .sync && log[$0]
        }
        expectEqual(isSynced, (synchronous != "OFF"))
        expectEqual(isDurable, (synchronous != "OFF"))
    }

    /// How the contents of a store are replaced by those of another file.
    enum Replacement: CaseIterable { case replacing, stage }

    /// Replaces a store, whose log a reader keeps from being copied.
    private func replace(_ url: URL, by other: URL, _ way: Replacement, _ synchronous: String) throws {
        let reader = try Connection(path: url.path, access: .readWrite)
        defer { reader.close() }
        try reader.execute("BEGIN")
        try expectEqual(reader.firstInt64("SELECT COUNT(*) FROM ZVENUE"), 1)
        let options: [AnyHashable: Any] = [NSSQLitePragmasOption: ["synchronous": synchronous]]
        FailingDisk.fail(url.deletingLastPathComponent().path, at: 0)
        switch way {
        case .replacing:
            try NSPersistentStoreCoordinator(managedObjectModel: model()).replacePersistentStore(
                at: url,
                destinationOptions: options,
                withPersistentStoreFrom: other,
                sourceOptions: nil,
                type: .sqlite
            )
        case .stage:
            let watch = try FileWatch(url)
            let options = try SQLiteOptions(url: url, pragmas: ["synchronous": synchronous])
            try expect(SQLiteEngine.replaceContents(of: url, options, by: other, ifUnchanged: watch))
        }
        try reader.execute("COMMIT")
    }

    @Test(arguments: Replacement.allCases, ["NORMAL", "FULL", "OFF"])
    func `external data of a replaced store goes when the new contents are durable`(
        _ way: Replacement,
        _ synchronous: String
    ) throws {
        try withStore { url in
            let other = url.deletingLastPathComponent().appendingPathComponent("other.sqlite")
            for (place, byte) in [(url, UInt8(1)), (other, 2)] {
                let coordinator = try open(place, model: model())
                let context = NSManagedObjectContext(.privateQueue)
                context.persistentStoreCoordinator = coordinator
                try context.performAndWait {
                    let venue = Venue(context: context)
                    (venue.name, venue.map) = ("\(byte)", data(byte))
                    try context.save()
                }
                try close(coordinator)
            }
            FailingDisk.fail(url.deletingLastPathComponent().path, at: 0)
            try replace(url, by: other, way, synchronous)
            let events = FailingDisk.events
            FailingDisk.fail("", at: 0)

            let log = events.map { $0.path == url.path + "-wal" }
            let committed = try require(events.indices.last { log[$0] && events[$0].kind == .write })
            let deleted = try require(
                events.indices.first { events[$0].kind == .delete && events[$0].path.contains(".store_SUPPORT") }
            )
            expect(committed < deleted)
            let isDurable = events.indices.contains {
                committed < $0 && $0 < deleted && events[$0].kind == .sync && log[$0]
            }
            expectEqual(isDurable, synchronous != "OFF")
            try expectEqual(maps(url), ["2": data(2)])
            let folder = url.deletingLastPathComponent().appendingPathComponent(".store_SUPPORT/_EXTERNAL_DATA")
            try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.path).count, 1)
        }
    }

    @Test(arguments: ["NORMAL", "FULL", "OFF"])
    func `external data of a destroyed store goes when the store is durably empty`(_ synchronous: String) throws {
        try withStore { url in
            let folder = url.deletingLastPathComponent()
            let coordinator = try open(url, model: model())
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                Venue(context: context).map = data(1)
                try context.save()
            }
            try close(coordinator)
            let reader = try Connection(path: url.path, access: .readWrite)
            defer { reader.close() }
            try reader.execute("BEGIN")
            try expectEqual(reader.firstInt64("SELECT COUNT(*) FROM ZVENUE"), 1)
            FailingDisk.fail(folder.path, at: 0)
            try coordinator.destroyPersistentStore(
                at: url,
                type: .sqlite,
                options: [NSSQLitePragmasOption: ["synchronous": synchronous]]
            )
            let events = FailingDisk.events
            FailingDisk.fail("", at: 0)
            let log = events.map { $0.path == url.path + "-wal" }
            let committed = try require(events.indices.last { log[$0] && events[$0].kind == .write })
            let isDurable = events.indices.contains { committed < $0 && events[$0].kind == .sync && log[$0] }
            expectEqual(isDurable, synchronous != "OFF")
            expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent(".store_SUPPORT").path))
        }
    }

    @Test
    func `external data that cannot be written or synced fails the save, and leaves nothing`() throws {
        var point = 0
        var hasSaved = false
        repeat {
            point += 1
            try withStore { url in
                let folder = url.deletingLastPathComponent()
                let coordinator = try open(url, model: model())
                let context = NSManagedObjectContext(.privateQueue)
                context.persistentStoreCoordinator = coordinator
                let store = try require(coordinator.persistentStores.first as? SQLiteStore)
                try context.performAndWait {
                    let venue = Venue(context: context)
                    (venue.name, venue.map) = ("new", data(1))
                    coordinator.setMetadata(["number": point], for: store)
                    let files = folder.appendingPathComponent(".store_SUPPORT").path
                    FailingDisk.fail(files, at: point)
                    do { try context.save() } catch let error as CocoaError { expectEqual(error.code, .sqlite) }
                    hasSaved = !context.hasChanges
                    FailingDisk.fail("", at: 0)
                    guard !hasSaved else { return }
                    try expectEqual(store.openFile().external.names(), [])
                    try context.save()
                }
                try close(coordinator)
                try expectEqual(maps(url), ["new": data(1)], "at operation \(point)")
                // The failed save has not written it.
                try expectEqual(number(url), point, "at operation \(point)")
            }
        } while !hasSaved
        // There are four writes, as a file is written in pieces, and one sync. The sixth save has nothing that fails.
        expectEqual(point, 6)
    }

    /// Another process may do so, whose files no hold of this process keeps.
    @Test func `a copy is complete though all external data get other files during each attempt`() throws {
        try withStore { url in
            let folder = url.deletingLastPathComponent()
            let coordinator = try open(url, model: model())
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                for number in 0..<3 {
                    let venue = Venue(context: context)
                    (venue.name, venue.map) = ("\(number)", data(UInt8(number)))
                }
                try context.save()
            }
            try close(coordinator)
            let files = folder.appendingPathComponent(".store_SUPPORT/_EXTERNAL_DATA")
            var options = Connection.Options()
            options.timeout = 0
            let writer = try Connection(path: url.path, access: .readWrite, options: options)
            defer { writer.close() }
            let (replaced, keptOut) = (Shared(0), Shared(0))
            @Sendable func replace() throws {
                let manager = FileManager.default
                try writer.execute("BEGIN IMMEDIATE")
                let names = try manager.contentsOfDirectory(atPath: files.path)
                for old in names {
                    let new = UUID().uuidString
                    try manager.copyItem(at: files.appendingPathComponent(old), to: files.appendingPathComponent(new))
                    try writer.execute(
                        "UPDATE ZVENUE SET ZMAP = CAST(replace(CAST(ZMAP AS TEXT), '\(old)', '\(new)') AS BLOB)"
                    )
                }
                try writer.execute("COMMIT")
                for old in names { try manager.removeItem(at: files.appendingPathComponent(old)) }
            }
            FailingDisk.observe(folder.appendingPathComponent(".copy.sqlite").path) { event in
                guard event.kind == .sync else { return false }
                do {
                    try replace()
                    replaced.update { $0 += 1 }
                } catch { keptOut.update { $0 += 1 } }
                return false
            }
            let copy = folder.appendingPathComponent("copy.sqlite")
            try NSPersistentStoreCoordinator.backUpPersistentStore(at: url, type: .sqlite, to: copy)
            FailingDisk.fail("", at: 0)
            try expectEqual(maps(copy), ["0": data(0), "1": data(1), "2": data(2)])
            try expectEqual(maps(url), ["0": data(0), "1": data(1), "2": data(2)])
            // Eight copies are made beside writers, and the ninth while no other connection can write. Each syncs as often.
            expect(keptOut.current > 0)
            expectEqual(replaced.current, 8 * keptOut.current)
        }
    }
}
