import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PortableReplacement {
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
        end()
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
        try tables.create(keyOrder) { sequences[$0.name] }
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
        var result: (number: Int, mapping: SQLMapping)?
        try PortableUpkeep.change(on: connection, lease, target) { generations, _ in
            guard generations.pending?.number == number else { throw ShapeLease.Lost() }
            var free = number
            var mapping = try SQLMapping(schema, configuration: configuration, generation: free)
            while try PortableTableSet(mapping, on: connection, lease).hasTakenNames() {
                free += 1
                mapping = try SQLMapping(schema, configuration: configuration, generation: free)
            }
            generations.last = free
            generations.pending = .init(number: free, plan: Data(), names: PostgreSQLSchema.names(mapping))
            result = (free, mapping)
        }
        guard let result else { throw ShapeLease.Lost() }
        number = result.number
        return result.mapping
    }

    private func requireAllRows(of table: SQLName, from other: String) throws {
        let counts = try PortableStep.repeating {
            try connection.query(
                "SELECT (SELECT pg_catalog.count(*) FROM \(other)), (SELECT pg_catalog.count(*) FROM \(table))"
            )
        }
        guard counts[0].int64(0) != counts[0].int64(1) else { return }
        throw PostgreSQLError(
            .server,
            "of \(counts[0].int64(0)) rows, \(counts[0].int64(1)) were copied to \(table.raw)"
        )
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
        try connection.command(
            "UPDATE strata_store SET model = (SELECT model FROM \(working.quotedSchema).strata_store)"
        )
    }
}
