import Foundation
import StrataPostgreSQL

/// The right to make a portable store: a row that one process has at a time.
///
/// It takes the place of an advisory lock. The process that has it renews it with each step. If the process dies, then another one takes it over after
/// some seconds, by the server's clock, and goes on with the same steps, each of which may be run again.
struct ShapeLease {
    /// The name of the row.
    static let name = "shape"
    /// After how many seconds without a step others may take it over.
    static let duration = 20

    private let holder = UUID()
    private let connection: Connection

    init(on connection: Connection) { self.connection = connection }

    /// Takes the lease, or renews it.
    ///
    /// - Returns: Whether it is held now; false if another process has it.
    /// - Throws: ``PostgreSQLError``.
    func take() throws -> Bool {
        try connection.query(
            """
            INSERT INTO \(PortableTables.lease) AS l (name, holder, process, seen) VALUES ($1, $2, $3, \(HistoryQueries.now))
            ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, process = excluded.process, seen = excluded.seen
            WHERE l.holder = excluded.holder OR l.seen < excluded.seen - \(Self.duration) RETURNING 1
            """,
            [.text(Self.name), .uuid(holder), .text(ProcessInfo.processInfo.processName)]
        ).rowCount > 0
    }

    /// Ensures, in the transaction that is open, that the lease is still held, and keeps others from taking it over until the transaction ends.
    ///
    /// - Throws: ``PostgreSQLError`` with 40001 if another process has it.
    func require() throws {
        let found = try connection.query(
            "SELECT 1 FROM \(PortableTables.lease) WHERE name = $1 AND holder = $2 FOR UPDATE",
            [.text(Self.name), .uuid(holder)]
        )
        if found.rowCount == 0 {
            throw PostgreSQLError(.server, sqlState: "40001", "another process makes the store")
        }
    }

    /// Gives it back; if that fails, then it ends by itself.
    func release() {
        _ = try? connection.query(
            "DELETE FROM \(PortableTables.lease) WHERE name = $1 AND holder = $2",
            [.text(Self.name), .uuid(holder)]
        )
    }
}
