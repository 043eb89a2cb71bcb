import Foundation
import StrataPostgreSQL

/// Renews the lease of a migration every few seconds, because one of its steps may take longer than the lease lasts.
///
/// The thread ends with its process. Then others take the migration over.
final class ShapeKeeper: Sendable {
    private let stop = DispatchSemaphore(value: 0)

    /// How many seconds pass between two renewals.
    private static let interval = 5.0
    /// How many seconds a renewal waits for the server.
    private static let patience = 5.0

    /// Begins to renew a lease, on a separate connection.
    init(_ holder: UUID, at target: ConnectionTarget) {
        let stop = stop
        let thread = Thread {
            let pool = OpenPostgreSQLStore.pool(target, size: 1, timeout: Self.patience)
            defer { pool.close() }
            while stop.wait(timeout: .now() + Self.interval) == .timedOut {
                // If the server is away, then the next round renews the lease.
                try? pool.withConnection { try ShapeLease(on: $0, for: holder).renew() }
            }
        }
        thread.name = "Strata migration"
        thread.start()
    }

    deinit { end() }

    func end() { stop.signal() }
}
