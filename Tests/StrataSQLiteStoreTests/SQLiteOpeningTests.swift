import CoreData
import Expectations
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Opening a SQLite store")
struct SQLiteOpeningTests {
    /// The error of opening `url` with a model of pets.
    private func failure(
        _ url: URL,
        options: [AnyHashable: Any]? = nil,
        model: NSManagedObjectModel = StoreModels.pets()
    ) throws -> CocoaError {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let error = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(type: .sqlite, at: url, options: options)
        }
        expect(coordinator.persistentStores.isEmpty)
        return try require(error)
    }

    /// A closed store with one cat.
    private func makeStore(_ folder: StoreFolder, _ model: NSManagedObjectModel = StoreModels.pets()) throws -> URL {
        let harness = try StoreHarness(model, in: folder)
        try harness.insert(harness.row("Cat", -1, ["name": "Tom"]))
        try harness.coordinator.remove(harness.store)
        return harness.url
    }

    private func contents(_ folder: StoreFolder) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        return try Dictionary(uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: folder.file($0))) })
    }

    @Test func `a closed store is one file, which opens again`() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        try expectEqual(contents(folder).keys.sorted(), ["store.sqlite"])

        let harness = try StoreHarness(StoreModels.pets(), in: folder)

        try expectEqual(harness.rows.rows(for: harness.plan("Animal")).count, 1)
        expectEqual(harness.url, url)
    }

    enum Damage: CaseIterable {
        case text, truncated, garbled, noMetadata, noTable, noColumn, foreign, noPrimaryKeys, badPlist, setInPlist,
            otherType

        var code: CocoaError.Code {
            switch self {
            case .text, .truncated, .garbled, .badPlist, .setInPlist: .fileReadCorruptFile
            case .noMetadata, .foreign, .otherType: .persistentStoreTypeMismatch
            case .noTable, .noColumn, .noPrimaryKeys: .persistentStoreIncompatibleSchema
            }
        }

        func apply(_ url: URL) throws {
            func sql(_ text: String) throws {
                let connection = try Connection(path: url.path, access: .readWrite)
                try connection.setPragma("journal_mode", "DELETE")
                try connection.execute(text)
            }
            switch self {
            case .text: try Data("This is no database, but a letter of some length.".utf8).write(to: url)
            case .truncated: try Data(contentsOf: url).prefix(5000).write(to: url)
            case .garbled:
                var data = try Data(contentsOf: url)
                for index in 100..<4096 { data[index] = UInt8(index & 255) }
                try data.write(to: url)
            case .noMetadata: try sql("DROP TABLE Z_METADATA")
            case .noTable: try sql("DROP TABLE ZCLUB")
            case .noColumn: try sql("ALTER TABLE ZCLUB DROP COLUMN ZTITLE")
            case .noPrimaryKeys: try sql("DROP TABLE Z_PRIMARYKEY")
            case .badPlist: try sql("UPDATE Z_METADATA SET Z_PLIST = x'00'")
            case .setInPlist:
                // This is ["a": a set of "b"], at which Foundation stops the program.
                let values = "62706c6973743030d101025161c10351"
                let trailer = "62080b0d0f0000000000000101000000000000000400000000000000000000000000000011"
                try sql("UPDATE Z_METADATA SET Z_PLIST = x'\(values)\(trailer)'")
            case .otherType:
                let plist = try PropertyListSerialization.data(
                    fromPropertyList: [NSStoreTypeKey: "XML"],
                    format: .binary,
                    options: 0
                )
                try sql("UPDATE Z_METADATA SET Z_PLIST = x'\(plist.map { String(format: "%02x", $0) }.joined())'")
            case .foreign:
                try FileManager.default.removeItem(at: url)
                try Connection(path: url.path, access: .readWriteCreate).execute(
                    "CREATE TABLE t (a); INSERT INTO t VALUES (1)"
                )
            }
        }
    }

    @Test(arguments: Damage.allCases)
    func `a file that will not do is refused and left as it is`(_ damage: Damage) throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        try damage.apply(url)
        let before = try contents(folder)

        let error = try failure(url)

        expectEqual(error.code, damage.code)
        expect(error.localizedDescription.contains(url.path))
        if error.code == .fileReadCorruptFile, ![.badPlist, .setInPlist].contains(damage) {
            expect(error.userInfo[NSSQLiteErrorDomain] as? Int == (damage == .text ? 26 : 11) || damage == .garbled)
            expect(error.userInfo[NSUnderlyingErrorKey] is SQLiteError)
        }
        try expectEqual(Data(contentsOf: url), before["store.sqlite"])
    }

    @Test func `another model is refused, and the entities that differ are named`() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        let before = try Data(contentsOf: url)
        let model = StoreModels.pets()
        let dog = try require(model.entitiesByName["Dog"])
        dog.properties += [StoreModels.attribute("breed", .string)]

        let error = try failure(url, model: model)

        expectEqual(error.code, .persistentStoreIncompatibleVersionHash)
        expect(error.localizedDescription.contains("Dog"))
        expect(!error.localizedDescription.contains("Cat"))
        try expectEqual(Data(contentsOf: url), before)
    }

    @Test func `versions are overlooked on request`() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        let model = StoreModels.pets()
        try require(model.entitiesByName["Dog"]).versionHashModifier = "2"
        try expectEqual(failure(url, model: model).code, .persistentStoreIncompatibleVersionHash)

        let harness = try StoreHarness(
            model,
            at: url,
            in: folder,
            options: [NSIgnorePersistentStoreVersioningOption: true]
        )

        try expectEqual(harness.rows.count(for: harness.plan("Animal")), 1)
    }

    @Test func `places without access`() throws {
        let folder = try StoreFolder()
        try expectEqual(failure(folder.url).code, .persistentStoreOpen)
        try expectEqual(failure(folder.file("missing/store.sqlite")).code, .fileNoSuchFile)
        try expect(
            failure(folder.file(), options: [NSReadOnlyPersistentStoreOption: true]).code == .fileReadNoSuchFile
        )
        try expectEqual(failure(try require(URL(string: "https://example.org/store"))).code, .persistentStoreOpen)
        try expect(
            failure(folder.file(), options: [NSSQLitePragmasOption: ["locking_mode": "EXCLUSIVE"]]).code
                == .persistentStoreOpen
        )
        try expectEqual(failure(folder.file(), options: [NSSQLitePragmasOption: "WAL"]).code, .persistentStoreOpen)
        try expect(contents(folder).isEmpty)
    }

    @Test func `a folder that may not be written`() async {
        await #expect(processExitsWith: .success) {
            // The user root may write anywhere, so the process changes to an unprivileged user.
            if getuid() == 0 { expect(setgid(65534) == 0 && setuid(65534) == 0) }
            try SQLiteOpeningTests().checkReadOnlyFolder()
        }
    }

    private func checkReadOnlyFolder() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        _ = chmod(folder.url.path, 0o500)
        _ = chmod(url.path, 0o400)

        try expectEqual(failure(url).code, .fileWriteNoPermission)
        try expectEqual(failure(folder.file("new.sqlite")).code, .fileWriteNoPermission)
        let harness = try StoreHarness(
            StoreModels.pets(),
            at: url,
            in: folder,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        try expectEqual(harness.rows.count(for: harness.plan("Animal")), 1)
    }

    @Test func `a read-only store is read, and refuses saves`() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        let before = try Data(contentsOf: url)
        let harness = try StoreHarness(
            StoreModels.pets(),
            at: url,
            in: folder,
            options: [NSReadOnlyPersistentStoreOption: true]
        )

        try expectEqual(harness.rows.rows(for: harness.plan("Animal")).count, 1)
        let error = expectThrows(CocoaError.self) { try harness.insert(harness.row("Cat", -1)) }

        expectEqual(error?.code, .persistentStoreSave)
        try expectEqual(Data(contentsOf: url), before)
    }

    @Test func `a file that another connection keeps locked`() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        let other = try Connection(path: url.path, access: .readWrite)
        try other.setPragma("journal_mode", "DELETE")
        try other.execute("BEGIN EXCLUSIVE")

        let error = try failure(url, options: [NSPersistentStoreTimeoutOption: 0.05])

        expectEqual(error.code, .persistentStoreTimeout)
    }

    @Test func `options reach SQLite`() throws {
        let folder = try StoreFolder()
        let url = try makeStore(folder)
        let harness = try StoreHarness(
            StoreModels.pets(),
            at: url,
            in: folder,
            options: [
                NSSQLitePragmasOption: ["journal_mode": "DELETE", "cache_size": 77, "synchronous": "FULL"]
                    as [String: Any],
                NSSQLiteAnalyzeOption: true, NSSQLiteManualVacuumOption: true,
                NSPersistentStoreConnectionPoolMaxSizeKey: 3,
            ]
        )

        let file = try harness.sqlite.openFile()
        try expectEqual(harness.sql("PRAGMA journal_mode"), ["delete"])
        try expectEqual(harness.sql("PRAGMA cache_size"), ["77"])
        try expectEqual(harness.sql("SELECT COUNT(*) > 0 FROM sqlite_stat1"), ["1"])
        expectEqual(file.pool.options.maximumReaders, 3)
        expectEqual(file.synchronous, .full)
    }

    @Test func `stores in memory are private, or shared by name`() throws {
        let model = StoreModels.pets()
        let alone = try StoreHarness(model, at: URL(fileURLWithPath: "/dev/null"))
        try alone.insert(alone.row("Cat", -1))
        let other = try StoreHarness(model, at: URL(fileURLWithPath: "/dev/null"))
        try expect(other.rows.rows(for: other.plan("Animal")).isEmpty)

        let url = URL(fileURLWithPath: "/dev/null/\(UUID().uuidString)")
        let first = try StoreHarness(model, at: url)
        try first.insert(first.row("Cat", -1))
        let second = try StoreHarness(model, at: url)
        try expectEqual(second.rows.rows(for: second.plan("Animal")).map(\.key), [1])
        expectEqual(second.store.identifier, first.store.identifier)
        try first.coordinator.remove(first.store)
        try expectEqual(second.rows.count(for: second.plan("Animal")), 1)
    }

    @Test func `two that make one store at once agree on it`() async throws {
        let folder = try StoreFolder()
        let model = StoreModels.pets()
        model.freeze()

        let identifiers = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<4 {
                group.addTask { try StoreHarness(model, in: folder).store.identifier }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }

        expectEqual(identifiers.count, 1)
    }

    @Test func `a closed store says so`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        try harness.coordinator.remove(harness.store)

        let error = expectThrows(CocoaError.self) { try harness.rows.count(for: harness.plan("Animal")) }

        expectEqual(error?.code, .persistentStoreOperation)
    }

    @Test func `a row of an unknown entity is an error that names it`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        try harness.insert(harness.row("Cat", -1))
        try harness.execute("UPDATE ZANIMAL SET Z_ENT = 99")

        for body in [
            { _ = try harness.rows.rows(for: harness.plan("Animal")) }, { _ = try harness.stored("Cat", 1) },
            { _ = try harness.rows.references(for: harness.plan("Animal")) },
        ] as [() throws -> Void] {
            let error = expectThrows(CocoaError.self) { try body() }
            expectEqual(error?.code, .fileReadCorruptFile)
            expectEqual(error?.localizedDescription.contains("row 1 of table ZANIMAL has entity number 99"), true)
        }
    }

    @Test func `values of the wrong type are converted, or null`() throws {
        let harness = try StoreHarness(StoreModels.pets())
        try harness.insert(harness.row("Cat", -1), harness.row("Person", -2))
        try harness.execute(
            """
            UPDATE ZANIMAL SET ZNAME = x'4142FF', ZLIVES = 'many', ZOWNER = 1.0;
            UPDATE ZPERSON SET ZID = 'short', ZBORN = 'then'
            """
        )

        let cat = try harness.stored("Cat", 1)
        let person = try harness.stored("Person", 1)

        try expectEqual(cat.anyValue(require(cat.layout.slot(named: "name"))) as? String, "AB\u{FFFD}")
        try expectEqual(cat.int(require(cat.layout.slot(named: "lives")).word), 0)
        try expectEqual(cat.reference(require(cat.layout.slot(named: "owner")))?.key, 1)
        try expect(person.isNull(require(person.layout.slot(named: "id")).index))
        try expectEqual(person.double(require(person.layout.slot(named: "born")).word), 0)
    }
}
