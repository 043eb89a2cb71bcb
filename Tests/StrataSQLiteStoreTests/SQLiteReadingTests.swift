import CoreData
import Expectations
import StrataRows
import StrataSQLite
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Reading from a SQLite store")
struct SQLiteReadingTests {
    private func animals(_ count: Int) throws -> StoreHarness {
        let harness = try StoreHarness(StoreModels.pets())
        let rows = try (1...count).map { number in
            try harness.row(number % 2 == 0 ? "Cat" : "Dog", Int64(-number), ["name": "\(number)"])
        }
        try harness.save(StoreChanges(inserted: rows))
        return harness
    }

    @Test func `a fetch covers sub-entities or not, within its window`() throws {
        let harness = try animals(10)

        let all = try harness.rows.rows(for: harness.plan("Animal"))
        expectEqual(all.map(\.key), Array(1...10))
        expectEqual(all.map { $0.layout.entity.name }, (1...10).map { $0 % 2 == 0 ? "Cat" : "Dog" })
        try expect(harness.rows.rows(for: harness.plan("Animal", withSubentities: false)).isEmpty)
        try expectEqual(harness.rows.rows(for: harness.plan("Cat")).map(\.key), [2, 4, 6, 8, 10])
        try expectEqual(harness.rows.rows(for: harness.plan("Animal", limit: 3, offset: 2)).map(\.key), [3, 4, 5])
        try expectEqual(harness.rows.references(for: harness.plan("Dog", offset: 3)).map(\.key), [7, 9])
        try expectEqual(harness.rows.count(for: harness.plan("Dog")), 5)
        try expectEqual(harness.rows.count(for: harness.plan("Animal", limit: 4, offset: 8)), 2)
    }

    @Test func `one row is found by the key of its hierarchy`() throws {
        let harness = try animals(2)

        // Asked for as a dog, but a cat.
        let row = try harness.rows.row(forKey: 2, in: harness.layout("Dog"))

        expectEqual(row?.layout.entity.name, "Cat")
        expectEqual(row?.version, 1)
        expect(row?.stamp != 0)
        try expect(harness.rows.row(forKey: 3, in: harness.layout("Animal")) == nil)
    }

    @Test(arguments: [1, 30, 500])
    func `many rows are found by their keys, dense or sparse`(_ stride: Int) throws {
        let harness = try animals(2000)
        let wanted = Swift.stride(from: 1, through: 2000, by: stride).map(Int64.init).shuffled()

        let rows = try harness.rows.rows(forKeys: wanted + [5000, -3, 0], in: harness.layout("Cat"))

        expectEqual(rows.map(\.key).sorted(), wanted.sorted())
        expect(rows.allSatisfy { ($0.layout.entity.name == "Cat") == ($0.key % 2 == 0) })
    }

    @Test func `tens of thousands of keys`() throws {
        let harness = try animals(40_000)
        let keys = (1...40_000).filter { $0 % 3 != 0 || $0 % 7 == 0 }.map(Int64.init)

        try expectEqual(harness.rows.rows(forKeys: keys, in: harness.layout("Animal")).count, keys.count)
    }

    @Test func `readers see the last commit while a save is under way`() throws {
        let harness = try animals(3)
        let store = try harness.sqlite
        let pool = try store.openFile().pool

        try pool.write { connection in
            try connection.execute("DELETE FROM ZANIMAL")
            try expectEqual(harness.rows.count(for: harness.plan("Animal")), 3)
        }

        try expectEqual(harness.rows.count(for: harness.plan("Animal")), 0)
    }

    // MARK: - Every type

    private static func everyType() -> NSManagedObjectModel {
        let types: [(String, NSAttributeDescription.AttributeType)] = [
            ("int16", .integer16), ("int32", .integer32), ("int64", .integer64), ("bool", .boolean),
            ("double", .double),
            ("float", .float), ("date", .date), ("decimal", .decimal), ("string", .string), ("uri", .uri),
            ("uuid", .uuid),
            ("data", .binaryData), ("archive", .transformable),
        ]
        return StoreModels.model(StoreModels.entity("Thing", types.map { StoreModels.attribute($0, $1) }))
    }

    @Test func `every type comes back as it was saved`() throws {
        let harness = try StoreHarness(Self.everyType())
        let values: [String: Any] = [
            "int16": Int16.min, "int32": Int32.max, "int64": Int64.min, "bool": true, "double": Double.pi,
            "float": Float(1.1), "date": Date(timeIntervalSinceReferenceDate: 1234.5678),
            "decimal": try require(Decimal(string: "10.11")), "string": "Grüße \u{0} 👋🏽",
            "uri": try require(URL(string: "https://example.org/a?b#c")), "uuid": UUID(), "data": Data([0, 255, 7]),
            "archive": Data(repeating: 3, count: 5000),
        ]
        let row = try harness.row("Thing", -1, values)

        let result = try harness.save(StoreChanges(inserted: [row, harness.row("Thing", -2)]))

        expect(result.reread.isEmpty)
        let stored = try harness.stored("Thing", 1)
        let empty = try harness.stored("Thing", 2)
        for slot in row.layout.slots {
            expect(stored.hasSameValue(as: row, in: slot), "\(slot.name)")
            expect(empty.isNull(slot.index))
        }
        try expect(
            harness.sql(
                "SELECT typeof(ZBOOL), typeof(ZDOUBLE), typeof(ZFLOAT), typeof(ZDECIMAL), typeof(ZURI), typeof(ZUUID), ZURI FROM ZTHING"
            )[0] == "integer|real|real|real|text|blob|https://example.org/a?b#c"
        )
    }

