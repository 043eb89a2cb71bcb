import CoreData
import Expectations
import Foundation
import StrataRows
import TestSupport
import Testing

@testable import CoreDataBatches
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Rows of a batch that wait to be written")
struct RowSpoolTests {
    private static let code = UUID()

    /// A row with every kind of attribute, whose values depend on its number.
    private static func values(_ number: Int) -> [String: Any] {
        number % 7 == 0
            ? [:]
            : [
                "name": String(repeating: "größe ", count: number % 50) + "\(number)", "price": number % 30_000,
                "distance": Double(number) / 8, "createdAt": Date(timeIntervalSinceReferenceDate: Double(number)),
                "favorite": number % 2 == 0, "rating": Decimal(number) / 4, "code": code,
                "map": Data(repeating: UInt8(number % 256), count: number % 400), "visits": Int64.min + Int64(number),
                "seats": NSNull(),
            ]
    }

    private static func described(_ row: Row) -> [String] {
        row.layout.slots.map { slot in
            row.isNull(slot.index) ? "-" : row.anyValue(slot).map { "\($0)" } ?? "nil"
        }
    }

    private func insertion(_ harness: Stack, _ objects: [[String: Any]]) throws -> BatchInsertion {
        let store = try require(harness.coordinator.openStores.first)
        let layout = try require(harness.coordinator.managedObjectModel.entitiesByName["Venue"]).layout
        return BatchInsertion(
            layout: layout,
            rows: GivenDictionaries(layout, store, objects: objects),
            upsert: .fail
        )
    }

    @Test(arguments: [0, 1, 100, 20_000])
    func `rows come back as they were made, from memory and from a file that has no name`(_ count: Int) throws {
        let stack = try Stack(.database)
        let before = try FileManager.default.contentsOfDirectory(atPath: stack.folder.path).sorted()
        let objects = (0..<count).map(Self.values)
        let spool = try RowSpool(try insertion(stack, objects), in: stack.folder)
        expectEqual(spool.count, count)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: stack.folder.path).sorted(), before)
        let plain = try insertion(stack, objects).rows
        var read = 0
        while let given = try spool.next() {
            let expected = try require(try plain.next())
            guard Self.described(given.row) == Self.described(expected.row), given.given == expected.given else {
                Issue.record("row \(read): \(Self.described(given.row)) for \(Self.described(expected.row))")
                break
            }
            read += 1
        }
        expectEqual(read, count)
        try expect(spool.next() == nil)
    }

    @Test
    func `a folder that takes no files is an error, and nothing is inserted`() throws {
        let stack = try Stack(.database)
        let missing = stack.folder.appendingPathComponent("missing")
        expectThrows(CocoaError.self) {
            try RowSpool(try insertion(stack, (0..<20_000).map(Self.values)), in: missing)
        }
        // Rows that fit into memory need no file.
        try expectEqual(RowSpool(try insertion(stack, [Self.values(1)]), in: missing).count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `many rows are stored as they were given, and meet those that are there`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let text = String(repeating: "x", count: 300)
        func users(_ numbers: some Sequence<Int>, _ values: [String: Any]) -> NSBatchInsertRequest {
            NSBatchInsertRequest(
                entityName: "User",
                objects: numbers.map { values.merging(["email": "\(text)\($0)"]) { $1 } }
            )
        }
        try stack.execute(users(0..<8000, ["age": 1, "name": "old"]))
        let upsert = users(4000..<12_000, ["age": 2])
        upsert.resultType = .count
        try expectEqual(stack.execute(upsert, .mergeByPropertyObjectTrump).value as? Int, 8000)
        let context = stack.context()
        func count(_ format: String) throws -> Int {
            try context.performAndWait {
                let request = NSFetchRequest<User>(entityName: "User")
                request.predicate = NSPredicate(format: format)
                return try context.count(for: request)
            }
        }
        try expectEqual(count("age == 1 AND name == 'old'"), 4000)
        try expectEqual(count("age == 2 AND name == 'old'"), 4000)
        try expectEqual(count("age == 2 AND name == nil"), 4000)
        try expectEqual(stack.problems(), [])
    }
}
