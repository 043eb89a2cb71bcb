import StrataLocks
import Synchronization

/// The number of connections that the stores of one server may have together.
///
/// Each connection of a pool with a budget has a place in it, also while it is not in use. If there is no free place, then another pool gives up
/// a connection that it does not use. If all are in use, then callers wait, in the order of asking.
package final class ConnectionBudget: Sendable {
    /// The most connections.
    package let most: Int
    private let places: FairSemaphore
    private let pools = Locked<[WeakPool]>([])
    /// The number of callers that look for a place in vain.
    private let seekers = Atomic(0)

    private struct WeakPool: Sendable {
        weak let pool: ConnectionPool?
    }

    /// A place in a budget, which is free again when this object is released.
    final class Place: Sendable {
        private let budget: ConnectionBudget
        fileprivate init(_ budget: ConnectionBudget) { self.budget = budget }
        deinit { budget.places.release() }
    }

    package init(most: Int) {
        self.most = most
        places = FairSemaphore(permits: most)
    }

    /// The budgets of this process, by server.
    private static let shared = Locked<[String: WeakBudget]>([:])

    private struct WeakBudget: Sendable {
        weak let budget: ConnectionBudget?
    }

    /// The budget that all stores of this process share which are on the same server and allow the same number.
    ///
    /// - Parameters:
    ///   - target: The server. The schema and the name of the database take no part.
    ///   - most: The most connections.
    /// - Returns: The budget, which lives as long as a pool has it.
    package static func shared(for target: ConnectionTarget, most: Int) -> ConnectionBudget {
        let key = "\(most) \(target.server)"
        return shared.withLock { shared in
            if let budget = shared[key]?.budget { return budget }
            shared = shared.filter { $0.value.budget != nil }
            let budget = ConnectionBudget(most: most)
            shared[key] = WeakBudget(budget: budget)
            return budget
        }
    }

    /// The number of connections that exist.
    package var usedCount: Int { most - places.freeCount }

    /// Whether callers look for a place: connections that are not in use are given up then.
    var isShort: Bool { seekers.load(ordering: .acquiring) > 0 }

    /// Notes a pool whose connections have places here.
    func register(_ pool: ConnectionPool) {
        pools.withLock { pools in
            pools.removeAll { $0.pool == nil }
            pools.append(WeakPool(pool: pool))
        }
    }

    /// Takes a place, and waits for one if all connections are in use.
    ///
    /// - Parameter seconds: The longest wait.
    /// - Returns: The place.
    /// - Throws: ``PostgreSQLError``: `.deadline`.
    func place(within seconds: Double) throws(PostgreSQLError) -> Place {
        if case .acquired = places.acquire(timeout: 0) { return Place(self) }
        // A connection that comes back after this look is given up by its pool, as the pool then sees this caller.
        seekers.add(1, ordering: .acquiringAndReleasing)
        defer { seekers.subtract(1, ordering: .acquiringAndReleasing) }
        for entry in pools.withLock({ $0 }) where entry.pool?.closeOneIdle() == true { break }
        switch places.acquire(timeout: seconds) {
        case .acquired: return Place(self)
        case .cancelled, .timedOut:
            throw PostgreSQLError(
                .deadline,
                "all \(most) connections that the stores of this server may have were in use for \((seconds * 10).rounded() / 10) s"
            )
        }
    }
}
