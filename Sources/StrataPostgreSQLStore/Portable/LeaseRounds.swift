import Foundation
import StrataLocks
import StrataPostgreSQL

/// Renews the leases of all portable stores that the process has open, every few seconds, on one thread.
///
/// The thread begins with the first lease, and ends after the last one. Any thread may add and remove leases.
final class LeaseRounds: Sendable {
    static let shared = LeaseRounds()

    private struct State {
        var leases: [ObjectIdentifier: Weak] = [:]
        /// Whether the thread runs.
        var isRunning = false
    }

    /// A store that is dropped without being closed takes its lease with it.
    private struct Weak: Sendable {
        weak var lease: StoreLease?
    }

    private let state = Locked(State())

    /// How many seconds pass between two rounds.
    private static let interval = 5.0

    func add(_ lease: StoreLease) {
        let begins = state.withLock { state in
            state.leases[ObjectIdentifier(lease)] = Weak(lease: lease)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard begins else { return }
        let thread = Thread { [self] in
            repeat { Thread.sleep(forTimeInterval: Self.interval) } while renewAll()
        }
        thread.name = "Strata leases"
        thread.start()
    }

    func remove(_ lease: StoreLease) { state.withLock { $0.leases[ObjectIdentifier(lease)] = nil } }

    /// Renews all leases, one after the other.
    ///
    /// If a server does not answer, then its other leases have to wait for the next round. A lease lasts for a day. If it refuses one renewal, as of
    /// a store that was dropped, then the others go on.
    ///
    /// - Returns: Whether the thread goes on: there are leases.
    @discardableResult
    func renewAll() -> Bool {
        let leases = state.withLock { state in
            state.leases = state.leases.filter { $0.value.lease != nil }
            if state.leases.isEmpty { state.isRunning = false }
            return state.leases.values.compactMap(\.lease)
        }
        var silent: Set<String> = []
        for lease in leases where !silent.contains(lease.server) {
            do { try lease.renew() } catch {
                if let error = error as? PostgreSQLError, error.kind != .server { silent.insert(lease.server) }
            }
        }
        return !leases.isEmpty
    }
}
