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
    /// Saves a new city by a program of its own, which has no keys yet.
    private func insert(_ name: String, _ store: ChangingStore) throws {
        let context = try store.open(1)
        defer { ChangingStore.close(context) }
        try context.performAndWait {
            _ = context.insert("City", ["name": name])
            try context.save()
        }
    }

    @Test(arguments: [1, 500, 2000, -1000])
    func `no keys are given from a sequence that somebody has altered, which the error names`(_ increment: Int) throws {
        let store = ChangingStore()
        try store.fill()
        // This one has keys left.
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

    @Test func `the child of a fork does not hand out what its parent has drawn`() throws {
        let pinned = try PinnedStack()
        let database = pinned.database
        let process = ProcessNumber()
        let blocks = KeyBlocks(database.mapping, database.pool) { process.value }
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

/// The number of a process, which a test changes.
private final class ProcessNumber: Sendable {
    private let number = Atomic<Int32>(1)

    var value: Int32 {
        get { number.load(ordering: .acquiring) }
        set { number.store(newValue, ordering: .releasing) }
    }
}
