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
struct HistoryRecorderTests {
    private let harness: StoreHarness

    init() throws {
        harness = try StoreHarness(HistoryModels.guide(), options: [NSPersistentHistoryTrackingKey: true])
    }

    private func write(_ body: (HistoryRecorder, OpenSQLiteStore) throws -> Void) throws {
        let file = try harness.sqlite.openFile()
        try file.pool.write { connection in
            let recorder = try require(HistoryRecorder(file, connection, author: "me", contextName: nil))
            try body(recorder, file)
        }
    }

    @Test
    func `changes are recorded by kind, entity, keys and the names of properties`() throws {
        try write { recorder, file in
            let bar = try require(file.mapping.entity(try harness.layout("Bar")))
            let city = try require(file.mapping.entity(try harness.layout("City")))
            try recorder.inserted([7, 8], of: city)
            try recorder.updated([3, 4], of: bar, properties: ["beers", "city", "no property"])
            try recorder.willDelete([5], of: bar)
            try expectEqual(recorder.finish(), 1)
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
        try write { recorder, file in
            let city = try require(file.mapping.entity(try harness.layout("City")))
            try recorder.inserted(EmptyCollection(), of: city)
            try expectEqual(recorder.finish(), nil)
        }
        try expect(harness.coordinator.transactions().isEmpty)
        try expect(harness.rows.reserveKeys([:]).isEmpty)
    }

    @Test
    func `a history can hold a transaction without changes, by the schema migrator (CS-204)`() throws {
        try write { recorder, _ in try recorder.migrated(fromModelWithDigest: "abc=") }
        let transaction = try require(try harness.coordinator.transactions().first)
        let author = "com.apple.coredata.schemamigrator: lightweight migration from model with digest { abc= }"
        expect(transaction.author == author && transaction.changes?.isEmpty == true)
        try harness.insert(try harness.row("City", -1, ["name": "x"]))
        try expectEqual(harness.coordinator.transactions().map(\.transactionNumber), [1, 2])
    }
}
