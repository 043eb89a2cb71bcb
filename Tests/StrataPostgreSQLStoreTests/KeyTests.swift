import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import Synchronization
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("Keys of PostgreSQL stores", .enabled(if: Server.isThere))
struct KeyTests {
    /// Saves a new city with a new coordinator, which has no keys yet.
    private func insert(_ name: String, _ store: ChangingStore) throws {
        let context = try store.open(1)
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            _ = context.insert("City", ["name": name])
            try context.save()
        }
    }

    @Test(arguments: [1, 500, 2000, -1000])
    func `no keys are given from a sequence that was altered, which the error names`(_ increment: Int) throws {
        let store = ChangingStore()
        try store.fill()
        // This coordinator has keys left.
        let context = try store.open(1)
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            _ = context.insert("City", ["name": "Kiel"])
            try context.save()
        }
        let session = try store.connection()
        try session.command("ALTER SEQUENCE strata_keys_city MINVALUE -5000 INCREMENT BY \(increment)")
        let error = expectThrows(CocoaError.self) { try insert("Trier", store) }
        expectEqual(error?.code, .persistentStoreSave)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("strata_keys_city increments by \(increment), and must by 1000"), "\(text)")
        try context.performAndWait {
            for number in 0..<5 { _ = context.insert("City", ["name": "City \(number)"]) }
            try context.save()
        }
        try session.command("ALTER SEQUENCE strata_keys_city INCREMENT BY 1000")
        if increment < 0 { try session.command("SELECT setval('strata_keys_city', 5000)") }
        try insert("Trier", store)
        try expectEqual(session.query("SELECT 1 FROM city").rowCount, 9)
    }

    @Test func `no keys are given from a sequence that was set back behind the rows, which the error names`() throws {
        let store = ChangingStore()
        try store.fill()
        let session = try store.connection()
        try session.command("SELECT setval('strata_keys_city', 1, false)")
        let error = expectThrows(CocoaError.self) { try insert("Trier", store) }
        expectEqual(error?.code, .persistentStoreSave)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("strata_keys_city is behind the rows of city, which have the key 1 "), "\(text)")
        try session.command("SELECT setval('strata_keys_city', 1001)")
        try insert("Trier", store)
        try expectEqual(session.query("SELECT 1 FROM city").rowCount, 3)
    }

    @Test func `a server that was started again is asked for new keys, as it may give the old ones to others`() throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let stack = try ServerStack(server.url)
        try stack.insert("Rome")
        try server.halt()
        try server.resume()
        try stack.insert("Oslo")
        let keys = try server.connection().query("SELECT strata_id FROM city ORDER BY name DESC").rows.map {
            $0.int64(0)
        }
        expect(keys.count == 2 && keys[1] >= keys[0] + 1000, "\(keys)")
    }

    @Test func `the keys of each timeline lie in a range that belongs to it alone`() {
        expectEqual(KeyTimeline.key(33_001, 1), 33_001)
        expectEqual(KeyTimeline.key(33_001, 2), (1 << 40) + 33_001)
        expectEqual(KeyTimeline.key(1, 3), (2 << 40) + 1)
        expectEqual(KeyTimeline.key(7, 1 << 22) % (1 << 40), 7)
    }

    @Test func `a server that takes the place of another is asked for new keys`() throws {
        let primary = try PrivateServer(["synchronous_commit=on"])
        let replica = try PrivateServer(following: primary)
        let hosts = "host=\(primary.folder),\(replica.folder)"
        let stack = try ServerStack(
            try require(URL(string: "postgresql:///strata?\(hosts)&user=strata&schema=shop"))
        )
        try stack.insert("Rome")
        try replica.catchUp(with: primary)
        try primary.halt()
        try replica.promote()
        try stack.insert("Oslo")
        let keys = try replica.connection().query("SELECT strata_id FROM city ORDER BY name DESC").rows.map {
            $0.int64(0)
        }
        // The second key is of the range of the new timeline.
        expect(keys.count == 2 && keys[0] < 1 << 40 && keys[1] > 1 << 40, "\(keys)")
    }

    @Test func `a new row whose key another program has used gets another one`() throws {
        let pinned = try PinnedStack()
        let session = try pinned.direct()
        try pinned.stack.insert("Rome")
        try session.command(
            """
            INSERT INTO city (strata_id, strata_entity, strata_version, name, population)
            SELECT strata_id + 1, strata_entity, 1, 'Oslo', 0 FROM city
            """
        )
        try pinned.stack.insert("Bern")
        let keys = try session.query("SELECT strata_id FROM city ORDER BY strata_id").rows.map { $0.int64(0) }
        expect(keys.count == 3 && keys[2] >= keys[0] + 1000, "\(keys)")
        try expectEqual(pinned.stack.cities(), ["Bern", "Oslo", "Rome"])
    }

    @Test func `the child of a fork does not hand out what its parent has drawn`() throws {
        let pinned = try PinnedStack()
        let database = pinned.database
        let process = ProcessNumber()
        let blocks = KeyAllocation(database.mapping, database.pool) { process.value }
        let root = try require(database.mapping.entities.first { $0.layout.name == "City" }).layout.rootNumber
        func keys() throws -> Set<Int64> {
            try database.pool.withConnection { connection in
                Set(try blocks.reserve(10, root: root, connection).flatMap(Array.init))
            }
        }
        let before = try keys()
        process.value = 2
        let child = try keys()
        let start = try require(before.min())
        expect(child.allSatisfy { !(start..<start + 1000).contains($0) }, "\(child.sorted())")
        expectEqual(before.count + child.count, 20)
    }
}

/// The number of a process, which tests change.
private final class ProcessNumber: Sendable {
    private let number = Atomic<Int32>(1)

    var value: Int32 {
        get { number.load(ordering: .acquiring) }
        set { number.store(newValue, ordering: .releasing) }
    }
}
