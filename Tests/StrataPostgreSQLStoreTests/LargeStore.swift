import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport

@testable import CoreDataMigration

/// A store with a table that is large enough to be prepared for a migration.
final class LargeStore: Sendable {
    let keyed = KeyedStore()
    let rows: Int

    /// The number of rows that make the table large.
    static let leastRows = 60_000

    /// Makes the store with the first version of its model, or with another one in which the entities have the same
    /// numbers.
    init(
        rows: Int = leastRows,
        _ options: [AnyHashable: Any] = [:],
        model: NSManagedObjectModel = LargeStore.model(1)
    ) throws {
        self.rows = rows
        try keyed.make(model, options)
        let connection = try keyed.connection()
        try connection.command(
            """
            INSERT INTO site (strata_id, strata_entity, strata_version, name) VALUES (1, 2, 1, 'roof');
            SELECT setval('strata_keys_reading', \(rows / 1000 * 1000 + 1001)), setval('strata_keys_site', 1001)
            """
        )
        // The server has 30 seconds for each statement.
        for first in stride(from: 1, through: rows, by: 500_000) {
            try connection.command(
                """
                INSERT INTO reading (strata_id, strata_entity, strata_version, name, total, note, site_id)
                SELECT g, 1, 1, 'reading ' || g || repeat('.', 80), g % 1000, CASE WHEN g % 2 = 0 THEN 'even' END, 1
                FROM generate_series(\(first), \(min(first + 499_999, rows))) AS g
                """
            )
        }
    }

    /// A model of readings.
    ///
    /// In the second version the total is a wider number, and has an index. The place is new, with a default value and
    /// an index, and so is the meter, to which the readings lead. The note is removed. The level is required, where nil
    /// becomes 7, and so is the kind, whose default value has the text around the body of a trigger.
    static func model(_ version: Int) -> NSManagedObjectModel {
        let reading = NSEntityDescription()
        reading.name = "Reading"
        let total = GuideModel.attribute("total", version == 1 ? .integer32 : .integer64)
        let level = GuideModel.attribute("level", .integer16)
        let kind = GuideModel.attribute("kind", .string)
        reading.properties = [GuideModel.attribute("name", .string), total, level, kind]
        let site = NSEntityDescription()
        site.name = "Site"
        site.properties = [GuideModel.attribute("name", .string)]
        GuideModel.relate(site, "readings", .many(.nullifyDeleteRule), reading, "site", .one(.nullifyDeleteRule))
        if version == 1 {
            reading.properties.append(GuideModel.attribute("note", .string))
        } else {
            level.isOptional = false
            level.defaultValue = 7
            kind.isOptional = false
            kind.defaultValue = "$strata$ and $_strata$"
            let place = GuideModel.attribute("place", .string)
            place.defaultValue = "it's here"
            reading.properties.append(place)
            GuideModel.relate(site, "newest", .one(.nullifyDeleteRule), reading, "newestOf", .one(.nullifyDeleteRule))
            reading.indexes = [total, place].map { attribute in
                NSFetchIndexDescription(
                    name: "by_\(attribute.name)",
                    elements: [NSFetchIndexElementDescription(property: attribute, collationType: .binary)]
                )
            }
        }
        let model = NSManagedObjectModel()
        model.entities = [reading, site]
        return model
    }

    /// Migrates the store to the second version.
    func migrate(
        from source: NSManagedObjectModel = LargeStore.model(1),
        to model: NSManagedObjectModel = LargeStore.model(2),
        mayDropValues: Bool = true,
        report: ((Double) -> Void)? = nil,
        note: ((String) -> Void)? = nil
    ) throws {
        try StoreMigration.run(
            at: keyed.url,
            type: TestDatabase.storeType,
            from: source,
            to: model,
            by: nil,
            mayDropValues: mayDropValues,
            report: report,
            note: note
        )
    }

    // MARK: - The database

    /// The texts of a query's first column.
    func texts(_ sql: String) throws -> [String] { try keyed.connection().query(sql).rows.map { $0.string(0) } }

    func number(_ sql: String) throws -> Int64? { try keyed.connection().query(sql).firstInt64 }

    /// The server's numbers of indexes, by which it is seen whether they were made anew.
    func indexes(_ condition: String) throws -> [String] {
        try texts(
            "SELECT oid::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'i' AND \(condition) ORDER BY 1"
        )
    }

    /// Ends the session that prepares a migration, as if its process were killed.
    func endPreparation() {
        _ = try? number(
            """
            SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
            AND (classid::bigint << 32) + objid::bigint = hashtextextended(current_schema(), 7278)
            """
        )
    }

    /// The names of all objects that preparations have made, with their kinds.
    func parts() throws -> [String] {
        try texts(
            """
            SELECT what || ' ' || n FROM (
            SELECT 'column' AS what, count(*) AS n FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
            WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND attname LIKE 'strata\\_prepared\\_%'
            UNION ALL SELECT 'trigger', count(*) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
            WHERE c.relnamespace = current_schema()::regnamespace AND tgname LIKE 'strata\\_prepared\\_%'
            UNION ALL SELECT 'function', count(*) FROM pg_proc
            WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'strata\\_prepared\\_%'
            UNION ALL SELECT 'index', count(*) FROM pg_class
            WHERE relkind = 'i' AND relnamespace = current_schema()::regnamespace AND relname LIKE 'strata\\_prepared\\_%'
            UNION ALL SELECT 'key', count(*) FROM pg_constraint
            WHERE connamespace = current_schema()::regnamespace AND conname LIKE 'strata\\_prepared\\_%'
            ) AS parts WHERE n > 0 ORDER BY 1
            """
        )
    }

    /// The file with the rows of the table; another one after the table was copied.
    func file() throws -> Int64? {
        try number("SELECT relfilenode::bigint FROM pg_class WHERE oid = 'reading'::regclass")
    }

    /// Checks the state after the migration of rows that no session has changed meanwhile.
    func expectMigrated(changed: Int = 0) throws {
        try expectEqual(keyed.problems(Self.model(2)), [])
        try expectEqual(parts(), [])
        let names =
            "SELECT attname::text FROM pg_attribute WHERE attrelid = 'reading'::regclass AND attnum > 0 AND NOT attisdropped"
        try expectEqual(
            texts("\(names) ORDER BY 1"),
            [
                "kind", "level", "name", "newest_of_id", "place", "site_id", "strata_entity", "strata_id",
                "strata_version", "total",
            ]
        )
        try expectEqual(
            texts(
                "SELECT attname::text FROM pg_attribute WHERE attrelid = 'reading'::regclass AND atthasdef ORDER BY 1"
            ),
            []
        )
        try expectEqual(
            texts("SELECT tgname::text FROM pg_trigger WHERE tgrelid = 'reading'::regclass AND NOT tgisinternal"),
            []
        )
        let wrong = """
            SELECT count(*) FROM reading WHERE total IS DISTINCT FROM strata_id % 1000 OR level IS DISTINCT FROM 7
            OR place IS DISTINCT FROM 'it''s here' OR newest_of_id IS NOT NULL
            OR kind IS DISTINCT FROM '$strata$ and $_strata$'
            """
        try expectEqual(number(wrong), Int64(changed))
    }
}
