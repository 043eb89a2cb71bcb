import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// The parameters of a migration of a SQLite file.
package struct SQLiteMigrationRequest {
    package let url: URL
    package let options: SQLiteOptions
    /// The targets of entities and properties.
    package let migration: SchemaMigration
    /// The labels of the new version of the model.
    package let versionIdentifiers: [String]
    /// The copy of the new model for the file; `nil` for none.
    package let modelCache: Data?
    /// Whether the migration may drop rows and values that have no place in the new version.
    package let mayDropValues: Bool
    /// Receives the completed part of the work, from 0 to 1, on the thread that migrates.
    ///
    /// Its error ends the migration.
    package var advance: (Double) throws -> Void = { _ in }

    package init(
        url: URL,
        options: SQLiteOptions,
        migration: SchemaMigration,
        versionIdentifiers: [String],
        modelCache: Data?,
        mayDropValues: Bool
    ) {
        self.url = url
        self.options = options
        self.migration = migration
        self.versionIdentifiers = versionIdentifiers
        self.modelCache = modelCache
        self.mayDropValues = mayDropValues
    }
}

/// The results of a migration.
package struct SQLiteMigrationReport: Sendable {
    /// The tables that were copied, those that were changed in place, and those that were left alone.
    package fileprivate(set) var copiedTables: [String] = []
    package fileprivate(set) var changedTables: [String] = []
    package fileprivate(set) var untouchedTables: [String] = []
    /// The number of rows that were written, in copied tables.
    package fileprivate(set) var copiedRows = 0

    mutating func addCopied(_ table: SQLName, rows: Int) {
        copiedTables.append(table.raw)
        copiedRows += rows
    }

    mutating func addChanged(_ table: SQLName, isNothing: Bool) {
        if isNothing { untouchedTables.append(table.raw) } else { changedTables.append(table.raw) }
    }
}

extension SQLiteEngine {
    /// Migrates a file to another version of its model, in place and in one transaction.
    ///
    /// Programs that read the file meanwhile see the old rows. If the process is killed, a write fails or a row does
    /// not fit, the file stays as it was.
    ///
    /// - Parameter request: The file, and the targets of its entities and properties.
    /// - Returns: The results; `nil` if the file does not have the source version, because another program was first.
    /// - Throws: `migration` (134110) with the reason. For rows that do not fit, there is an error for each entity or
    ///   property under `NSDetailedErrorsKey`. For rows that break a constraint, the underlying error is 134111.
    ///   `persistentStoreTimeout` (134090) if others keep the file locked.
    package static func migrate(_ request: SQLiteMigrationRequest) throws -> SQLiteMigrationReport? {
        let url = request.url
        return try SQLiteBoundary.run(.migrating, at: url) {
            try withFile(url, options: request.options.sortingInFiles, access: .readWrite) { database in
                let lease = try database.pool.writer()
                try FaultPoint.migrationBegan.reach()
                let metadata = try metadata(lease.connection, url)
                guard request.migration.starts(at: metadata.versionHashes) || FaultGuard.migrationCheck.isOff else {
                    return nil
                }
                do {
                    let migration = try SQLiteMigration(request, of: database, from: metadata, on: lease.connection)
                    do {
                        try migration.run()
                        try FaultPoint.migrationWritten.reach()
                        try migration.files.willCommit(lease.connection)
                        try lease.commit()
                    } catch {
                        migration.files.abandon()
                        throw error
                    }
                    migration.files.didCommit()
                    FaultPoint.migrationCommitted.pass()
                    return migration.report
                } catch let error as CocoaError where [.migration, .migrationCancelled].contains(error.code) {
                    throw error
                } catch let error as SQLiteError {
                    throw MigrationErrors.failure(
                        url,
                        SQLiteBoundary.cocoaError(describing: error, while: .migrating, at: url)
                    )
                } catch {
                    throw MigrationErrors.failure(url, error)
                }
            }
        }
    }
}
