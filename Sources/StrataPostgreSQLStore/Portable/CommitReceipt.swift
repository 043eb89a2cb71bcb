import Foundation
import StrataPostgreSQL

/// A row that one attempt of a transaction writes, which proves afterwards that the attempt was committed.
///
/// If the commit is in doubt, then the client writes the same row itself, as void. Rows have unique identifiers, so only one of the two can be stored. If
/// the transaction was committed, then its row is there. Otherwise the void row keeps it from ever being committed. As long as the server has not ended the
/// transaction, the void row waits. So nothing has to be known about the old session, and none has to be ended.
struct CommitReceipt: Sendable {
    let identifier = UUID()
    /// The lease that the receipt belongs to.
    let lease: String

    /// How many milliseconds the void row waits for the transaction at a time.
    private static let wait = 2_000

    private static let insertion =
        "INSERT INTO \(PortableTables.receipt) (id, lease, void, time) VALUES ($1, $2, $3, \(HistoryQueries.now))"

    /// Writes the receipt as a part of the transaction.
    func post(on connection: Connection) throws {
        try connection.post(Self.insertion, [.uuid(identifier), .text(lease), .bool(false)])
    }

    /// Whether the transaction was committed; if it was not, then it never will be.
    ///
    /// - Parameter connection: A connection without a transaction.
    /// - Returns: `nil` as long as the server has not ended the transaction.
    /// - Throws: ``PostgreSQLError`` if the server does not answer, or if receipts may have been removed.
    func isCommitted(_ connection: Connection) throws -> Bool? {
        try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = \(Self.wait)")
        do {
            try connection.query(
                "\(Self.insertion) ON CONFLICT (id) DO NOTHING",
                [.uuid(identifier), .text(lease), .bool(true)]
            )
        } catch let error as PostgreSQLError where error.sqlState == "55P03" {
            try connection.rollback()
            return nil
        }
        let found = try connection.query(
            """
            SELECT void, EXISTS (SELECT FROM \(PortableTables.lease) WHERE name = $2) FROM \(PortableTables.receipt) WHERE id = $1
            """,
            [.uuid(identifier), .text(lease)]
        )
        try connection.commit()
        if found.rowCount > 0, found[0].int64(0) == 0 { return true }
        guard found.rowCount > 0, found[0].int64(1) != 0 else {
            throw PostgreSQLError(.server, "the lease of the store object is gone, and so its receipts may be")
        }
        return false
    }
}
