import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataMigration
@testable import StrataPostgreSQLStore

@Suite("Keys of PostgreSQL stores that lie far apart", .enabled(if: Server.isThere))
struct ScatteredKeyTests {
    private static var scattered: [AnyHashable: Any] { [NSPostgreSQLScatteredKeysOption: true] }
    private static var consecutive: [AnyHashable: Any] { [NSPostgreSQLScatteredKeysOption: false] }
    private static let area = Int64(1) << 40

    // MARK: - Blocks

    @Test func `no two blocks share a key, and those drawn one after the other lie in all parts of an area`() {
        let blocks = (0..<100_000).map { KeyOrder.scattered.block($0 * 1000 + 1, 1) }
        expect(blocks.allSatisfy { $0.lowerBound > 0 && $0.count == 1000 && $0.upperBound <= Self.area })
        let sorted = blocks.sorted { $0.lowerBound < $1.lowerBound }
        expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
        for start in [0, 64, 6_400] {
            expectEqual(Set(blocks[start..<start + 64].map { $0.lowerBound * 64 / Self.area }).count, 64)
        }
    }

    @Test func `each timeline and each area has keys of its own`() {
        let order = KeyOrder.scattered
        let first = order.block(1, 1)
        expectEqual(order.block(1, 3), first.lowerBound + 2 * Self.area..<first.upperBound + 2 * Self.area)
        let last = (1 << 30 - 1) * Int64(1000) + 1
        expect(order.block(last, 1).upperBound <= Self.area)
        expectEqual(order.block(last + 1000, 1), first.lowerBound + Self.area..<first.upperBound + Self.area)
        // The greatest value of a sequence, on any timeline.
        expect(order.block(KeyOrder.greatestScattered, 1 << 22).lowerBound > 0)
        expectEqual(order.lastKey(1, 1), Self.area - 1)
        expectEqual(order.lastKey(last + 1000, 2), 3 * Self.area - 1)
    }

    @Test(arguments: [KeyOrder.consecutive, .scattered], [1, 5_000, area - 1, area, 5 * area + 7, 1 << 61])
    func `numbers beyond a key give greater keys only`(_ order: KeyOrder, _ key: Int64) throws {
        let number = try require(order.number(beyond: key))
        for later in [1, 2, 3, 1_000, 999_999] as [Int64] {
            expect(order.block(number + later * 1000, 1).lowerBound > key)
        }
        expect(order.lastKey(number, 1) > key)
        expectEqual(order.count(number + 5000), 5000)
        expectEqual(order.number(beyond: 1 << 62), nil)
    }

    /// Whether the verifier takes keys for given, by the last number of their sequence.
    private static func areGiven(_ order: KeyOrder, _ keys: [Int64], last: Int64) throws -> [Bool] {
        let sql = """
            SELECT (\(order.greatestNumber(of: "k", last: "$2::bigint")) < $2::bigint + 1000)::integer::bigint
            FROM (SELECT unnest($1::bigint[]) AS k) AS t
            """
        let found = try Server.connection().query(sql, [.array(PostgreSQLArray(keys)), .int8(last)])
        return found.rows.map { $0.int64(0) == 1 }
    }

    @Test(arguments: [Int64(1), 2, 4], [0, 777])
    func `verification finds keys that were not given, on any timeline`(_ timeline: Int64, _ rest: Int64) throws {
        for order in [KeyOrder.consecutive, .scattered] {
            // From the first number, and from one beyond copies.
            for origin in try [0, require(order.number(beyond: 5))] {
                for number in [1, 2, 3, 1_023, 1_024, 777_777].map({ origin + $0 * 1000 + rest }) {
                    let (keys, next) = (order.block(number, timeline), order.block(number + 1000, timeline))
                    let all = [keys.lowerBound, keys.upperBound - 1, next.lowerBound, next.upperBound - 1]
                    let given = try Self.areGiven(order, all, last: number)
                    expectEqual(given, [true, true, false, false], "\(order) \(number)")
                }
            }
        }
        // Keys between the blocks, and copies below them.
        try expectEqual(Self.areGiven(.scattered, [1001, 1024, 2025], last: 5001), [false, false, false])
        let later = try require(KeyOrder.scattered.number(beyond: 5)) + 1000
        try expectEqual(Self.areGiven(.scattered, [3, 1024, Self.area], last: later), [true, true, true])
    }

