import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataMigration

@Suite("Steps of migrations of PostgreSQL stores", .enabled(if: Server.isThere))
struct MigrationPlanTests {
    private func plan(_ store: LargeStore, _ model: NSManagedObjectModel = LargeStore.model(2)) throws
        -> NSMigrationPlan
    {
        try NSMigrationPlan(
            forStoreAt: store.keyed.url,
            type: TestDatabase.storeType,
            from: LargeStore.model(1),
            to: model
        )
    }

    private func lines(_ plan: NSMigrationPlan) -> [String] {
        plan.description.components(separatedBy: "\n").filter { $0.hasPrefix("step") || $0.hasPrefix("hazard") }
    }

    @Test func `the plan of a large table names each step, its lock, and who waits`() throws {
        let store = try LargeStore([NSPostgreSQLForeignKeysOption: true])
        let plan = try plan(store)
        let found = lines(plan)
        for line in [
            "step: fills level, total, kind of reading, 200 rows at a time (ROW EXCLUSIVE: nobody waits)",
            "step: makes the index reading_by_total_index of reading (SHARE UPDATE EXCLUSIVE: nobody waits)",
            "step: adds the foreign key strata_fk_reading_newest_of_id (SHARE ROW EXCLUSIVE: saves wait, for a moment)",
            "step: checks the foreign key strata_fk_reading_newest_of_id (SHARE UPDATE EXCLUSIVE: nobody waits)",
        ] {
            expect(found.contains(line), "\(line)\n\(found.joined(separator: "\n"))")
        }
        // Values that would be lost are found by an index. Nothing in the transaction grows with the rows.
        expect(
            found.contains(
                "step: makes an index of the rows of reading that do not fit (SHARE UPDATE EXCLUSIVE: nobody waits)"
            )
        )
        expectEqual(found.filter { $0.hasPrefix("hazard") }, [])
        try expectEqual(store.parts(), [])
        expect(!plan.entities.contains(where: \.isCopied))
    }

    @Test func `what the transaction does with a large table is a hazard, and with a small one it is none`() throws {
        let model = LargeStore.model(2)
        let reading = try require(model.entitiesByName["Reading"])
        reading.uniquenessConstraints = [["name"]]
        let store = try LargeStore()
        let unique = try plan(store, model).steps.filter { $0.work.contains("strata_unique_reading_name") }
        expectEqual(unique.map(\.waiting), [.nobody])
        try store.keyed.connection().command("GRANT SELECT (total) ON reading TO PUBLIC")
        let copied = try plan(store, model)
        expect(copied.steps.contains { $0.isHazard && $0.work == "copies reading" }, "\(copied)")
        expect(copied.entities.contains(where: \.isCopied))
        let small = try plan(LargeStore(rows: 1000), model)
        expectEqual(small.steps.filter(\.isHazard), [])
        expect(small.steps.contains { $0.growsWithRows && $0.work == "copies reading" }, "\(small)")
    }

    @Test func `check-migration with a server names the hazards`() throws {
        let place = try ToolPlace()
        let scratch = try ScratchFolder()
        func version(_ number: Int, _ text: String) throws -> String {
            let file = scratch.file("v\(number).xml")
            try Data(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><model><entity name=\"Item\">\(text)</entity></model>".utf8
            )
            .write(to: file)
            return file.path
        }
        func attribute(_ type: String) -> String {
            "<attribute name=\"size\" attributeType=\"\(type)\" optional=\"YES\"/>"
        }
        let unique =
            "<uniquenessConstraints><uniquenessConstraint><constraint value=\"size\"/></uniquenessConstraint></uniquenessConstraints>"
        let first = try version(1, attribute("Integer 32"))
        let wider = try version(2, attribute("Integer 64"))
        let singular = try version(3, attribute("Integer 32") + unique)
        let coordinator = try place.open(NSManagedObjectModel(reading: URL(fileURLWithPath: first)), [:])
        try coordinator.close()
        let connection = try Connection.open(ConnectionTarget(require(URL(string: place.url))), timeout: 30)
        try connection.command("SET search_path TO \(ConnectionTarget(require(URL(string: place.url))).quotedSchema)")
        try connection.command(
            "INSERT INTO item (strata_id, strata_entity, strata_version, size) SELECT g, 1, 1, g FROM generate_series(1, 250000) AS g"
        )
        let good = Tool.run(["check-migration", "--server", place.url, wider])
        expectEqual(good.code, .success, "\(good)")
        expect(good.lines.joined(separator: "\n").contains("fills size of item"), "\(good)")
        let constrained = Tool.run(["check-migration", "--server", place.url, first, singular])
        expectEqual(constrained.code, .success, "\(constrained)")
        try connection.command("GRANT SELECT (size) ON item TO PUBLIC")
        let bad = Tool.run(["check-migration", "--server", place.url, first, wider])
        expectEqual(bad.code, .problemsFound, "\(bad)")
        expect(bad.lines.joined(separator: "\n").contains("hazard: copies item"), "\(bad)")
        expectEqual(Tool.run(["check-migration", first]).code, .usage)
    }
}
