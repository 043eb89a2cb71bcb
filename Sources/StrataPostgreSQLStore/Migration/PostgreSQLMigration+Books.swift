import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

// The records that a store keeps about itself: metadata, the copy of the model, and the history.

extension PostgreSQLMigration {
    func writeMetadata() throws {
        metadata.setModel(request.migration.destinationHashes, request.versionIdentifiers)
        metadata.setTables(destination)
        try metadata.write(connection)
        try connection.query(
            "UPDATE strata_store SET model = $1",
            [request.modelCache.map { .bytea($0) } ?? .null(.bytea)]
        )
    }

    /// Changes the history to the new entities, and notes the migration in it.
    func migrateHistory() throws {
        let history = HistoryMigration(request.migration, from: source, to: destination)
        for entity in history.entities { try moveChanges(of: entity) }
        try connection.query(
            "DELETE FROM strata_change WHERE entity <> ALL($1)",
            [.array(PostgreSQLArray(history.entities.map { Int64($0.from.number) }))]
        )
        if let renumbering = history.renumbering("entity") {
            try connection.command("UPDATE strata_change \(renumbering)")
        }
        try recordMigration()
    }

    /// Adds a transaction without changes, with the author that Apple uses.
    private func recordMigration() throws {
        guard try connection.query("SELECT 1 FROM strata_history").rowCount > 0 else { return }
        let digest =
            metadata.values["NSStoreModelVersionHashesDigest"] as? String
            ?? SchemaHashes.digest(of: metadata.versionHashes)
        // In a portable store each transaction has its number from the beginning.
        let number =
            connection.isPortable
            ? try connection.query("UPDATE strata_history SET last = last + 1 RETURNING last").firstInt64 : nil
        try connection.query(
            "INSERT INTO strata_transaction (id, time, author, process, number) VALUES ($1, \(HistoryQueries.now), $2, $3, $4)",
            [
                .uuid(UUID()),
                .text("com.apple.coredata.schemamigrator: lightweight migration from model with digest { \(digest) }"),
                .text(ProcessInfo.processInfo.processName), number.map { .int8($0) } ?? .null(.int8),
            ]
        )
    }

    /// Rewrites the changes of an entity: the bits of changed properties have other positions, and the values of
    /// deleted objects have other names.
    private func moveChanges(of entity: HistoryMigration.Entity) throws {
        var last: (Int64, Int64) = (-1, -1)
        while true {
            let found = try connection.query(
                """
                SELECT seq, place, mask, tombstone FROM strata_change
                WHERE entity = $1 AND (mask IS NOT NULL OR tombstone IS NOT NULL) AND (seq, place) > ($2, $3)
                ORDER BY seq, place LIMIT \(WorkSize.rewrittenChanges)
                """,
                [.int8(Int64(entity.from.number)), .int8(last.0), .int8(last.1)]
            )
            guard found.rowCount > 0 else { return }
            var arrays = ColumnArrays([.int8, .int8, .bytea, .bytea])
            for row in found.rows {
                last = (row.int64(0), row.int64(1))
                arrays.append(last.0, to: 0)
                arrays.append(last.1, to: 1)
                let mask = row.isNull(2) ? nil : entity.moved(row.bytes(2))
                arrays.append(mask.map { .bytea(Data($0.bytes)) } ?? .null(.bytea), to: 2)
                let tombstone = row.isNull(3) ? nil : Tombstone.renamed(row.data(3), entity.names)
                arrays.append(tombstone.map { .bytea($0) } ?? .null(.bytea), to: 3)
                if arrays.endRow() { try writeChanges(arrays.removeRows()) }
            }
            if arrays.rowCount > 0 { try writeChanges(arrays.removeRows()) }
        }
    }

    /// Writes the bits and the kept values of changes: arrays of numbers, places, bits and values.
    private func writeChanges(_ arrays: [PostgreSQLValue]) throws {
        try connection.query(
            """
            UPDATE strata_change AS c SET mask = u.mask, tombstone = u.tombstone
            FROM \(unnested([.int8, .int8, .bytea, .bytea], from: 1)) AS u (seq, place, mask, tombstone)
            WHERE c.seq = u.seq AND c.place = u.place
            """,
            arrays
        )
    }
}

extension Tombstone {
    /// The values under their new names; values of removed properties are left out.
    fileprivate static func renamed(_ data: Data, _ names: [String: String]) -> Data? {
        guard let list = PropertyListSerialization.dictionary(from: data) else { return nil }
        var values: [String: Any] = [:]
        for (name, value) in list { if let new = names[name] { values[new] = value } }
        return try? PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
    }
}
