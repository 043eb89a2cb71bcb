import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataMigration

/// Constraints, numbers of entities, other names, and checks of rows: what a migration of a large table can do without
/// keeping others from it.
@Suite("Early work of migrations of PostgreSQL stores", .enabled(if: Server.isThere))
struct EarlyWorkTests {
    /// The part of the progress that the preparation has.
    private static let share = 0.9
    private static let early = "relname LIKE 'strata\\_prepared\\_%'"

    /// The first version of the model of readings, with a change.
    private static func model(_ change: (NSEntityDescription, NSManagedObjectModel) throws -> Void) throws
        -> NSManagedObjectModel
    {
        let model = LargeStore.model(1)
        try change(require(model.entitiesByName["Reading"]), model)
        return model
    }

    private static func entity(_ name: String, like parent: NSEntityDescription? = nil, in model: NSManagedObjectModel)
    {
        let entity = NSEntityDescription()
        entity.name = name
        if let parent { parent.subentities.append(entity) }
        model.entities.append(entity)
    }

    /// The place in the file where a row is, which changes when it is written.
    private func place(_ store: LargeStore) throws -> [String] {
        try store.texts("SELECT ctid::text FROM reading WHERE strata_id IN (17, 59000) ORDER BY strata_id")
    }

    // MARK: - Constraints

