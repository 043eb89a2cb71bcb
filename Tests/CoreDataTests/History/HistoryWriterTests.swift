import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("What writes a history, beside saves")
struct HistoryWriterTests {
    private let harness: StoreHarness

    init() throws {
        harness = try StoreHarness(HistoryModels.guide(), options: [NSPersistentHistoryTrackingKey: true])
    }

    private func write(_ body: (HistoryWriter, OpenSQLiteFile) throws -> Void) throws {
        let file = try harness.sqlite.openFile()
        try file.pool.write { connection in
            let writer = try require(HistoryWriter(file, connection, author: "me", contextName: nil))
            try body(writer, file)
        }
    }

    @Test
    func `changes are recorded by kind, entity, keys and the names of properties`() throws {
        try write { writer, file in
            let bar = try require(file.mapping.entity(try harness.layout("Bar")))
            let city = try require(file.mapping.entity(try harness.layout("City")))
            try writer.inserted([7, 8], city)
            try writer.updated([3, 4], bar, properties: ["beers", "city", "no property"])
            try writer.willDelete([5], bar)
            try expectEqual(writer.finish(), 1)
        }
        let transaction = try require(try harness.coordinator.transactions().first)
        expectEqual(transaction.author, "me")
        let changes = try require(transaction.changes)
        expectEqual(changes.map(\.changeType), [.insert, .insert, .update, .update, .delete])
        expectEqual(changes.map(\.changedObjectID.key), [7, 8, 3, 4, 5])
        expectEqual(changes.map { $0.changedObjectID.entity.name }, ["City", "City", "Bar", "Bar", "Bar"])
        expectEqual(changes[2].updatedProperties?.map(\.name).sorted(), ["beers", "city"])
    }

    @Test
    func `what changes nothing is no transaction`() throws {
        try write { writer, file in
            let city = try require(file.mapping.entity(try harness.layout("City")))
            try writer.inserted(EmptyCollection(), city)
            try expectEqual(writer.finish(), nil)
        }
        try expect(harness.coordinator.transactions().isEmpty)
        try expect(harness.rows.reserveKeys([:]).isEmpty)
    }

    @Test
    func `a history can hold a transaction without changes, by the schema migrator (CS-204)`() throws {
        try write { writer, _ in try writer.migrated(fromModelWithDigest: "abc=") }
        let transaction = try require(try harness.coordinator.transactions().first)
        let author = "com.apple.coredata.schemamigrator: lightweight migration from model with digest { abc= }"
        expect(transaction.author == author && transaction.changes?.isEmpty == true)
        try harness.insert(try harness.row("City", -1, ["name": "x"]))
        try expectEqual(harness.coordinator.transactions().map(\.transactionNumber), [1, 2])
    }
}