    @Test func `a value that cannot be stored exactly is read again`() throws {
        let harness = try StoreHarness(Self.everyType())
        let precise = try require(Decimal(string: "1234567890123456789.0123456789"))
        let rows = try [
            harness.row("Thing", -1, ["decimal": precise]), harness.row("Thing", -2, ["double": Double.nan]),
            harness.row("Thing", -3, ["decimal": Decimal(1) / 3 * 3]),
            harness.row("Thing", -4, ["decimal": Decimal(Int64.max)]),
        ]

        let result = try harness.save(StoreChanges(inserted: rows))

        let decimal = try require(try harness.layout("Thing").slot(named: "decimal"))
        let again = Dictionary(uniqueKeysWithValues: result.reread.map { ($0.key, $0) })
        expect(again.keys.contains(1) && again.keys.contains(2) && !again.keys.contains(4))
        expectEqual(again[1]?.decimal(decimal.word), Decimal(1_234_567_890_123_456_768))
        try expectEqual(harness.stored("Thing", 4).decimal(decimal.word), Decimal(Int64.max))
    }

    // MARK: - External data

    private static func photos() -> NSManagedObjectModel {
        StoreModels.model(StoreModels.entity("Photo", [StoreModels.attribute("pixels", .binaryData, isExternal: true)]))
    }

    private func files(_ harness: StoreHarness) throws -> [String] { try harness.sqlite.openFile().external.names() }

    @Test func `large data is kept in a file, small data behind a tag`() throws {
        let harness = try StoreHarness(Self.photos())
        let (large, small) = (Data(repeating: 9, count: 200_000), Data([1, 2, 3]))
        try harness.insert(
            harness.row("Photo", -1, ["pixels": large]),
            harness.row("Photo", -2, ["pixels": small]),
            harness.row("Photo", -3, ["pixels": Data()])
        )

        let names = try files(harness)
        expectEqual(names.count, 1)
        let folder = harness.folder.url.appendingPathComponent(".store_SUPPORT/_EXTERNAL_DATA")
        try expectEqual(Data(contentsOf: folder.appendingPathComponent(try require(names.first))), large)
        let name = try require(names.first).utf8.map { String(format: "%02X", $0) }.joined()
        try expectEqual(harness.sql("SELECT hex(ZPIXELS) FROM ZPHOTO"), ["02\(name)00", "01010203", "01"])
        let word = try require(try harness.layout("Photo").slot(named: "pixels")).word
        try expectEqual(harness.stored("Photo", 1).data(word), large)
        try expectEqual(harness.stored("Photo", 2).data(word), small)
        try expectEqual(harness.stored("Photo", 3).data(word), Data())
    }

    @Test func `a file goes with its value, but not with a save that fails`() throws {
        let harness = try StoreHarness(Self.photos())
        let large = Data(repeating: 9, count: 200_000)
        try harness.insert(harness.row("Photo", -1, ["pixels": large]), harness.row("Photo", -2, ["pixels": large]))
        let first = try files(harness)

        var changes = StoreChanges(
            inserted: [try harness.row("Photo", -3, ["pixels": large])],
            updated: [try harness.update("Photo", 1, ["pixels": large + large])]
        )
        changes.deleted = [try harness.deletion("Photo", 2)]
        try harness.execute("UPDATE ZPHOTO SET Z_OPT = 9 WHERE Z_PK = 2")
        try expectEqual(harness.rows.save(changes) { _ in }.count, 1)
        try expectEqual(Set(files(harness)), Set(first))

        try harness.execute("UPDATE ZPHOTO SET Z_OPT = 1 WHERE Z_PK = 2")
        try harness.save(changes)
        try expectEqual(files(harness).count, 2)
        try expect(Set(files(harness)).isDisjoint(with: first))
        try expect(
            StoreVerifier(storeURL: harness.url, model: harness.coordinator.managedObjectModel).problems() == []
        )
    }

    @Test func `a missing file is a missing value, and no row leads out of the folder`() throws {
        let harness = try StoreHarness(Self.photos())
        try harness.insert(
            harness.row("Photo", -1, ["pixels": Data(repeating: 9, count: 200_000)]),
            harness.row("Photo", -2)
        )
        for name in try files(harness) { try harness.sqlite.openFile().external.remove(name) }
        let path = "../../../../../../../../../../etc/pass".utf8.map { String(format: "%02X", $0) }.joined()
        try harness.execute("UPDATE ZPHOTO SET ZPIXELS = x'02\(path)00' WHERE Z_PK = 2")

        let rows = try harness.rows.rows(for: harness.plan("Photo"))

        expectEqual(rows.map { $0.isNull(0) }, [true, true])
    }

    @Test func `a file that is there but cannot be read is an error, not a missing value`() throws {
        let harness = try StoreHarness(Self.photos())
        try harness.insert(harness.row("Photo", -1, ["pixels": Data(repeating: 9, count: 200_000)]))
        let external = try harness.sqlite.openFile().external
        let name = try require(try files(harness).first)
        let url = try require(external.folder).appendingPathComponent(name)
        try FileManager.default.removeItem(at: url)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)

        let reads: [() throws -> Void] = [
            { _ = try harness.rows.rows(for: harness.plan("Photo")) },
            { _ = try harness.rows.row(forKey: 1, in: harness.layout("Photo")) },
            {
                try harness.coordinator.migratePersistentStore(
                    harness.store,
                    to: harness.folder.file("copy.sqlite"),
                    type: .sqlite
                )
            },
        ]
        for read in reads {
            let error = try #require(throws: CocoaError.self) { try read() }
            expect(error.localizedDescription.contains(url.path))
        }
    }
}
