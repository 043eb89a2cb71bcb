import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The steps of one migration of a portable store by SQL, from the announcement to the switch.
///
/// It is used by the thread of its connection.
struct PortableWork {
    private let migration: PostgreSQLMigration
    /// The number of the new tables.
    let number: Int
    private let lease: ShapeLease
    private let target: ConnectionTarget

    private var connection: Connection { migration.connection }

    init(_ migration: PostgreSQLMigration, number: Int, _ lease: ShapeLease, _ target: ConnectionTarget) {
        self.migration = migration
        self.number = number
        self.lease = lease
        self.target = target
    }

    // MARK: - The plan

    /// The names of the new tables and sequences.
    var names: [String] { PostgreSQLSchema.names(migration.destination) }

    private var tables: PortableTableSet { PortableTableSet(migration.destination, on: connection, lease) }

    /// A digest of the statements that make and fill the new tables.
    ///
    /// Another process with the same digest may continue the work of this one.
    var digest: Data {
        get throws {
            let fills = migration.layout.tables.compactMap { table in
                migration.filling(table, as: table.destination.name, keys: (0, 0)).map { sql, values in
                    var bytes: [UInt8] = []
                    for value in values {
                        value.write(to: &bytes)
                        bytes.append(0)
                    }
                    return "\(sql) \(Data(bytes).base64EncodedString())"
                }
            }
            let pairs = migration.layout.joins.flatMap { $0.fill($0.destination.name) }
            let text = PostgreSQLSchema(migration.destination).statements + fills + pairs
            return Data(SHA2.sha256(Data(text.joined(separator: ";").utf8)))
        }
    }

    /// Whether other objects of the schema have names of new tables, sequences or indexes.
    func hasTakenNames() throws -> Bool { try tables.hasTakenNames() }

    /// Refuses the migration if others depend on the tables, or have added to them.
    ///
    /// - Throws: `migration` (134110) with the obstacles.
    func requireNoObstacles() throws {
        try PortableBelongings(of: migration.source, connection).requireNoObstacles(
            migration.successors,
            at: migration.request.url,
            place: target.place
        )
    }

    // MARK: - The steps

    /// Makes all steps after the announcement.
    func run(_ request: PostgreSQLMigrationRequest) throws {
        try tables.waitForWriters(timeout: request.timeout)
        try PortableStep.repeating {
            try migration.checkRows(at: request.url, place: target.place, mayDropValues: request.mayDropValues)
        }
        let order = try PortableStep.repeating { try KeyOrder.order(in: migration.source, connection) }
        try tables.create(order) { table in
            guard let source = migration.layout.tables.first(where: { $0.destination.name == table.name })?.source
            else { return nil }
            return PostgreSQLSchema.sequence(source).description
        }
        try copyRows(request.advance)
        for table in migration.layout.tables where table.refolds {
            try FoldedColumns(table.destination, migration.naming)?.fill(connection, step)
        }
        try tables.makeIndexes { try failure(of: $0) }
        try migration.computeDerived(piece: WorkSize.piecewiseRows, step)
        let belongings = try PortableBelongings(of: migration.source, connection)
        for successor in migration.successors { try belongings.handOn(to: successor) }
        for (old, new) in sequencePairs { try belongings.handOnSequence(old, to: new) }
        try requireAllRows()
        try request.advance(Self.end)
        try step { try switchTables() }
    }

    /// The part of the work after which the migration cannot be cancelled any more.
    private static let end = 0.99

    private func step(_ body: () throws -> Void) throws {
        try PortableStep.transaction(on: connection, lease, body)
    }

    private var sequencePairs: [(SQLName, SQLName)] {
        migration.layout.tables.compactMap { table in
            table.source.map { (PostgreSQLSchema.sequence($0), PostgreSQLSchema.sequence(table.destination)) }
        }
    }

    private func copyRows(_ advance: (Double) throws -> Void) throws {
        let layout = migration.layout
        let total = Double(layout.tables.count + layout.joins.count + 1)
        for (number, table) in layout.tables.enumerated() {
            try copy(table) { try advance(Self.end * Double(number) / total) }
        }
        for (number, join) in layout.joins.enumerated() {
            try copy(join) { try advance(Self.end * Double(layout.tables.count + number) / total) }
        }
    }

    private func copy(_ table: TableMigration, _ advance: () throws -> Void) throws {
        guard let source = table.source else { return }
        let naming = migration.naming
        try tables.eachPiece(
            of: "SELECT \(naming.key) AS k FROM \(source.name)",
            startingAfter: tables.lastKey(in: table.destination.name),
            advance
        ) { after, through in
            guard let (sql, values) = migration.filling(table, as: table.destination.name, keys: (after, through))
            else { return }
            try connection.query(sql, values)
        }
    }

    private func copy(_ join: JoinMigration, _ advance: () throws -> Void) throws {
        guard let pairs = join.pairs else { return }
        // The pairs of the one direction come first, because they have the positions.
        for statement in join.fill(join.destination.name, piece: "o > $1 AND o <= $2") {
            try tables.eachPiece(of: "SELECT o AS k FROM (\(pairs)) AS p", startingAfter: .min, advance) {
                try connection.query(statement, [.int8($0), .int8($1)])
            }
        }
    }

    /// Ensures that each row which goes on is in its new table.
    ///
    /// - Throws: `migration` (134110) if one is missing, which would be a fault of the store or of the server.
    private func requireAllRows() throws {
        for table in migration.layout.tables {
            guard let source = table.source else { continue }
            let counts = try PortableStep.repeating {
                try connection.query(
                    """
                    SELECT (SELECT pg_catalog.count(*) FROM \(source.name) AS t\(table.condition)),
                    (SELECT pg_catalog.count(*) FROM \(table.destination.name))
                    """
                )
            }
            guard counts[0].int64(0) != counts[0].int64(1) else { continue }
            throw PostgreSQLError(
                .server,
                "of \(counts[0].int64(0)) rows of \(source.name.raw) that go on, \(counts[0].int64(1)) were copied"
            )
        }
    }

    private func failure(of index: PostgreSQLSchema.Index) throws -> (any Error)? {
        guard let constraint = index.constraint else { return nil }
        return try migration.failure(
            of: constraint,
            in: index.table,
            columns: constraint.columns,
            entity: migration.naming.entity
        )
    }

    // MARK: - The switch

    /// Makes the new tables count, in the open transaction, which changes rows only.
    private func switchTables() throws {
        let found = try StoreMetadata.locked(connection, target.place)
        guard found.generations.pending?.number == number,
            migration.request.migration.starts(at: found.versionHashes)
        else { throw ShapeLease.Lost() }
        migration.metadata = found
        try migration.migrateHistory()
        migration.metadata.generations.replace(
            found.tableNames ?? PostgreSQLSchema.names(migration.source),
            by: number
        )
        try migration.writeMetadata()
    }
}

extension StoreGenerations {
    /// Makes tables with another number count; the old ones are to be dropped.
    mutating func replace(_ old: [String], by number: Int) {
        leftovers += old
        current = number
        last = max(last, number)
        pending = nil
    }
}
