import Foundation
import StrataLocks
import StrataPostgreSQL

/// The row by which a portable store shows that a store object has it open.
///
/// ``LeaseRounds`` renew it every few seconds, by the server's clock. Receipts belong to the lease of the object that has written them. So they stay as long
/// as that object may ask for them, and are removed when it does not need them any more, or when it was not seen for a day. If its lease was removed,
/// then a missing receipt proves nothing.
///
/// Any thread may use it.
final class StoreLease: Sendable {
    private struct State {
        /// The name of the row; `nil` before the first one was written.
        var name: String?
        /// The receipts of transactions whose outcome is known.
        var settled: [UUID] = []
    }

    private let state = Locked(State())
    private let pool: ConnectionPool

    /// After how many seconds without a renewal a lease is removed.
    static let life = 86_400
    /// How many seconds a renewal waits for a connection, and how long the end of the lease may take.
    private static let patience = 5.0

    init(_ pool: ConnectionPool) { self.pool = pool }

    /// The server that has the row.
    var server: String { pool.target.server }

    // MARK: - Receipts

    /// A receipt for a transaction that is about to begin.
    func newReceipt() -> CommitReceipt {
        CommitReceipt(lease: state.withLock { $0.name } ?? "none")
    }

    /// Notes that the outcome of a transaction is known, so that its receipt may be removed.
    func settle(_ receipt: CommitReceipt) { state.withLock { $0.settled.append(receipt.identifier) } }

    // MARK: - The row

    /// Writes the row, and renews it from now on.
    func begin(on connection: Connection) throws {
        try pool.repeatingConflicts { try write(on: connection) }
        LeaseRounds.shared.add(self)
    }

    private func write(on connection: Connection) throws {
        let holder = UUID()
        let process = "\(ProcessInfo.processInfo.processName) (\(ProcessInfo.processInfo.processIdentifier))"
        try connection.query(
            "INSERT INTO \(PortableTables.lease) (name, holder, process, seen) VALUES ($1, $2, $3, \(HistoryQueries.now))",
            [.text(holder.uuidString), .uuid(holder), .text(process)]
        )
        state.withLock { $0.name = holder.uuidString }
    }

    /// Renews the row, and removes receipts that are not needed any more, and leases of others that were not renewed for a day.
    func renew() throws {
        try pool.withConnection(within: Self.patience) { connection in
            guard let name = state.withLock({ $0.name }) else { return }
            let renewed = try connection.query(
                "UPDATE \(PortableTables.lease) SET seen = \(HistoryQueries.now) WHERE name = $1",
                [.text(name)]
            )
            // Others have taken this object for dead. Its receipts may be gone, so it gets another name, to which none of them belongs.
            if renewed.changeCount == 0 {
                // If the store was closed meanwhile, then it needs no lease.
                guard state.withLock({ $0.name != nil }) else { return }
                try write(on: connection)
            }
            let settled = state.withLock { state in
                defer { state.settled = [] }
                return state.settled
            }
            do { try remove(settled, on: connection) } catch {
                state.withLock { $0.settled += settled }
                throw error
            }
            // A removed lease shows that receipts may be missing, so it goes first.
            try connection.query(
                "DELETE FROM \(PortableTables.lease) WHERE seen < \(HistoryQueries.now) - \(Self.life)"
            )
            try connection.query(
                """
                DELETE FROM \(PortableTables.receipt) AS r
                WHERE NOT EXISTS (SELECT FROM \(PortableTables.lease) AS l WHERE l.name = r.lease)
                """
            )
        }
    }

    private func remove(_ settled: [UUID], on connection: Connection) throws {
        guard !settled.isEmpty else { return }
        var identifiers = PostgreSQLArray(.uuid)
        for identifier in settled { identifiers.append(.uuid(identifier)) }
        try connection.query("DELETE FROM \(PortableTables.receipt) WHERE id = ANY($1)", [.array(identifiers)])
    }

    /// Removes the row; if the server does not answer soon, then the row stays for a day.
    func end() {
        LeaseRounds.shared.remove(self)
        guard
            let name = state.withLock({ state in
                defer { state.name = nil }
                return state.name
            })
        else { return }
        try? pool.withConnection(within: Self.patience) { connection in
            connection.patience = Self.patience
            try connection.query("DELETE FROM \(PortableTables.lease) WHERE name = $1", [.text(name)])
            try connection.query("DELETE FROM \(PortableTables.receipt) WHERE lease = $1", [.text(name)])
        }
    }
}