    // MARK: - Stores

    /// The orders of the keys in a schema, one for each sequence.
    private static func orders(_ session: Connection) throws -> [KeyOrder] {
        let found = try session.query(
            """
            SELECT s.seqmax FROM pg_catalog.pg_sequence AS s JOIN pg_catalog.pg_class AS c ON c.oid = s.seqrelid
            WHERE c.relnamespace = pg_catalog.current_schema()::regnamespace AND c.relname LIKE 'strata_keys%'
            """
        )
        return found.rows.map { KeyOrder(greatest: $0.int64(0)) }
    }

    /// Inserts cities with a coordinator that has no keys yet, a third of them by a batch.
    private static func insert(_ count: Int, _ name: String, _ coordinator: NSPersistentStoreCoordinator) throws {
        try coordinator.perform { context in
            for number in 0..<count * 2 / 3 { _ = context.insert("City", [name: "saved \(number)"]) }
            try context.save()
            let objects = (0..<count - count * 2 / 3).map { [name: "batch \($0)"] }
            try context.execute(NSBatchInsertRequest(entityName: "City", objects: objects))
        }
    }

    private static func insert(_ count: Int, _ store: ChangingStore, _ options: [AnyHashable: Any], version: Int = 1)
        throws
    {
        let context = try store.open(version, options)
        defer { ChangingStore.close(context) }
        try insert(count, version == 1 ? "name" : "title", require(context.persistentStoreCoordinator))
    }

    private static func keys(_ session: Connection) throws -> [Int64] {
        try session.query("SELECT strata_id FROM city ORDER BY 1").rows.map { $0.int64(0) }
    }

    /// The blocks that some keys lie in, by their places in the order of a sequence.
    private static func blocks(of keys: [Int64], among count: Int64) throws -> Set<Int64> {
        let blocks = (0..<count).map { ($0, KeyOrder.scattered.block($0 * 1000 + 1, 1)) }
        return try Set(keys.map { key in try require(blocks.first { $0.1.contains((key - 1) % area + 1) }).0 })
    }

    @Test func `all processes scatter the keys of a store that was made so, whatever their options say`() throws {
        let store = ChangingStore()
        try Self.insert(3_000, store, Self.scattered)
        try Self.insert(1_500, store, [:])
        try Self.insert(1_500, store, Self.consecutive)
        let session = try store.connection()
        let keys = try Self.keys(session)
        expectEqual(keys.count, 6_000)
        try expect(Self.blocks(of: keys, among: 64).count >= 6)
        try expect(require(keys.last) - keys[0] > Self.area / 2)
        try expectEqual(store.problems(1), [])
        // Rows whose keys the sequence will give are a defect, and so are keys between the blocks.
        try session.command("SELECT setval('strata_keys_city', 1001)")
        try expectEqual(store.problems(1).count, 1)
        try session.command("SELECT setval('strata_keys_city', 100001)")
        try expectEqual(store.problems(1), [])
        try session.command("UPDATE city SET strata_id = 1010 WHERE strata_id = \(keys[0])")
        try expectEqual(store.problems(1).count, 1)
    }

    @Test func `a store that exists keeps the order of its keys`() throws {
        let store = ChangingStore()
        try Self.insert(3, store, Self.consecutive)
        try Self.insert(2_500, store, Self.scattered)
        let session = try store.connection()
        try expectEqual(Self.orders(session), [.consecutive])
        try expect(require(Self.keys(session).last) < 10_000)
        try expectEqual(store.problems(1), [])
    }

