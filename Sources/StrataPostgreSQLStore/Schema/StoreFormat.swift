import Foundation
import StrataKeys
import StrataPostgreSQL

/// The form of a store's bookkeeping tables.
///
/// Form 1 had a row for each change of the history. Form 2 has one row for similar changes, with an array of keys.
enum StoreFormat {
    /// The current form, which is written; a later one is refused.
    static let current: Int64 = 2

    /// Converts the tables of an earlier form to the current one, in the open transaction, which keeps others from
    /// doing the same.
    ///
    /// Nothing is lost: each change gets an array of one key. Programs that know only the earlier form cannot write any
    /// more. Their sessions end, and opening a new one reports that.
    ///
    /// - Parameters:
    ///   - found: The metadata, as it was read in the transaction.
    ///   - target: Where the store is.
    ///   - connection: The connection that has the transaction.
    /// - Throws: ``PostgreSQLError``.
    static func bringUp(_ found: StoreMetadata, of target: ConnectionTarget, _ connection: Connection) throws {
        guard found.format < current else { return }
        try connection.command("LOCK TABLE strata_store, strata_change IN ACCESS EXCLUSIVE MODE")
        try connection.command("ALTER TABLE strata_change RENAME COLUMN key TO keys")
        try connection.command("ALTER TABLE strata_change ALTER COLUMN keys TYPE bigint[] USING ARRAY[keys]")
        try connection.query("UPDATE strata_store SET format = $1", [.int8(current)])
        try StoreSessions.endOthers(of: target, connection)
    }

    /// Converts a store to the current form, in a separate transaction.
    static func bringUp(_ target: ConnectionTarget, _ connection: Connection) throws {
        try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED; \(PostgreSQLEngine.workSetting)")
        try OpenPostgreSQLStore.lockShape(of: target, connection)
        if let found = try StoreMetadata.read(connection, target.place) { try bringUp(found, of: target, connection) }
        try connection.commit()
    }

    /// The error for a store of an earlier form that may not be written.
    static func outdated(_ place: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOpen,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place) was made by an earlier version of Strata. Add it once without NSReadOnlyPersistentStoreOption, so that its tables can be brought up to date."
            ]
        )
    }
}
