import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataMigration
@testable import StrataSQLite

/// The steps that a plan lists for a file, compared with what the migration then does to the file.
@Suite("Steps of migrations of SQLite stores")
struct MigrationStepsTests {
    /// The places of tables and indexes in the schema, which change when these are made anew, and not when they are renamed.
    private func places(_ store: AgingStore) throws -> [String: Int64] {
        try store.read { connection in
            let statement = try connection.statement("SELECT name, rowid FROM sqlite_schema WHERE rootpage > 0")
            var places: [String: Int64] = [:]
            while try statement.step() { places[statement[0].string] = statement[1].int64 }
            return places
        }
    }

    private func names(_ steps: [NSMigrationPlan.Step], _ start: String) -> [String] {
        steps.filter { $0.work.hasPrefix(start) }.map { step in
            step.work.dropFirst(start.count).prefix { $0 != " " && $0 != "," }.description
        }.sorted()
    }

    @Test(arguments: [
        "A: n String, x Double\nB: n String, more Int16",  // a type, and a new attribute
        "A: n String, x Int16 | unique n\nB: n String",  // a constraint
        "A: n String, x Int16\nB: n String | unique n\nC: n String",  // another one, and an entity
        "A: n String\nB: n String",  // nothing of x
    ])
    func `the tables and indexes that the plan names are those that are made anew`(_ sketch: String) throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String, x Int16\nB: n String")) { context in
            for name in ["1", "2", "3"] { context.make("A", name, ["x": 1]) }
            context.make("B", "1")
            try context.save()
        }
        let model = ModelSketch.model(sketch)
        let before = try places(store)

        let steps = try NSMigrationPlan(forStoreAt: store.url, to: model).steps
        try store.use(model) { _ in }

        let after = try places(store)
        let copied = before.filter { after[$0.key] != nil && after[$0.key] != $0.value && $0.key.hasPrefix("Z") }.keys
        let indexes = after.keys.filter { $0.contains("_") && $0.hasPrefix("Z_") && before[$0] == nil }
        expectEqual(names(steps, "copies "), copied.filter { !$0.hasPrefix("Z_") }.sorted())
        expectEqual(names(steps, "makes the index "), indexes.filter { !$0.hasPrefix("Z_DA") }.sorted())
        expect(!steps.isEmpty && steps.allSatisfy { $0.waiting == .writers && !$0.isHazard }, "\(steps)")
    }

    @Test func `a step says how many rows it takes, and is a hazard if they take much space`() throws {
        let store = try AgingStore()
        let old = "A: n String, x Int16"
        try store.use(ModelSketch.model(old)) { context in
            let text = String(repeating: "much ", count: 2000)
            for number in 0..<1000 { context.make("A", "\(number) \(text)", ["x": 1]) }
            try context.save()
        }
        let wider = try NSMigrationPlan(forStoreAt: store.url, to: ModelSketch.model("A: n String, x Double"))
        expect(
            wider.description.contains(
                "hazard: copies ZA, and drops the former table (1000 rows) (the turn of the writer: saves wait, longer with more rows)"
            ),
            "\(wider)"
        )
        let added = try NSMigrationPlan(forStoreAt: store.url, to: ModelSketch.model(old + ", y Int16"))
        expect(added.description.contains("step: adds ZY to ZA (the turn of the writer: saves wait, for a moment)"))
        expectEqual(added.steps.filter(\.isHazard), [])
    }

    @Test func `without a write-ahead log, readers wait as well`() throws {
        let store = try AgingStore()
        let journal: [AnyHashable: Any] = [NSSQLitePragmasOption: ["journal_mode": "DELETE"]]
        try store.use(ModelSketch.model("A: n String, x Int16"), journal) { context in
            context.make("A", "1")
            try context.save()
        }
        let model = ModelSketch.model("A: n String, x Double")
        let plan = try NSMigrationPlan(forStoreAt: store.url, to: model, options: journal)
        expect(!plan.steps.isEmpty && plan.steps.allSatisfy { $0.waiting == .everybody && $0.lock == "EXCLUSIVE" })
    }
}