    @Test func `a constraint is there before the transaction, and holds for old sessions from then on`() throws {
        let store = try LargeStore()
        let model = try Self.model { reading, _ in reading.uniquenessConstraints = [["name"]] }
        let old = try store.keyed.open(LargeStore.model(1))
        defer { ChangingStore.close(old) }
        var early: [String] = []
        try store.migrate(to: model) { part in
            guard part == Self.share, early.isEmpty else { return }
            do {
                early = try store.indexes(Self.early)
                let name = try require(store.texts("SELECT name FROM reading WHERE strata_id = 7").first)
                try old.performAndWait {
                    _ = old.insert("Reading", ["name": "another"])
                    try old.save()
                    _ = old.insert("Reading", ["name": name])
                    expect(expectThrows(CocoaError.self) { try old.save() } != nil)
                    old.reset()
                }
            } catch {
                Issue.record(error)
            }
        }
        expectEqual(early.count, 1)
        try expectEqual(store.indexes("relname = 'strata_unique_reading_name'"), early)
        try expectEqual(store.number("SELECT count(*) FROM reading"), Int64(store.rows + 1))
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(model), [])
    }

    @Test func `objects that break a new constraint end the migration before its transaction, and are named`() throws {
        let store = try LargeStore()
        try store.keyed.connection().command("UPDATE reading SET name = 'same' WHERE strata_id < 3")
        // The entities get other numbers as well.
        let model = try Self.model { reading, model in
            reading.uniquenessConstraints = [["name"]]
            Self.entity("Alpha", in: model)
        }
        var last = 0.0
        let error = expectThrows(CocoaError.self) { try store.migrate(to: model) { last = $0 } }
        expectEqual(error?.code, .migration)
        expect(last > 0.5 && last < Self.share, "\(last)")
        let text = error?.localizedDescription ?? ""
        expect(text.contains("/Reading/p1 and ") && text.contains("/Reading/p2"), "\(text)")
        try expectEqual(store.parts(), [])
        try expectEqual(store.keyed.problems(LargeStore.model(1)), [])
    }

    @Test func `a new attribute with a default value leaves a constraint alone`() throws {
        let source = try Self.model { reading, _ in reading.uniquenessConstraints = [["name"]] }
        let store = try LargeStore(model: source)
        let model = try Self.model { reading, _ in
            reading.uniquenessConstraints = [["name"]]
            let attribute = GuideModel.attribute("extra", .integer64)
            attribute.defaultValue = 5
            reading.properties.append(attribute)
        }
        let before = try store.indexes("relname = 'strata_unique_reading_name'")
        try store.migrate(from: source, to: model)
        expectEqual(before.count, 1)
        try expectEqual(store.indexes("relname = 'strata_unique_reading_name'"), before)
        try expectEqual(store.number("SELECT count(*) FROM reading WHERE extra = 5"), Int64(store.rows))
        try expectEqual(store.keyed.problems(model), [])
    }

    // MARK: - Names

    @Test func `an entity and an attribute with other names keep their indexes`() throws {
        func index(_ reading: NSEntityDescription, _ attribute: String) throws {
            reading.uniquenessConstraints = [[attribute]]
            let property = try require(reading.attributesByName["total"] ?? reading.attributesByName["sum"])
            reading.indexes = [
                NSFetchIndexDescription(
                    name: "by_total",
                    elements: [NSFetchIndexElementDescription(property: property, collationType: .binary)]
                )
            ]
        }
        let source = try Self.model { reading, _ in try index(reading, "name") }
        let model = try Self.model { reading, _ in
            reading.renamingIdentifier = "Reading"
            reading.name = "Measurement"
            for (old, new) in [("name", "title"), ("total", "sum")] {
                reading.attributesByName[old]?.renamingIdentifier = old
                reading.attributesByName[old]?.name = new
            }
            try index(reading, "title")
        }
        let store = try LargeStore(model: source)
        let there = "relname NOT LIKE 'strata\\_transaction%' AND relname NOT LIKE '%\\_pkey'"
        let before = try store.indexes(there)
        var parts: [String] = []
        try store.migrate(from: source, to: model) { part in
            if part <= Self.share { parts += (try? store.parts()) ?? ["?"] }
        }
        expectEqual(before.count, 3)
        expectEqual(parts, [])
        try expectEqual(store.indexes(there), before)
        try expectEqual(store.keyed.problems(model), [])
    }

    @Test func `an index that the store lacks is made, though the model had it before`() throws {
        let source = LargeStore.model(1)
        let store = try LargeStore(rows: 10)
        try store.keyed.connection().command("DROP INDEX reading_site_id_index")
        let model = try Self.model { reading, _ in reading.properties.append(GuideModel.attribute("extra", .string)) }
        try store.migrate(from: source, to: model)
        try expectEqual(store.keyed.problems(model), [])
    }

    // MARK: - Checks of rows

    @Test func `rows that do not fit are found by an index, which keeps nobody from writing them`() throws {
        let model = try Self.model { reading, _ in reading.attributesByName["name"]?.isOptional = false }
        for isKept in [true, false] {
            let store = try LargeStore()
            let old = try store.keyed.open(LargeStore.model(1))
            defer { ChangingStore.close(old) }
            var plan = ""
            let result = Result {
                try store.migrate(to: model, mayDropValues: false) { part in
                    guard part == Self.share, plan.isEmpty else { return }
                    do {
                        let condition = try require(
                            store.texts(
                                "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indrelid = 'reading'::regclass AND indpred IS NOT NULL"
                            ).first
                        )
                        plan = try store.texts("EXPLAIN SELECT 1 FROM reading WHERE \(condition) LIMIT 1").joined()
                        if isKept { return try Self.watchScans(of: store) }
                        try old.performAndWait {
                            _ = old.insert("Reading", ["total": 1])
                            try old.save()
                        }
                    } catch {
                        Issue.record(error)
                    }
                }
            }
            expect(plan.contains("strata_prepared_"), "\(plan)")
            try expectEqual(store.parts(), [])
            if isKept {
                try result.get()
                try store.keyed.connection().command("DROP EVENT TRIGGER \(Self.schema(store))_scans")
                // The first entry is from before the checks of rows, and the second from after them.
                let scans = try store.texts("SELECT scans::text FROM scans ORDER BY place LIMIT 2")
                expect(scans.count == 2 && scans[0] == scans[1], "\(scans)")
                try expectEqual(store.keyed.problems(model), [])
            } else {
                expectEqual(expectThrows(CocoaError.self) { try result.get() }?.code, .migration)
                try expectEqual(store.keyed.problems(LargeStore.model(1)), [])
                try expectEqual(store.number("SELECT count(*) FROM reading WHERE name IS NULL"), 1)
            }
        }
    }

    private static func schema(_ store: LargeStore) throws -> String {
        try require(store.texts("SELECT current_schema()::text").first)
    }

    /// Lets the session of the migration note, before each change of the schema, how often it has scanned the table.
    ///
    /// The rest of another preparation, which is made here, is the first that the transaction removes.
    private static func watchScans(of store: LargeStore) throws {
        let schema = try schema(store)
        try store.keyed.connection().command(
            """
            ALTER TABLE reading ADD COLUMN strata_prepared_rest integer;
            CREATE TABLE scans (place bigserial, scans bigint);
            CREATE FUNCTION scans() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
            IF current_schema() = '\(schema)' THEN
            INSERT INTO scans (scans) VALUES (pg_stat_get_xact_numscans('reading'::regclass)); END IF; END$$;
            CREATE EVENT TRIGGER \(schema)_scans ON ddl_command_start EXECUTE FUNCTION scans()
            """
        )
    }

    // MARK: - Derived attributes

    @Test func `a new derived attribute is left for the transaction, and the rest of its table is not`() throws {
        let store = try LargeStore()
        let model = LargeStore.model(2)
        let derived = NSDerivedAttributeDescription()
        derived.name = "folded"
        derived.type = .string
        derived.derivationExpression = NSExpression(format: "canonical:(name)")
        try require(model.entitiesByName["Reading"]).properties.append(derived)
        let file = try store.file()
        var parts: [String] = []
        try store.migrate(to: model) { part in if part == Self.share { parts = (try? store.parts()) ?? [] } }
        expectEqual(parts, ["column 5", "function 3", "index 3", "trigger 3"])
        try expectEqual(store.file(), file)
        try expectEqual(store.number("SELECT count(*) FROM reading WHERE folded IS NULL"), 0)
        try expectEqual(store.keyed.problems(model), [])
        let plan = try LargeStore().plan(model)
        expectEqual(plan.steps.filter(\.isHazard).map(\.work), ["computes folded of reading"])
    }
}

extension LargeStore {
    fileprivate func plan(_ model: NSManagedObjectModel) throws -> NSMigrationPlan {
        try NSMigrationPlan(
            forStoreAt: keyed.url,
            type: TestDatabase.storeType,
            from: LargeStore.model(1),
            to: model
        )
    }
}
