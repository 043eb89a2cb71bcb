import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLEngine {
    /// Reads the head of a backup.
    ///
    /// - Throws: `fileReadCorruptFile` (259) if the file is no backup, and errors of the disk.
    package static func headOfBackup(at file: URL) throws -> BackupHead { try BackupReader(file).head }

    /// Makes a store of a backup, in one transaction.
    ///
    /// The store has the UUID, the keys, the versions, the history and the consumers of the one that was copied.
    ///
    /// - Parameters:
    ///   - file: The backup.
    ///   - url: The place of the store, which must not exist yet. The schema is created if it does not exist.
    ///   - schema: The model of the store.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - timeout: How many seconds others may keep the place locked.
    /// - Returns: The numbers of the rows.
    /// - Throws: `fileWriteFileExists` (516) if there is a store. `fileReadCorruptFile` (259) if the file is no complete
    ///   backup of a store with this model. `fileWriteNoPermission` (513) if the role may not create the tables. Errors of
    ///   the database and of the disk. Nothing is left of the new store then.
    package static func restore(
        _ file: URL,
        to url: URL,
        _ schema: Schema,
        configuration: String?,
        timeout: Double
    ) throws -> BackupFigures {
        let reader = try BackupReader(file)
        guard reader.head.form == StoreFormat.current else {
            throw BackupFailure.damaged(
                "its form is \(reader.head.form), and this version of the library knows \(StoreFormat.current)"
            )
        }
        let metadata = try reader.head.storeMetadata()
        let mapping = try SQLMapping(schema, configuration: configuration, generation: metadata.generations.current)
        return try withConnection(to: url, .restoring, timeout: timeout) { connection, _ in
            let target = try ConnectionTarget(url)
            try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED; \(workSetting)")
            try OpenPostgreSQLStore.lockShape(of: target, connection)
            try OpenPostgreSQLStore.requireUse(of: target, connection)
            guard try !StoreMetadata.hasTable(connection) else {
                throw CocoaError.described(
                    .fileWriteFileExists,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            "There is a store at \(target.place) already, which is not replaced."
                    ]
                )
            }
            connection.patience = max(timeout, workPatience)
            try OpenPostgreSQLStore.makeSchema(at: target, on: connection)
            let schema = PostgreSQLSchema(mapping, keys: reader.head.keyOrder)
            try PostgreSQLSchema.make(schema.tables, on: connection)
            let figures = try readTables(reader, mapping, connection)
            try setSequences(reader.head, mapping, connection)
            try PostgreSQLSchema.make(schema.indexes, on: connection)
            if reader.head.hasForeignKeys { try makeForeignKeys(mapping, connection, target) }
            try connection.query(
                "INSERT INTO strata_store (format, uuid, metadata, model) VALUES ($1, $2, $3, $4)",
                [
                    .int8(StoreFormat.current), .text(metadata.uuid), .bytea(reader.head.metadata),
                    reader.head.model.map { .bytea($0) } ?? .null(.bytea),
                ]
            )
            // A session of a store whose tables were dropped here would otherwise continue in this store.
            try StoreSessions.endOthers(of: target, connection)
            try connection.commit()
            return figures
        }
    }

    /// Copies the rows into the new tables.
    private static func readTables(
        _ reader: BackupReader,
        _ mapping: SQLMapping,
        _ connection: Connection
    ) throws -> BackupFigures {
        let hierarchies = Set(mapping.tables.map(\.name.raw))
        var missing = Dictionary(backedUpTables(mapping).map { ($0.table.raw, $0) }) { first, _ in first }
        var (figures, total) = (BackupFigures(), Int64(0))
        while true {
            switch try reader.part() {
            case .table(let found):
                // Names of the file never become part of a statement.
                guard let (table, columns) = missing.removeValue(forKey: found.table),
                    Set(columns.map(\.raw)) == Set(found.columns), found.columns.count == columns.count
                else { throw BackupFailure.damaged("\(found.table) is no table of the model, or has other columns") }
                let ordered = found.columns.compactMap { name in columns.first { $0.raw == name } }
                let list = ordered.map(\.description).joined(separator: ", ")
                var count: Int64 = 0
                try connection.copyBytes("COPY \(table) (\(list)) FROM STDIN") { count = try reader.rows($0) }
                figures.add(count, of: found.table, isHierarchy: hierarchies.contains(found.table))
                total += count
            case .end(let end):
                guard missing.isEmpty, end.rows == total else {
                    throw BackupFailure.damaged("rows of it are missing")
                }
                guard end.digest == reader.digestBeforePart else {
                    throw BackupFailure.damaged("it was changed since it was written")
                }
                return figures
            }
        }
    }

    private static func setSequences(_ head: BackupHead, _ mapping: SQLMapping, _ connection: Connection) throws {
        for name in PostgreSQLSchema.sequences(mapping) {
            guard let keys = head.sequences[name.raw] else {
                throw BackupFailure.damaged("the state of \(name.raw) is missing")
            }
            try connection.query(
                "SELECT pg_catalog.setval($1::text::regclass, $2, $3)",
                [.text(name.description), .int8(keys.last), .bool(keys.isCalled)]
            )
        }
    }

    private static func makeForeignKeys(
        _ mapping: SQLMapping,
        _ connection: Connection,
        _ target: ConnectionTarget
    ) throws {
        let violations = try ForeignKeys(mapping, connection).make()
        guard let first = violations.first else { return }
        throw BackupFailure.damaged("\(first.count) rows do not allow the foreign key \(first.key.name.raw)")
    }
}
