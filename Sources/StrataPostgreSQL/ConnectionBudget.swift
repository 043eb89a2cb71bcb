import StrataLocks

/// The number of connections that the stores of one server may have together, and those of them that no store uses.
///
/// A pool with a budget takes over a connection that another pool has used, if their URLs differ only in the schema. If there is none, then it opens
/// one. If as many exist as there may be, then a connection of other settings is closed first. If all are in use, then callers wait, in the order of
/// asking.
package final class ConnectionBudget: Sendable {
    /// The most connections.
    package let most: Int
    private let uses: FairSemaphore
    let idle = IdleSessions()
    private let pools = Locked<[WeakPool]>([])

    private struct WeakPool: Sendable {
        weak let pool: ConnectionPool?
    }

    /// The right to use one connection of a budget, which ends when this object is released.
    final class Use: Sendable {
        /// How many seconds the caller has waited for it.
        let waited: Double
        private let budget: ConnectionBudget

        fileprivate init(_ budget: ConnectionBudget, waited: Double) {
            self.budget = budget
            self.waited = waited
        }

        deinit { budget.uses.release() }
    }

    package init(most: Int) {
        self.most = most
        uses = FairSemaphore(permits: most)
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

    /// The number of connections that are in use, or are being opened.
    package var usedCount: Int { most - uses.freeCount }

    /// The number of connections that no store uses.
    package var idleCount: Int { idle.count { _ in true } }

    /// The number of callers that wait because all connections are in use.
    package var waiterCount: Int { uses.waiterCount }

    /// Notes a pool that uses connections of the budget.
    func register(_ pool: ConnectionPool) {
        pools.withLock { pools in
            pools.removeAll { $0.pool == nil }
            pools.append(WeakPool(pool: pool))
        }
    }

    /// Forgets a pool that was closed, and closes the connections that no other pool can use.
    func forget(_ pool: ConnectionPool) {
        let wanted = pools.withLock { pools in
            pools.removeAll { $0.pool == nil || $0.pool === pool }
            return Set(pools.compactMap { $0.pool?.target.settings })
        }
        idle.close { !wanted.contains($0.settings) }
    }

    /// Lets a caller use a connection, and waits if all are in use.
    ///
    /// - Parameters:
    ///   - seconds: The longest wait.
    ///   - cancellation: Ends the wait.
    /// - Returns: The right to take a connection, or to open one.
    /// - Throws: ``PostgreSQLError``: `.deadline`, `.cancelled`.
    func use(within seconds: Double, _ cancellation: Cancellation? = nil) throws(PostgreSQLError) -> Use {
        switch uses.acquire(timeout: seconds, cancellation: cancellation) {
        case .acquired(let waited): return Use(self, waited: waited)
        case .cancelled: throw PostgreSQLError(.cancelled, "the request was cancelled")
        case .timedOut:
            throw PostgreSQLError(
                .deadline,
                "all \(most) connections that the stores of this server may have were in use for \((seconds * 10).rounded() / 10) s"
            )
        }
    }
}