    @Test func `a sequence that was set back behind scattered rows gives no keys`() throws {
        let store = ChangingStore()
        try Self.insert(6_000, store, Self.scattered)
        let session = try store.connection()
        try session.command("SELECT setval('strata_keys_city', 1, true)")
        // The next block has rows, and the two after it have none.
        for number: Int64 in [2_001, 3_001] {
            let keys = KeyOrder.scattered.block(number, 1)
            try session.command("DELETE FROM city WHERE strata_id BETWEEN \(keys.lowerBound) AND \(keys.upperBound)")
        }
        let error = expectThrows(CocoaError.self) { try Self.insert(3, store, [:]) }
        expectEqual(error?.code, .persistentStoreSave)
        expect(error?.localizedDescription.contains("strata_keys_city is behind the rows of city") == true)
    }

    @Test(arguments: [false, true])
    func `a migration keeps the order, for new entities too`(_ isByObjects: Bool) throws {
        let store = ChangingStore()
        try Self.insert(1_500, store, Self.scattered)
        let before = try Self.keys(store.connection())
        if isByObjects {
            let (first, second) = (ChangingStore.model(1), ChangingStore.model(2))
            let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
            let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
            let place = StorePlace(url: store.url, type: TestDatabase.storeType.rawValue, options: nil)
            try expect(manager.migrateInPlace(place, mapping, from: nil, to: nil))
        }
        try Self.insert(1_500, store, [:], version: 2)
        let session = try store.connection()
        try expectEqual(Self.orders(session), [.scattered, .scattered])
        let keys = try Self.keys(session)
        expectEqual(keys.count, 3_000)
        expect(Set(keys).isSuperset(of: before))
        try expectEqual(store.problems(2), [])
    }

    @Test(.enabled(if: Compiler.isThere), arguments: [false, true])
    func `a portable store scatters its keys, before and after a migration`(_ isByObjects: Bool) throws {
        let proxy = try PortableProxy(every: 7)
        let store = PortableCities(url: proxy.url, isScattered: true)
        try store.fill(venues: 1_500)
        try expectEqual(Self.orders(proxy.session()), [.scattered, .scattered, .scattered])
        let before = try store.contents(1)
        // The program that migrates does not know of the option.
        let other = PortableCities(url: proxy.url)
        if isByObjects {
            let (first, second) = (PortableCities.model(1), PortableCities.model(2))
            let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
            let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
            let options = [NSPersistentHistoryTrackingKey: true]
            let place = StorePlace(
                url: proxy.url,
                type: NSPersistentStore.StoreType.postgreSQL.rawValue,
                options: options
            )
            try expect(manager.migrateInPlace(place, mapping, from: nil, to: nil))
        } else {
            try other.migrate(to: 2)
        }
        // A migration by objects does not keep the history.
        func rows(_ lines: [String]) -> [String] {
            lines.filter { line in ["City", "Venue", "Tag"].contains { line.hasPrefix($0 + " ") } }
        }
        try expectEqual(rows(other.contents(2)), rows(before))
        try Self.insertVenues(other)
        try other.requireSound(2)
        let session = try proxy.session()
        let table = try require(
            session.query(
                """
                SELECT relname::text FROM pg_catalog.pg_class WHERE relname LIKE 'venue%' AND relkind = 'r'
                AND relnamespace = pg_catalog.current_schema()::regnamespace
                """
            ).rows.map { $0.string(0) }.first
        )
        let keys = try session.query("SELECT strata_id FROM \"\(table)\"").rows.map { $0.int64(0) }
        expectEqual(Set(keys).count, 3_000)
        try expect(Self.blocks(of: keys, among: 64).count >= 3)
    }

    private static func insertVenues(_ store: PortableCities) throws {
        try store.use(2) { context in
            for number in 0..<1_500 { _ = context.insert("Venue", ["name": "new \(number)"]) }
            try context.save()
        }
    }

    // MARK: - Copies

