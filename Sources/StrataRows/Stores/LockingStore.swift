import StrataLocks

/// The lock that a fetch takes on each row that it finds.
package struct RowLocking: Hashable, Sendable {
    /// The accesses of others that a lock keeps out.
    package enum Strength: Hashable, Sendable {
        /// No other lock, and no change by others.
        case update
        /// Further locks of this strength, but no change by others.
        case share
    }

    /// The conduct towards rows that others have locked.
    package enum Conduct: Hashable, Sendable {
        case wait
        case fail
        case skip
    }

    package var strength: Strength
    package var conduct: Conduct

    package init(_ strength: Strength, _ conduct: Conduct) {
        self.strength = strength
        self.conduct = conduct
    }
}

/// The time in which a transaction may lock rows.
package struct LockingTime: Sendable {
    /// The moment at which the owner of the transaction rolls it back.
    package let end: ContinuousClock.Instant
    /// Ends a wait, and a fetch that is under way.
    package let cancellation: Cancellation

    package init(end: ContinuousClock.Instant, cancellation: Cancellation) {
        self.end = end
        self.cancellation = cancellation
    }

    /// The seconds that are left, at least 0.
    package var left: Double { max((end - .now) / .seconds(1), 0) }

    /// How many seconds an engine whose locks cover the whole store waits for others although the request says not to.
    ///
    /// A save of another context has all rows locked there for a moment, and a request that finds nothing because of
    /// that is of no use.
    private static let moment = 0.1

    /// The seconds to wait for the turn to write.
    package func wait(_ conduct: RowLocking.Conduct) -> Double { conduct == .wait ? left : min(Self.moment, left) }
}

/// A store engine that can keep a transaction open in which rows are locked.
package protocol LockingStore: RowStore {
    /// Begins a transaction.
    ///
    /// - Parameters:
    ///   - conduct: The conduct towards others, for engines whose locks cover the whole store.
    ///   - time: The time that the transaction has.
    ///   - holder: The scope (``ConfinementScope``) of the block that will have the locks.
    /// - Returns: The transaction; `nil` if others have locked the whole store, and `conduct` says not to wait.
    /// - Throws: `persistentStoreTimeout` (134090) at the end of the time; `CancellationError`; errors of the store.
    func beginLocking(_ conduct: RowLocking.Conduct, _ time: LockingTime, holder: AnyObject & Sendable) throws
        -> (any LockingTransaction)?
}

/// A transaction in which rows are locked, and which ends with a save or is rolled back.
///
/// One thread uses it at a time; that need not always be the same.
package protocol LockingTransaction: AnyObject, Sendable {
    /// Whether it has ended: it was committed, rolled back, or lost.
    var isOver: Bool { get }

    /// Answers a fetch with whole rows, which are locked until the transaction ends, in their newest state.
    ///
    /// - Throws: ``RowLockFailure``; `CancellationError`; `persistentStoreTimeout` (134090) at the end of the time;
    ///   errors of the store.
    func rows(for plan: FetchPlan, _ locking: RowLocking) throws -> [Row]

    /// Writes all of `changes` and ends the transaction, or writes nothing; see ``RowStore/save(_:willCommit:didCommit:)``.
    ///
    /// After a conflict, and after an error if that is possible, the transaction goes on with its locks.
    func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict]

    /// Ends the transaction, and with it the locks, without a change.
    ///
    /// It has no effect on a transaction that is over.
    func rollBack()
}

/// The reason why rows could not be locked.
package enum RowLockFailure: Error {
    /// Others have locked rows, and the request says to fail then; these are the rows, as far as they are known.
    case taken([ObjectReference])
    /// The server has ended the transaction, because it and others have waited for each other.
    case deadlock(any Error)

    /// The most rows that an error names.
    package static let mostNamed = 100
}
