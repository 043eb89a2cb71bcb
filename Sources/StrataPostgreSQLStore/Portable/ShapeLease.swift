import Foundation
import StrataPostgreSQL

/// The right to make or to migrate a portable store: a row that one process has at a time.
///
/// It takes the place of an advisory lock. The process that has it renews it with each step. If the process dies, then another one takes it over after
/// some seconds, by the server's clock, and goes on with the same steps, each of which may be run again.
struct ShapeLease {
    /// Another process has taken the lease over, because it was not renewed in time.
    struct Lost: Error {}

    /// The name of the row.
    static let name = "shape"
    /// After how many seconds without a step others may take it over.
    static let duration = 20

    /// The identifier of the work that has the lease, on whatever connection.
    let holder: UUID
    private let connection: Connection

    init(on connection: Connection, for holder: UUID = UUID()) {
        self.connection = connection
        self.holder = holder
    }

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

    /// Takes the lease to migrate a store, after another process that has it.
    ///
    /// - Parameters:
    ///   - seconds: How many seconds the other process may take.
    ///   - target: Where the store is.
    ///   - connection: The connection of the lease.
    ///   - isExpected: Whether the store has the version to migrate from.
    /// - Returns: The metadata of the store; `nil` if it has another version, because another process was first.
    /// - Throws: ``PostgreSQLError``: `.deadline` if the other process takes longer. `fileReadCorruptFile` (259) if the store has no metadata.
    func take(
        within seconds: Double,
        at target: ConnectionTarget,
        on connection: Connection,
        _ isExpected: (StoreMetadata) -> Bool
    ) throws -> StoreMetadata? {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            let isHeld = try PortableStep.repeating { try take() }
            let metadata = try StoreMetadata.read(connection, target.place)
            guard let metadata, isExpected(metadata) else {
                if isHeld { release() }
                guard metadata != nil else { throw PostgreSQLBoundary.damaged(target.place, "it has no metadata.") }
                return nil
            }
            if isHeld { return metadata }
            guard .now < end else {
                throw PostgreSQLError(.deadline, "another process migrates the store, and has not finished in time")
            }
            usleep(50_000)
        }
    }

    /// Whether the lease is still held; then others cannot take it over until the open transaction ends.
    ///
    /// - Throws: ``PostgreSQLError``.
    func isHeld() throws -> Bool {
        try connection.query(
            "SELECT 1 FROM \(PortableTables.lease) WHERE name = $1 AND holder = $2 FOR UPDATE",
            [.text(Self.name), .uuid(holder)]
        ).rowCount > 0
    }

    /// Ensures, in the transaction that is open, that the lease is still held, and keeps others from taking it over until the transaction ends.
    ///
    /// - Throws: ``PostgreSQLError`` with 40001 if another process has it.
    func require() throws {
        guard try isHeld() else { throw PostgreSQLError(.server, sqlState: "40001", "another process makes the store") }
    }

    /// Renews the lease, unless another process has taken it over.
    ///
    /// - Throws: ``PostgreSQLError``.
    func renew() throws {
        try connection.query(
            "UPDATE \(PortableTables.lease) SET seen = \(HistoryQueries.now) WHERE name = $1 AND holder = $2",
            [.text(Self.name), .uuid(holder)]
        )
    }

    /// Gives it back; if that fails, then it ends by itself.
    func release() {
        _ = try? connection.query(
            "DELETE FROM \(PortableTables.lease) WHERE name = $1 AND holder = $2",
            [.text(Self.name), .uuid(holder)]
        )
    }
}
