import Foundation
import StrataKeys
import StrataPostgreSQL

/// The form of the tables in which a store keeps its books.
///
/// Form 1 had a row for each change of the history; form 2 has one for changes that are alike, with an array of keys.
enum StoreFormat {
    /// The form that is written; a later one is refused.
    static let current: Int64 = 2

    /// Brings the tables of an earlier form to the current one, in the transaction that is open and keeps others from doing the same.
    ///
    /// Nothing is lost: each change becomes an array of one. Programs that know the earlier form only cannot write any more, and are told so when they
    /// open a session: their sessions end.
    ///
    /// - Parameters:
    ///   - found: The metadata, as it was read in the transaction.
    ///   - target: Where the store is.
    ///   - connection: What has the transaction.
    /// - Throws: ``PostgreSQLError``.
    static func bringUp(_ found: StoreMetadata, of target: ConnectionTarget, _ connection: Connection) throws {
        guard found.format < current else { return }
        try connection.command("LOCK TABLE strata_store, strata_change IN ACCESS EXCLUSIVE MODE")
        try connection.command("ALTER TABLE strata_change RENAME COLUMN key TO keys")
        try connection.command("ALTER TABLE strata_change ALTER COLUMN keys TYPE bigint[] USING ARRAY[keys]")
        try connection.query("UPDATE strata_store SET format = $1", [.int8(current)])
        try StoreSessions.endOthers(of: target, connection)
    }

    /// Brings a store to the current form, in a transaction of its own.
    static func bringUp(_ target: ConnectionTarget, _ connection: Connection) throws {
        try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED; \(PostgreSQLEngine.workSetting)")
        try OpenDatabase.lockShape(of: target, connection)
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
