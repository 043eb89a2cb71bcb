import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

// A deferred migration leaves columns that the model does not know. They are found in the file itself, so that nothing
// is lost if a process is killed. The metadata only has a sign that there are some.

extension SQLiteEngine {
    /// Whether the metadata says that there are columns to remove.
    package var hasDeferredWork: Bool {
        (metadata.values[NSPersistentStoreDeferredLightweightMigrationOptionKey] as? Bool) ?? false
    }

    /// Tidies up one table in a separate transaction.
    ///
    /// Others may read and write between two of them.
    ///
    /// - Returns: Whether there are more tables to tidy up.
    /// - Throws: `persistentStoreTimeout` (134090) if others keep the store locked, and errors of the disk.
    package func tidyUp() throws -> Bool {
        let file = try openFile()
        guard !isReadOnly else { return false }
        return try SQLiteBoundary.run(.migrating, at: file.url) {
            let isMoreLeft = try file.pool.write { connection -> Bool in
                try file.modelGuard.requireSame(connection)
                var tables = try file.mapping.tables.filter { try $0.hasLeftovers(connection) }
                if let table = tables.popLast() { try rebuild(table, of: file.mapping, on: connection) }
                if tables.isEmpty { try clearDeferredOption(connection, file.url) }
                return !tables.isEmpty
            }
            if !isMoreLeft { forgetDeferredWork() }
            return isMoreLeft
        }
    }

    /// Copies a table without the columns that the model does not need.
    private func rebuild(_ table: SQLTable, of mapping: SQLMapping, on connection: Connection) throws {
        let old = SQLName("Z_MIGRATION_\(table.name.raw)")
        for name in DerivedTriggers(mapping).names { try connection.execute("DROP TRIGGER IF EXISTS \(SQLName(name))") }
        try connection.execute("ALTER TABLE \(table.name) RENAME TO \(old)")
        try connection.execute(SQLiteSchema.create(table, as: table.name))
        let names = (["Z_PK", "Z_ENT", "Z_OPT"] + table.columns.map(\.name.description)).joined(separator: ", ")
        try connection.run(SQL("INSERT INTO \(table.name) (\(names)) SELECT \(names) FROM \(old)"))
        try connection.execute("DROP TABLE \(old)")
        for index in SQLiteSchema.indexes(mapping) where index.table == table.name { try connection.execute(index.sql) }
        for trigger in DerivedTriggers(mapping).statements { try connection.execute(trigger) }
    }

    private func clearDeferredOption(_ connection: Connection, _ url: URL) throws {
        var metadata = try Self.metadata(connection, url)
        metadata.values[NSPersistentStoreDeferredLightweightMigrationOptionKey] = nil
        try metadata.write(connection)
    }
}

extension SQLTable {
    /// Whether the file's table has columns that the model does not know.
    fileprivate func hasLeftovers(_ connection: Connection) throws -> Bool {
        let known = Set((["Z_PK", "Z_ENT", "Z_OPT"] + columns.map(\.name.raw)).map { $0.uppercased() })
        return try connection.columns(of: name).contains { !known.contains($0.name.uppercased()) }
    }
}
