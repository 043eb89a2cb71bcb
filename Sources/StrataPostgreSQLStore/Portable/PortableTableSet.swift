import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The new tables of a migration of a portable store, which others do not see yet.
///
/// It is used by the thread of its connection.
struct PortableTableSet {
    private let mapping: SQLMapping
    private let connection: Connection
    private let lease: ShapeLease

    init(_ mapping: SQLMapping, on connection: Connection, _ lease: ShapeLease) {
        self.mapping = mapping
        self.connection = connection
        self.lease = lease
    }

    /// Whether other objects of the schema have names of the tables, their sequences or their indexes.
    func hasTakenNames() throws -> Bool {
        var taken = PostgreSQLArray(.text)
        let indexes = PostgreSQLSchema.indexes(mapping).map(\.name.raw)
        for name in PostgreSQLSchema.names(mapping) + indexes { taken.append(name) }
        let found = try connection.query(
            """
            SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND c.relname::text = ANY($1) LIMIT 1
            """,
            [.array(taken)]
        )
        return found.rowCount > 0
    }

    /// Waits until the transactions end that have begun to write before the migration was announced.
    ///
    /// - Throws: ``PostgreSQLError``: 55P03 if that takes longer than the time-out.
    func waitForWriters(timeout: Double) throws {
        let end = ContinuousClock.now + .seconds(timeout)
        while true {
            do {
                return try PortableStep.transaction(on: connection, lease) {
                    try connection.command("SET LOCAL lock_timeout = 1000")
                    try OpenPostgreSQLStore.lockOutWriters(ofPortable: connection)
                }
            } catch let error as PostgreSQLError
                where error.sqlState == "55P03" && !connection.isBroken && .now < end
            {
                usleep(50_000)
            }
        }
    }

    /// Makes the tables and their sequences, unless they are there.
    ///
    /// - Parameters:
    ///   - order: The order of the keys of tables that have no rows yet.
    ///   - former: The sequence, in SQL, that has given out the keys of a table so far; `nil` if it has no rows yet.
    /// - Throws: ``ShapeLease/Lost``, ``PostgreSQLError``.
    func create(_ order: KeyOrder, continuing former: (SQLTable) -> String?) throws {
        let taken = PostgreSQLSchema.takenNames(mapping)
        for table in mapping.tables {
            var (start, order) = (Int64(1), order)
            if let former = former(table) {
                order = try PortableStep.repeating { try KeyOrder.order(of: former, connection) }
                // No process saves rows with keys of a later block any more.
                let last = try PortableStep.repeating { try connection.query("SELECT last_value FROM \(former)") }
                start = (last.firstInt64 ?? 1) + Int64(PostgreSQLSchema.keyBlock)
            }
            let sequence = PostgreSQLSchema.createSequence(PostgreSQLSchema.sequence(table), order, from: start)
            try make(PortableTables.repeatable(sequence))
            try make(PortableTables.repeatable(PostgreSQLSchema.create(table, as: table.name, besides: taken)))
        }
        for join in mapping.joinTables {
            try make(PortableTables.repeatable(PostgreSQLSchema.create(join, as: join.name, besides: taken)))
        }
    }

    /// Makes something, as the holder of the lease.
    private func make(_ sql: String) throws {
        guard try PortableStep.repeating({ try lease.take() }) else { throw ShapeLease.Lost() }
        try PortableStep.creation(sql, on: connection)
    }

    /// The last key in a table; that before the first one if it is empty.
    func lastKey(in table: SQLName) throws -> Int64 {
        try PortableStep.repeating {
            try connection.query("SELECT pg_catalog.max(\(mapping.dialect.naming.key)) FROM \(table)").firstInt64
        } ?? .min
    }

    /// Runs `body` for each piece of some rows, in the order of their keys, in a separate transaction.
    ///
    /// - Parameters:
    ///   - keys: A query for the keys, in the column `k`.
    ///   - first: The key after which the first piece begins.
    ///   - advance: Runs before each piece, and may cancel the rest.
    ///   - body: Copies the rows after one key, up to another one; it may run again.
    /// - Throws: ``ShapeLease/Lost``, ``PostgreSQLError``, and the errors of `advance` and of `body`.
    func eachPiece(
        of keys: String,
        startingAfter first: Int64,
        _ advance: () throws -> Void,
        _ body: (_ after: Int64, _ through: Int64) throws -> Void
    ) throws {
        var after = first
        while true {
            try advance()
            let next = try PortableStep.repeating {
                try connection.query(
                    """
                    SELECT pg_catalog.max(k) FROM (SELECT k FROM (\(keys)) AS a WHERE k > $1 ORDER BY k LIMIT \(WorkSize.piecewiseRows)) AS b
                    """,
                    [.int8(after)]
                ).firstInt64
            }
            guard let next else { return }
            try PortableStep.transaction(on: connection, lease) { try body(after, next) }
            after = next
        }
    }

    /// Makes the indexes, unless they are there.
    ///
    /// - Parameter failure: The error of rows that a unique index does not allow; `nil` if there are none.
    /// - Throws: The result of `failure`; ``ShapeLease/Lost``, ``PostgreSQLError``.
    func makeIndexes(_ failure: (PostgreSQLSchema.Index) throws -> (any Error)?) throws {
        for index in PostgreSQLSchema.indexes(mapping) {
            guard try PortableStep.repeating({ try lease.take() }) else { throw ShapeLease.Lost() }
            do { try PortableStep.statement(PortableTables.repeatable(index.sql), on: connection) } catch let error
                as PostgreSQLError where ["23505", "42P07"].contains(error.sqlState) && !connection.isBroken
            {
                if let failure = try failure(index) { throw failure }
                // Another process has made it at the same moment.
            }
        }
    }
}
