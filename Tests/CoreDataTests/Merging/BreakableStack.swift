import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration

/// A store whose tables can be hidden, so that reading them fails.
final class BreakableStack: Sendable {
    let stack: Stack
    private let reports = Shared<[String]>([])

    /// Makes one; without a model, one of the guide.
    init(model: NSManagedObjectModel? = nil) throws {
        stack = try model.map { try Stack(.database, model: $0) } ?? Stack(.database)
        stack.coordinator.unreportableErrorHandler = { [reports] _, doing in reports.update { $0.append(doing) } }
    }

    /// The reports so far, which are forgotten.
    func reported() -> [String] {
        let texts = reports.current
        reports.update { $0 = [] }
        return texts
    }

    /// The tables that tests hide.
    enum Table: String {
        case bureau
        case city
        case photo
        case user
        case venue
        case tagsOfVenues
    }

    /// Lets a table not be read, until ``show(_:)``.
    func hide(_ table: Table) throws { try rename(try name(of: table), "hidden") }

    /// Lets a table be read again.
    func show(_ table: Table) throws {
        try rename("hidden", stack.kind == .sqlite ? "Z\(table.rawValue.uppercased())" : table.rawValue)
    }

    /// Runs `body` while a table cannot be read, nor anything be found in the row cache.
    @discardableResult
    func withoutTable<T>(_ table: Table, _ body: () throws -> T) throws -> T {
        let name = try name(of: table)
        try rename(name, "hidden")
        defer { #expect(throws: Never.self) { try rename("hidden", name) } }
        return try body()
    }

    private func name(of table: Table) throws -> String {
        guard table == .tagsOfVenues else {
            return stack.kind == .sqlite ? "Z\(table.rawValue.uppercased())" : table.rawValue
        }
        let names = try stack.column(
            "SELECT name FROM sqlite_master WHERE type = 'table'",
            postgreSQL: """
                SELECT relname::text FROM pg_catalog.pg_class
                WHERE relkind = 'r' AND relnamespace = pg_catalog.current_schema()::regnamespace
                """
        )
        return try require(names.first { $0.wholeMatch(of: /Z_\d+(?:TAGS|VENUES)|tag_venues|venue_tags/) != nil })
    }

    private func rename(_ table: String, _ name: String) throws {
        // Relationships of other tables are not to follow the name.
        try stack.sql(
            "PRAGMA legacy_alter_table = ON; ALTER TABLE \(table) RENAME TO \(name)",
            postgreSQL: "ALTER TABLE \"\(table)\" RENAME TO \"\(name)\""
        )
        stack.coolDown()
    }
}
