import Foundation
import StrataPostgreSQL
import StrataSQL

/// The privileges, owners and settings that the new tables of a portable store get from the old ones.
///
/// The old tables are dropped, so what others have built on them prevents the migration.
struct PortableBelongings {
    private let source: SQLMapping
    private let belongings: TableBelongings
    private let tables: [SQLName]

    /// Reads them.
    init(of source: SQLMapping, _ connection: Connection) throws {
        self.source = source
        tables = source.tables.map(\.name) + source.joinTables.map(\.name)
        let sequences = source.tables.map { PostgreSQLSchema.sequence($0) }
        let names = tables + sequences
        belongings = try PortableStep.repeating { try TableBelongings(of: names, connection) }
    }

    /// Refuses a migration that would lose what others have built.
    ///
    /// - Parameters:
    ///   - successors: The new tables. Triggers name their tables, so they cannot move to tables with other names.
    ///   - url: The store.
    ///   - place: The name of the store in messages.
    /// - Throws: `migration` (134110) with the obstacles.
    func requireNoObstacles(_ successors: [TableBelongings.Successor], at url: URL, place: String) throws {
        let columns = PostgreSQLSchema.columns(source).filter { tables.contains($0.key) }
        try PortableStep.repeating {
            try belongings.requireNoObstacles(
                toDropping: tables,
                replacedBy: successors,
                keeping: columns,
                at: url,
                place: place
            )
        }
    }

    /// Gives a new table what its predecessor has; it may be done again.
    func handOn(to successor: TableBelongings.Successor) throws {
        try PortableStep.repeating { try belongings.handOn(to: successor) }
    }

    /// Gives a new sequence what its predecessor has.
    func handOnSequence(_ old: SQLName, to new: SQLName) throws {
        try PortableStep.repeating {
            try belongings.handOn(to: .init(old: old, new: new, columns: []), isSequence: true)
        }
    }
}
