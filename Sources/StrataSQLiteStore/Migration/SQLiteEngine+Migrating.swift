import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// What a SQLite file is migrated with.
package struct SQLiteMigrationRequest {
    package let url: URL
    package let options: SQLiteOptions
    /// What becomes what.
    package let migration: SchemaMigration
    /// The labels of the new version of the model.
    package let versionIdentifiers: [String]
    /// The copy of the new model for the file; `nil` for none.
    package let modelCache: Data?
    /// Whether rows and values may be dropped that have no place in the new version.
    package let mayDropValues: Bool
    /// Told how much of the work is done, from 0 to 1, by the thread that migrates; what it throws ends the migration.
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

/// What a migration has done.
package struct SQLiteMigrationReport: Sendable {
    /// The tables that were copied, those that were changed where they are, and those that were left alone.
    package fileprivate(set) var copiedTables: [String] = []
    package fileprivate(set) var changedTables: [String] = []
    package fileprivate(set) var untouchedTables: [String] = []
    /// Rows that were written, in copied tables.
    package fileprivate(set) var copiedRows = 0

    mutating func noteCopy(_ table: SQLName, rows: Int) {
        copiedTables.append(table.raw)
        copiedRows += rows
    }

    mutating func noteChange(_ table: SQLName, isNothing: Bool) {
        if isNothing { untouchedTables.append(table.raw) } else { changedTables.append(table.raw) }
    }
}

extension SQLiteEngine {
    /// Brings a file to another version of its model, where it is and in one transaction.
    ///
    /// Whoever reads the file meanwhile sees the old rows. A kill, a failed write or a row that does not fit leaves the file as it was.
    ///
    /// - Parameter request: The file, and what becomes what.
    /// - Returns: What was done; `nil` if the file has another version than the one to start from, since somebody else was first.
    /// - Throws: `migration` (134110) with the reason; for rows that do not fit with an error for each entity or property under
    ///   `NSDetailedErrorsKey`, for rows that break a constraint with 134111 as the underlying error. `persistentStoreTimeout` (134090)
    ///   if others keep the file locked.
    package static func migrate(_ request: SQLiteMigrationRequest) throws -> SQLiteMigrationReport? {
        let url = request.url
        return try SQLiteBoundary.run(.migrating, url) {
            try withFile(url, request.options.sortingInFiles, access: .readWrite) { database in
                let lease = try database.pool.writer()
                try FaultPoint.migrationBegan.reach()
                let metadata = try metadata(lease.connection, url)
                guard request.migration.starts(at: metadata.versionHashes) || ignoresOthers else { return nil }
                do {
                    let migration = try SQLiteMigration(request, database, metadata, lease.connection)
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
                    throw MigrationErrors.failure(url, SQLiteBoundary.cocoaError(error, .migrating, url))
                } catch {
                    throw MigrationErrors.failure(url, error)
                }
            }
        }
    }
}

extension SQLiteEngine {
    /// Whether tests have switched off that migrations look for others, to see what comes of it.
    package static var ignoresOthers: Bool {
        FaultGuard.migrationCheck.isOff
    }
}
