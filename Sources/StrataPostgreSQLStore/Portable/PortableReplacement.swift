import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// A new store that is made beside a portable one, in a separate schema, and replaces it in steps each of which may be run again.
///
/// Until then the old store can be read, and nobody may write to it, as during a ``PortableMigration``. At the end the rows of the new store are copied
/// into new tables of the old one, and one transaction that changes rows makes these tables count.
///
/// It is used by one thread.
package final class PortableReplacement {
    /// Where the new store is made.
    package let url: URL
    private let target: ConnectionTarget
    private let working: ConnectionTarget
    private let schema: Schema
    private let configuration: String?
    /// The old store.
    private let source: SQLMapping
    private let timeout: Double
    private let pool: ConnectionPool
    private let connection: Connection
    private let lease: ShapeLease
    private let keeper: ShapeKeeper
    /// The number of the new tables.
    private var number: Int

    /// Keeps others from writing to a store, and removes what a killed replacement has left.
    ///
    /// The result is `nil` if the store has other hashes than expected, because another process was first.
    ///
    /// - Parameters:
    ///   - old: The store.
    ///   - schema: Its model.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - hashes: The version hashes that the store is expected to have.
    ///   - timeout: How many seconds others may keep the store locked.
    /// - Throws: `persistentStoreTimeout` (134090) if others migrate the store, or write to it, for too long. `migration` (134110) if an obstacle
    ///   prevents new tables. Errors of the database.
    package init?(
        of old: URL,
        schema: Schema,
        configuration: String?,
        hashes: [String: Data],
        timeout: Double
    ) throws {
        let target: ConnectionTarget
        do {
            target = try ConnectionTarget(old)
            url = try PostgreSQLReplacement.beside(old, target)
            working = try ConnectionTarget(url)
        } catch {
            throw PostgreSQLBoundary.cocoaError(describing: error, while: .migrating, at: "")
        }
        self.target = target
        self.schema = schema
        self.configuration = configuration
        self.timeout = timeout
        let pool = OpenPostgreSQLStore.pool(target, size: 1, timeout: timeout)
        self.pool = pool
        let connection = try PostgreSQLBoundary.run(.migrating, at: target.place) { try pool.open() }
        connection.isPortable = true
        self.connection = connection
        let lease = ShapeLease(on: connection)
        self.lease = lease
        let taken = try PostgreSQLBoundary.run(.migrating, at: target.place) {
            try lease.take(within: timeout, at: target, on: connection) {
                schema.hashesByPresentRule(of: $0.versionHashes) == hashes
            }
        }
        guard let taken else { return nil }
        keeper = ShapeKeeper(lease.holder, at: target)
        do {
            source = try SQLMapping(
                schema,
                configuration: configuration,
                generation: taken.generations.current
            )
            number = taken.generations.last + 1
            try PostgreSQLBoundary.run(.migrating, at: target.place) { [source, number] in
                let successors = PostgreSQLSchema.contents(source).map { table, _ in
                    TableBelongings.Successor(
                        old: table,
                        new: SQLNaming.postgresql.name(StoreGenerations.name(table.raw, number)),
                        columns: []
                    )
                }
                try PortableBelongings(of: source, connection).requireNoObstacles(
                    successors,
                    at: old,
                    place: target.place
                )
                try PortableUpkeep.change(on: connection, lease, target) { generations, _ in
                    generations.giveUp()
                    generations.last = number
                    // Nobody else can continue it.
                    generations.pending = .init(number: number, plan: Data(UUID().uuidString.utf8), names: [])
                }
                try PortableTableSet(source, on: connection, lease).waitForWriters(timeout: timeout)
            }
            try PostgreSQLEngine.destroy(at: url, timeout: timeout)
        } catch {
            keeper.end()
            try? PortableUpkeep.giveUp(nil, on: connection, lease, target)
            lease.release()
            throw error
        }
    }

    // MARK: - A copy

    /// Makes the new store as a copy of the old one, with its keys, its history and its UUID.
    package func copyRows() throws {
        try PostgreSQLBoundary.run(.migrating, at: target.place) {
            connection.patience = max(timeout, PostgreSQLEngine.workPatience)
            let pool = OpenPostgreSQLStore.pool(working, size: 1, timeout: timeout)
            defer { pool.close() }
            try pool.withConnection { connection in
                let statements = ["CREATE SCHEMA IF NOT EXISTS \(working.quotedSchema)", PortableTables.leases]
                for statement in statements + PortableTables.statements(PostgreSQLSchema(source)) {
                    try PortableStep.creation(statement, on: connection)
                }
            }
            for table in source.tables {
                let columns = [naming.key, naming.entity, naming.version] + table.columns.map(\.name)
                try copy(table.name, key: naming.key, columns, into: "\(working.quotedSchema).\(table.name)")
            }
            for join in source.joinTables {
                let columns = [join.first, join.second] + join.orders
                try copy(join.name, key: join.first, columns, into: "\(working.quotedSchema).\(join.name)")
            }
            try step {
                for (table, columns) in books {
                    let list = columns.map(\.description).joined(separator: ", ")
                    try connection.command(
                        "INSERT INTO \(working.quotedSchema).\(table) (\(list)) SELECT \(list) FROM \(table)"
                    )
                }
                let metadata = try PostgreSQLEngine.existing(connection, target.place).withoutOtherTables
                try connection.query(
                    """
                    INSERT INTO \(working.quotedSchema).strata_store (format, uuid, metadata, model)
                    SELECT format, uuid, $1, model FROM strata_store
                    """,
                    [.bytea(try metadata.archived())]
                )
            }
            for sequence in PostgreSQLSchema.sequences(source) {
                try setSequence("\(working.quotedSchema).\(sequence)", to: sequence.description)
            }
        }
    }

    private var naming: SQLNaming { source.dialect.naming }

    /// The bookkeeping tables that are replaced as a whole, with their columns.
    private var books: [PostgreSQLSchema.Contents] {
        PostgreSQLSchema.contents(source).prefix(PostgreSQLSchema.books.count).filter { $0.table.raw != "strata_store" }
    }

    private func step(_ body: () throws -> Void) throws {
        try PortableStep.transaction(on: connection, lease, body)
    }

    /// Copies the rows of a table to another one, piece by piece.
    private func copy(_ table: SQLName, key: SQLName, _ columns: [SQLName], into other: String, from place: String = "")
        throws
    {
        let list = columns.map(\.description).joined(separator: ", ")
        try PortableTableSet(source, on: connection, lease).eachPiece(
            of: "SELECT \(key) AS k FROM \(place)\(table)",
            startingAfter: .min
        ) {
        } _: {
            try connection.query(
                """
                INSERT INTO \(other) (\(list)) SELECT \(list) FROM \(place)\(table) WHERE \(key) > $1 AND \(key) <= $2
                ON CONFLICT DO NOTHING
                """,
                [.int8($0), .int8($1)]
            )
        }
    }

    /// Sets a sequence to the state of another one, unless it is further.
    private func setSequence(_ name: String, to other: String) throws {
        _ = try PortableStep.repeating {
            try connection.query(
                """
                SELECT pg_catalog.setval($1::text::regclass, GREATEST(o.last_value, n.last_value),
                o.is_called AND o.last_value >= n.last_value OR n.is_called AND n.last_value >= o.last_value)
                FROM \(other) AS o, \(name) AS n
                """,
                [.text(name)]
            )
        }
    }

    // MARK: - The end

    /// Replaces the old store by the new one, which must not be open any more.
    ///
    /// - Parameters:
    ///   - schema: The model of the new store.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    /// - Throws: `migration` (134110) if another process has taken the store over meanwhile; errors of the database.
    package func finish(_ schema: Schema, configuration: String?) throws {
        do {
            try PostgreSQLBoundary.run(.migrating, at: target.place) {
                do { try replace(schema, configuration) } catch is ShapeLease.Lost {
                    throw PostgreSQLError(.server, "another process has taken the migration over")
                }
            }
        } catch {
            abandon()
            throw error
        }
        keeper.end()
        try? PortableUpkeep.dropLeftovers(on: connection, lease, target)
        _ = try? PostgreSQLEngine.destroy(at: url, timeout: timeout)
        if !connection.isBroken { lease.release() }
    }

    private func replace(_ schema: Schema, _ configuration: String?) throws {
        connection.patience = max(timeout, PostgreSQLEngine.workPatience)
        let new = try PostgreSQLEngine.withConnection(to: url, .migrating, timeout: timeout) { connection, place in
            try PostgreSQLEngine.existing(connection, place)
        }
        let made = try SQLMapping(schema, configuration: configuration, generation: new.generations.current)
        let mapping = try name(schema, configuration)
        let place = "\(working.quotedSchema)."
        let tables = PortableTableSet(mapping, on: connection, lease)
        let sequences = Dictionary(
            zip(mapping.tables, made.tables).map { ($0.name, "\(place)\(PostgreSQLSchema.sequence($1))") }
        ) { first, _ in first }
        try tables.create { sequences[$0.name] }
        for (table, from) in zip(mapping.tables, made.tables) {
            let columns = [naming.key, naming.entity, naming.version] + table.columns.map(\.name)
            try copy(from.name, key: naming.key, columns, into: table.name.description, from: place)
            try requireAllRows(of: table.name, from: "\(place)\(from.name)")
        }
        for (join, from) in zip(mapping.joinTables, made.joinTables) {
            let columns = [join.first, join.second] + join.orders
            try copy(from.name, key: join.first, columns, into: join.name.description, from: place)
            try requireAllRows(of: join.name, from: "\(place)\(from.name)")
        }
        try tables.makeIndexes { _ in nil }
        try handOn(to: mapping, schema, configuration)
        try setSequence("strata_transaction_seq_seq", to: "\(place)strata_transaction_seq_seq")
        try step { try switchTables(to: mapping, new) }
    }

    /// Chooses names for the new tables that nothing else has, and notes them, so that they can be dropped.
    private func name(_ schema: Schema, _ configuration: String?) throws -> SQLMapping {
        var mapping: SQLMapping?
        try PortableUpkeep.change(on: connection, lease, target) { generations, _ in
            guard generations.pending?.number == number else { throw ShapeLease.Lost() }
            var found = try SQLMapping(schema, configuration: configuration, generation: number)
            while try PortableTableSet(found, on: connection, lease).hasTakenNames() {
                number += 1
                found = try SQLMapping(schema, configuration: configuration, generation: number)
            }
            generations.last = number
            generations.pending = .init(number: number, plan: Data(), names: PostgreSQLSchema.names(found))
            mapping = found
        }
        guard let mapping else { throw ShapeLease.Lost() }
        return mapping
    }

    private func requireAllRows(of table: SQLName, from other: String) throws {
        let counts = try PortableStep.repeating {
            try connection.query(
                "SELECT (SELECT pg_catalog.count(*) FROM \(other)), (SELECT pg_catalog.count(*) FROM \(table))"
            )
        }
        guard counts[0].int64(0) != counts[0].int64(1) else { return }
        throw PostgreSQLError(.server, "of \(counts[0].int64(0)) rows, \(counts[0].int64(1)) were copied to \(table.raw)")
    }

    /// Gives the new tables what the old tables of the same names have.
    private func handOn(to mapping: SQLMapping, _ schema: Schema, _ configuration: String?) throws {
        let belongings = try PortableBelongings(of: source, connection)
        // The names that the models give.
        let former = try SQLMapping(self.schema, configuration: self.configuration, generation: 0)
        let later = try SQLMapping(schema, configuration: configuration, generation: 0)
        for (old, plain) in zip(source.tables, former.tables) {
            guard let index = later.tables.firstIndex(where: { $0.name == plain.name }) else { continue }
            let new = mapping.tables[index]
            let columns = [naming.key, naming.entity, naming.version] + new.columns.map(\.name)
            try belongings.handOn(to: .init(old: old.name, new: new.name, columns: columns.map { ($0, $0) }))
            try belongings.handOnSequence(PostgreSQLSchema.sequence(old), to: PostgreSQLSchema.sequence(new))
        }
        for (old, plain) in zip(source.joinTables, former.joinTables) {
            guard let index = later.joinTables.firstIndex(where: { $0.name == plain.name }) else { continue }
            let new = mapping.joinTables[index]
            let columns = [new.first, new.second] + new.orders
            try belongings.handOn(to: .init(old: old.name, new: new.name, columns: columns.map { ($0, $0) }))
        }
    }

    /// Makes the new tables count, with the history and the metadata of the new store, in the open transaction, which changes rows only.
    private func switchTables(to mapping: SQLMapping, _ new: StoreMetadata) throws {
        let found = try StoreMetadata.locked(connection, target.place)
        guard found.generations.pending?.number == number else { throw ShapeLease.Lost() }
        for (table, columns) in books {
            let list = columns.map(\.description).joined(separator: ", ")
            try connection.command("DELETE FROM \(table)")
            try connection.command(
                "INSERT INTO \(table) (\(list)) SELECT \(list) FROM \(working.quotedSchema).\(table)"
            )
        }
        var metadata = new
        metadata.generations = found.generations
        metadata.generations.replace(found.tableNames ?? PostgreSQLSchema.names(source), by: number)
        metadata.setTables(mapping)
        try metadata.write(connection)
        try connection.command("UPDATE strata_store SET model = (SELECT model FROM \(working.quotedSchema).strata_store)")
    }

    /// Removes the new store, and lets others write to the old one again.
    package func abandon() {
        keeper.end()
        _ = try? PostgreSQLEngine.destroy(at: url, timeout: timeout)
        if connection.isBroken {
            // Others give the migration up when the lease has ended.
            return
        }
        try? PortableUpkeep.giveUp(nil, on: connection, lease, target)
        try? PortableUpkeep.dropLeftovers(on: connection, lease, target)
        lease.release()
    }
}