    @Test func `a store moves between files and both orders, and no key is given twice`() throws {
        let stack = try Stack(.sqlite, model: GuideModel.make())
        var places: [URL] = []
        defer { for place in places { TestDatabase.drop(place) } }
        var known: Set<Int64> = []
        func insert(isScattered: Bool = false) throws {
            var count = known.count
            try stack.coordinator.perform { context in
                let cities = (0..<3).map { context.insert("City", ["name": "\(count + $0)"]) }
                try context.save()
                for city in cities {
                    let key = try require(Int64(city.objectID.uriRepresentation().lastPathComponent.dropFirst()))
                    expect(known.insert(key).inserted, "\(key)")
                    // New scattered keys lie in an area without copies.
                    expect(!isScattered || known.filter { $0 >> 40 == key >> 40 }.count <= 3, "\(key)")
                    count += 1
                }
                // The key of a deleted object is not given again either.
                context.delete(cities[2])
                try context.save()
            }
        }
        try insert()
        let stays: [(String, [AnyHashable: Any]?)] = [
            ("first", Self.scattered), ("second", nil), ("third", Self.consecutive), ("fourth", Self.scattered),
            ("fifth", Self.scattered), ("sixth", Self.consecutive), ("seventh", nil),
        ]
        for (name, options) in stays {
            let before = try stack.state()
            let store = try require(stack.coordinator.persistentStores.first)
            let place = stack.folder.appendingPathComponent(name)
            if options != nil { places.append(place) }
            let type = options == nil ? NSPersistentStore.StoreType.sqlite : TestDatabase.storeType
            try stack.coordinator.migratePersistentStore(store, to: place, options: options, type: type)
            try expectEqual(stack.state().differences(from: before, ignoring: StoreState.identity), [])
            try insert(isScattered: options?[NSPostgreSQLScatteredKeysOption] as? Bool == true)
            if options != nil { try expectEqual(PostgreSQLStore.problems(at: place, GuideModel.make()), [], "\(name)") }
        }
        expectEqual(known.count, 24)
    }

    @Test func `a store with both orders keeps each in a migration by objects and in a backup`() throws {
        let store = ChangingStore()
        try Self.insert(10, store, Self.scattered, version: 2)
        let session = try store.connection()
        // As if the process that made the store had died half-way.
        try session.command("DROP SEQUENCE strata_keys_bridge; CREATE SEQUENCE strata_keys_bridge INCREMENT BY 1000")
        let model = ChangingStore.model(2)
        let replacement = try require(
            PostgreSQLStore.replacement(of: store.url, options: [:], model: model, configuration: nil)
        )
        try replacement.copyRows()
        try replacement.finish(model, configuration: nil)
        let place = try ToolPlace()
        let copy = place.folder.appendingPathComponent("copy").path
        let url = TestDatabase.url(for: store.url).absoluteString
        expectEqual(Tool.run("backup", "--store", url, "--to", copy).code, .success)
        expectEqual(Tool.run("restore", "--store", place.url, "--from", copy).code, .success)
        for file in [store.url, place.file] {
            let session = try TestDatabase.session(file)
            try expectEqual(KeyOrder.order(of: "strata_keys_bridge", session), .consecutive)
            try expectEqual(KeyOrder.order(of: "strata_keys_city", session), .scattered)
        }
    }

    @Test func `a restored backup has scattered keys too`() throws {
        let store = ChangingStore()
        try Self.insert(1_500, store, Self.scattered)
        let place = try ToolPlace()
        let copy = place.folder.appendingPathComponent("copy").path
        let url = TestDatabase.url(for: store.url).absoluteString
        expectEqual(Tool.run("backup", "--store", url, "--to", copy).code, .success)
        expectEqual(Tool.run("restore", "--store", place.url, "--from", copy).code, .success)
        let restored = try place.open(ChangingStore.model(1))
        defer { try? restored.close() }
        try Self.insert(1_500, "name", restored)
        let session = try TestDatabase.session(place.file)
        try expectEqual(Self.orders(session), [.scattered])
        try expectEqual(Set(Self.keys(session)).count, 3_000)
        expectEqual(Tool.run("verify", "--store", place.url).code, .success)
    }
}
