import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLEngine {
    /// Copies a store that may be in use to a file, as it is at one moment.
    ///
    /// One transaction reads all tables. Others read and save meanwhile, and migrations wait. The file has the rows with
    /// their keys and versions, the history with its consumers, the metadata with the UUID, the copy of the model, and
    /// the states of the sequences. It has none of the objects that others have added to the schema, and no privileges.
    ///
    /// - Parameters:
    ///   - url: The store. The role needs SELECT on its tables and sequences.
    ///   - schema: The model of the store.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - requireVersion: Throws if the model is not the one that the metadata belongs to.
    ///   - file: The place of the copy; no file may be there.
    ///   - timeout: How many seconds others may keep the store locked.
    /// - Returns: The numbers of the copied rows.
    /// - Throws: `persistentStoreOperation` (134070) for a server that is sharded by schema, where no transaction sees one
    ///   moment. `fileWriteFileExists` (516) if there is a file already. `fileReadNoPermission` (257) if the role may not
    ///   read all rows, even because of row-level security. The errors of `requireVersion`, of the database and of the
    ///   disk.
    package static func backUp(
        _ url: URL,
        _ schema: Schema,
        configuration: String?,
        requireVersion: ([String: Any]) throws -> Void,
        to file: URL,
        timeout: Double
    ) throws -> BackupFigures {
        try withConnection(to: url, .reading, timeout: timeout) { connection, place in
            _ = try existing(connection, place)
            OpenPostgreSQLStore.lockFirst(connection, for: try ConnectionTarget(url), timeout: timeout)
            try StoreMetadata.beginReading(connection)
            try connection.command(readingSettings)
            let metadata = try existing(connection, place)
            guard metadata.format == StoreFormat.current else { throw StoreFormat.outdated(place) }
            try requireVersion(metadata.dictionary)
            let mapping = try SQLMapping(
                schema,
                configuration: configuration,
                generation: metadata.generations.current
            )
            try StoreTables.require(mapping, in: connection, place)
            guard try ServerForm.answer(ServerForm.ask(connection), connection) == .oneNode else {
                throw CocoaError.described(
                    .persistentStoreOperation,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            "The store \(place) cannot be backed up: its server is sharded by schema, and a transaction there sees what others commit meanwhile."
                    ]
                ).marked(.environment)
            }
            connection.patience = max(timeout, workPatience)
            let writer = try BackupWriter(file)
            try writer.write(line: BackupHead.title)
            try writer.write(head(metadata, mapping, connection))
            let figures = try writeTables(mapping, connection, to: writer)
            try connection.rollback()
            try writer.finish()
            return figures
        }
    }

    /// The settings with which all rows are read as they are: the transaction may be long, no policy may leave out rows
    /// silently, and numbers keep all of their digits.
    private static let readingSettings = """
        \(workSetting); SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL row_security = off; \
        SET LOCAL extra_float_digits = 3
        """

    private static func head(
        _ metadata: StoreMetadata,
        _ mapping: SQLMapping,
        _ connection: Connection
    ) throws -> BackupHead {
        let model = try connection.query("SELECT model FROM strata_store")
        var sequences: [String: BackupHead.Keys] = [:]
        // A sequence belongs to no transaction. Its state is read after the moment of the rows, so their keys are older.
        for name in PostgreSQLSchema.sequences(mapping) {
            let state = try connection.query("SELECT last_value, is_called FROM \(name)")
            sequences[name.raw] = .init(
                last: state[0].int64(0),
                isCalled: state[0].int64(1) != 0,
                isScattered: try KeyOrder.order(of: name.description, connection) == .scattered
            )
        }
        return BackupHead(
            form: metadata.format,
            made: Date().ISO8601Format(),
            uuid: metadata.uuid,
            metadata: try metadata.withoutOtherTables.archived(),
            model: model[0].isNull(0) ? nil : model[0].data(0),
            hasForeignKeys: try !ForeignKeys.found(connection).isEmpty,
            sequences: sequences
        )
    }

    private static func writeTables(
        _ mapping: SQLMapping,
        _ connection: Connection,
        to writer: BackupWriter
    ) throws -> BackupFigures {
        let hierarchies = Set(mapping.tables.map(\.name))
        var (figures, total) = (BackupFigures(), Int64(0))
        for (table, columns) in backedUpTables(mapping) {
            try writer.write(BackupTable(table: table.raw, columns: columns.map(\.raw)))
            var count: Int64 = 0
            let list = columns.map(\.description).joined(separator: ", ")
            try connection.copyOut("COPY (SELECT \(list) FROM \(table)) TO STDOUT") { row in
                try writer.write(row)
                count += 1
            }
            try writer.write(line: BackupHead.endOfRows)
            figures.add(count, of: table.raw, isHierarchy: hierarchies.contains(table))
            total += count
        }
        try writer.write(BackupEnd(rows: total, digest: writer.digest.value))
        return figures
    }

    /// The tables whose rows are in a backup; the head has the contents of the other one.
    static func backedUpTables(_ mapping: SQLMapping) -> [PostgreSQLSchema.Contents] {
        PostgreSQLSchema.contents(mapping).filter { $0.table.raw != "strata_store" }
    }
}
