import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Ends what killed migrations of a portable store have left.
///
/// Whatever fails here is left to the next one that opens the store.
enum PortableUpkeep {
    /// How many seconds it waits for the server, and for a table that others read.
    private static let patience = 2.0

    /// Gives up a migration whose process has died, and drops the tables that do not count any more.
    ///
    /// - Parameters:
    ///   - metadata: The metadata of the store, as it was read before.
    ///   - url: The store.
    ///   - target: Where it is.
    static func tidyUp(_ metadata: StoreMetadata, of url: URL, at target: ConnectionTarget) {
        guard metadata.generations.needsUpkeep else { return }
        try? withLease(of: target) { connection, lease in
            try giveUp(nil, on: connection, lease, target)
            try dropLeftovers(of: url, on: connection, lease, target)
        }
    }

    /// Gives up a migration whose process has died, so that others may write again.
    static func giveUpDeadMigration(of target: ConnectionTarget) {
        try? withLease(of: target) { try giveUp(nil, on: $0, $1, target) }
    }

    /// Runs `body` with the lease, unless another process has it.
    private static func withLease(
        of target: ConnectionTarget,
        _ body: (Connection, ShapeLease) throws -> Void
    ) throws {
        let pool = OpenPostgreSQLStore.pool(target, size: 1, timeout: patience)
        defer { pool.close() }
        try pool.withConnection { connection in
            connection.isPortable = true
            let lease = ShapeLease(on: connection)
            guard try pool.repeatingConflicts({ try lease.take() }) else { return }
            defer { lease.release() }
            try body(connection, lease)
        }
    }

    /// Changes the numbers in the metadata, in one transaction of the holder of the lease.
    ///
    /// - Returns: The metadata afterwards.
    /// - Throws: ``ShapeLease/Lost``, ``PostgreSQLError``, and the errors of `change`.
    @discardableResult
    static func change(
        on connection: Connection,
        _ lease: ShapeLease,
        _ target: ConnectionTarget,
        _ change: (inout StoreGenerations, StoreMetadata) throws -> Void
    ) throws -> StoreMetadata {
        try PortableStep.transaction(on: connection, lease) {
            var metadata = try StoreMetadata.locked(connection, target.place)
            var generations = metadata.generations
            try change(&generations, metadata)
            guard generations != metadata.generations else { return metadata }
            metadata.generations = generations
            try metadata.write(connection)
            return metadata
        }
    }

    /// Gives up a migration: others may write again.
    ///
    /// - Parameters:
    ///   - number: Its number; `nil` for any.
    ///   - connection: A connection to the store.
    ///   - lease: The lease, which is held.
    ///   - target: Where the store is.
    /// - Throws: ``ShapeLease/Lost``, ``PostgreSQLError``.
    static func giveUp(
        _ number: Int?,
        on connection: Connection,
        _ lease: ShapeLease,
        _ target: ConnectionTarget
    ) throws {
        try change(on: connection, lease, target) { generations, _ in
            if number == nil || generations.pending?.number == number { generations.giveUp() }
        }
    }

    /// Drops what killed migrations have left.
    ///
    /// - Throws: ``ShapeLease/Lost``, ``PostgreSQLError``, and errors of destroying a store.
    static func dropLeftovers(
        of url: URL,
        on connection: Connection,
        _ lease: ShapeLease,
        _ target: ConnectionTarget
    ) throws {
        try dropTables(on: connection, lease, target)
        guard let metadata = try StoreMetadata.read(connection, target.place) else { return }
        for number in metadata.generations.schemas where number != metadata.generations.pending?.number {
            try PostgreSQLEngine.destroy(at: PortableReplacement.url(beside: url, target, number), timeout: patience)
            try change(on: connection, lease, target) { generations, _ in
                generations.schemas.removeAll { $0 == number }
            }
        }
    }

    /// Drops the tables and sequences that do not count any more, each in a separate statement.
    ///
    /// A table that others still use, or depend on, stays until the next time.
    private static func dropTables(on connection: Connection, _ lease: ShapeLease, _ target: ConnectionTarget) throws {
        guard let metadata = try StoreMetadata.read(connection, target.place) else { return }
        let leftovers = metadata.generations.leftovers
        guard !leftovers.isEmpty else { return }
        var names = PostgreSQLArray(.text)
        for name in leftovers { names.append(name) }
        let there = try PortableStep.repeating {
            try connection.query(
                """
                SELECT c.relname::text, c.relkind = 'S' FROM pg_catalog.pg_class AS c
                JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                WHERE n.nspname = pg_catalog.current_schema() AND c.relname::text = ANY($1) AND c.relkind IN ('r', 'p', 'S')
                """,
                [.array(names)]
            )
        }
        // Readers of the old tables are not waited for, as a wait keeps others from the tables.
        if !connection.isPooled { try connection.command("SET lock_timeout = \(Int(patience * 1000 / 2))") }
        var left: Set<String> = []
        for row in there.rows {
            let name = SQLNaming.postgresql.name(row.string(0))
            do {
                try PortableStep.statement(
                    "DROP \(row.int64(1) != 0 ? "SEQUENCE" : "TABLE") IF EXISTS \(name)",
                    on: connection
                )
            } catch let error as PostgreSQLError where error.kind == .server && !connection.isBroken {
                left.insert(name.raw)
            }
        }
        try change(on: connection, lease, target) { generations, _ in
            generations.leftovers.removeAll { leftovers.contains($0) && !left.contains($0) }
        }
    }
}
