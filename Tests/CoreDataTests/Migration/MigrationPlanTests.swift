import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

@Suite("Migration plans")
struct MigrationPlanTests {
    @Test func `m170 a plan lists what is kept, renamed, converted, added and removed`() {
        let source = ModelSketch.model(
            "A: n String, old String, size Int32, gone String\nSame: n String\nGone: n String"
        )
        let destination = ModelSketch.model(
            "B{A}: n String, new{old} String, size Int64, more Int32\nSame: n String\nNew: n String"
        )

        let plan = NSMigrationPlan(from: source, to: destination)

        expect(plan.isPossible)
        expect(!plan.isEmpty)
        expect(
            plan.description.split(separator: "\n").map(String.init) == [
                "renamed entity B (was A)", "  removed gone", "  added more", "  renamed new (was old)",
                "  converted size", "added entity New", "removed entity Gone",
                "note: property gone of entity B is removed, with its values",
                "note: entity Gone is removed, with its rows",
            ]
        )
        expect(NSMigrationPlan(from: source, to: source).isEmpty)
        expectEqual(NSMigrationPlan(from: source, to: source).description, "nothing changes")
    }

    @Test func `m080 m170 a plan lists every obstacle`() {
        let plan = NSMigrationPlan(
            from: ModelSketch.model("A: n String, x String"),
            to: ModelSketch.model("A: n Int32, x Date")
        )

        expect(!plan.isPossible)
        expectEqual(plan.obstacles.count, 2)
    }
}
