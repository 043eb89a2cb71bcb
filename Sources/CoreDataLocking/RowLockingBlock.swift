import CoreDataEssentials
import Foundation
import StrataLocks
import StrataRows

// The course of a block that locks rows:
//
//     begin → fetches with a lock: the first one begins a transaction of its store → save: it commits → end
//                                      ↘ the time is over, or the block ends without a save: roll-back
//
// The timer runs on another thread. A transaction is used by one thread at a time: the timer leaves one alone that the
// block is using, and the block ends it as soon as it has finished with it. `BlockDeadlines` has the timer.

/// A block of a context that locks rows, from its begin to its end.
///
/// Members are called inside the context's scope, by the one thread that runs the block, if nothing else is said.
final class RowLockingBlock: LockingBlock, Sendable {
    /// How the block's transaction has ended.
    private enum End {
        /// With a save, after which the block goes on without locks.
        case saved
        /// Because its time was over.
        case expired
        /// With an error of the store.
        case lost(any Error)
    }

    private enum Work {
        case fetch
        case save
    }

    private struct State {
        /// The store of the transaction, from its begin on.
        var store: OpenStore?
        /// The transaction, until it ends.
        var transaction: (any LockingTransaction)?
        /// The present use of the transaction.
        var work: Work?
        /// Awakes once the transaction was rolled back by the thread of the deadline.
        var rollBack: Waiter?
        var end: End?
        /// Whether a save of the block was committed outside its transaction.
        var hasSavedOutside = false
        /// The first of the rows that were locked.
        var locked: [ObjectReference] = []
        /// The number of rows that were locked, by the name of the requested entity.
        var counts: [String: Int] = [:]
    }

    /// A year.
    private static let mostTime = Duration.seconds(31_536_000)

    private unowned let context: NSManagedObjectContext
    private let limit: Duration
    private let deadline: ContinuousClock.Instant
    /// Ends waits for locks, and fetches: the task was cancelled, or the time is over.
    private let cancellation: Cancellation
    private let state = Locked(State())

    private init(_ context: NSManagedObjectContext, _ limit: Duration, _ cancellation: Cancellation) {
        self.context = context
        self.limit = limit
        // Clocks and servers count no more.
        deadline = .now + min(limit, Self.mostTime)
        // The end of the time stops only this block.
        self.cancellation = Cancellation(partOf: cancellation)
    }

    // MARK: - From begin to end

    /// Runs the code of a block, inside the scope of the context.
    ///
    /// - Parameters:
    ///   - context: The context.
    ///   - limit: The time that the block has from now on.
    ///   - cancellation: Ends waits for locks.
    ///   - body: The code.
    /// - Returns: The result of the code.
    /// - Throws: The errors of `perform(locking:_:)`.
    static func run<T>(
        in context: NSManagedObjectContext,
        for limit: Duration,
        _ cancellation: Cancellation,
        _ body: () throws -> T
    ) throws -> T {
        guard context.lockingBlock == nil else {
            throw FetchPlanner.refused(
                "\(context.describedName) already runs a block that locks rows; lock more rows there, in the same transaction."
            )
        }
        guard context.parent == nil else {
            throw FetchPlanner.refused(
                "\(context.describedName) has a parent, and only a context on the coordinator locks rows, because only its save ends the transaction."
            )
        }
        guard limit > .zero else {
            throw FetchPlanner.refused("A block that locks rows needs a time of more than zero.")
        }
        try cancellation.check()
        let block = RowLockingBlock(context, limit, cancellation)
        context.lockingBlock = block
        defer {
            context.lockingBlock = nil
            block.endTransaction()
        }
        // Writes of other contexts that this block waits for are found by its scope.
        let result = try ConfinementScope.enter(block) { try ConfinementScope.enter(context, body) }
        try block.requireTimeAtEnd()
        return result
    }

    private func endTransaction() {
        let (transaction, hasBegun, rollBack) = state.withLock { state in
            if state.end == nil { state.end = .saved }
            defer { state.transaction = nil }
            return (state.transaction, state.store != nil, state.rollBack)
        }
        if hasBegun { BlockDeadlines.shared.remove(self) }
        transaction?.rollBack()
        // Until the turn to write is given back, a save of this thread would count as one inside the block.
        _ = rollBack?.sleep(timeout: Self.longestRollBack, cancellation: nil)
    }

    /// The longest wait for a roll-back by another thread, in seconds: a server may take longer.
    private static let longestRollBack = 5.0

    /// Lets the transaction end at the deadline; any thread may call it.
    func expire() {
        let end = Waiter()
        let transaction = state.withLock { state -> (any LockingTransaction)? in
            // A save that is under way may still commit.
            guard state.end == nil, state.work != .save else { return nil }
            state.end = .expired
            guard state.work == nil, let transaction = state.transaction else { return nil }
            state.transaction = nil
            state.rollBack = end
            return transaction
        }
        cancellation.cancel()
        guard let transaction else { return }
        transaction.rollBack()
        end.call()
    }

    func requireTime() throws {
        let isExpired = state.withLock { state in
            if case .expired = state.end { return true }
            return state.end == nil && ContinuousClock.now >= deadline
        }
        guard isExpired else { return }
        expire()
        throw timeout()
    }

    /// Reports at the end of the block that its transaction was rolled back.
    ///
    /// A block that has locked nothing, or whose save went to another store, has lost nothing by the end of its time.
    private func requireTimeAtEnd() throws {
        let (isOpen, hasSaved) = state.withLock { state in
            if case .expired = state.end { return (true, state.hasSavedOutside) }
            return (state.end == nil && state.transaction != nil, state.hasSavedOutside)
        }
        if isOpen, !hasSaved { try requireTime() }
    }

    func didSaveOutside() { state.withLock { $0.hasSavedOutside = true } }

    // MARK: - Using the transaction

    /// Runs `body` with the transaction, which may end while that runs, and ends it then.
    private func using<R>(_ work: Work, _ body: ((any LockingTransaction)?) throws -> R) throws -> R {
        let (transaction, end) = state.withLock { state -> ((any LockingTransaction)?, End?) in
            if state.end == nil { state.work = work }
            return (state.transaction, state.end)
        }
        switch end {
        case .lost(let error): throw error
        case .expired: throw timeout()
        case .saved, nil: break
        }
        defer {
            let ended = state.withLock { state -> (any LockingTransaction)? in
                state.work = nil
                if state.end == nil, state.transaction != nil, ContinuousClock.now >= deadline { state.end = .expired }
                guard state.end != nil else { return nil }
                defer { state.transaction = nil }
                return state.transaction
            }
            ended?.rollBack()
        }
        return try body(transaction)
    }

    private func end(with end: End) { state.withLock { if $0.end == nil { $0.end = end } } }

    private var isExpired: Bool {
        state.withLock { state in
            if case .expired = state.end { return true }
            return false
        }
    }

    // MARK: - Fetching

    func rows(for plan: FetchPlan, _ locking: RowLocking, in store: OpenStore) throws -> [Row] {
        guard store.custom == nil, let engine = store.rows as? any LockingStore else {
            throw CocoaError.described(
                .persistentStoreUnsupportedRequestType,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "Stores of type \(store.store.type) (\(type(of: store.store))) lock no rows.",
                    NSAffectedStoresErrorKey: [store.store],
                ]
            )
        }
        try requireTime()
        try requireOpen(for: store)
        var plan = plan
        plan.control = FetchControl(cancellation: cancellation)
        do {
            let rows = try using(.fetch) { known -> [Row] in
                guard let transaction = try known ?? begin(in: store, engine, locking.conduct) else {
                    if locking.conduct == .skip { return [] }
                    throw RowLockFailure.taken(try lockedByOthers(plan, engine))
                }
                do {
                    return try transaction.rows(for: plan, locking)
                } catch {
                    if transaction.isOver { end(with: .lost(described(error, plan, store))) }
                    throw error
                }
            }
            note(rows, of: plan)
            // The locks of these rows may be over already.
            try requireTime()
            return rows
        } catch {
            throw described(error, plan, store)
        }
    }

    /// Refuses a fetch if the transaction has ended, or belongs to another store.
    private func requireOpen(for store: OpenStore) throws {
        let (end, other) = state.withLock { state in
            (state.end, state.store.flatMap { $0 === store ? nil : $0 })
        }
        switch end {
        case .lost(let error): throw error
        case .saved:
            throw FetchPlanner.refused(
                "The save of this block has ended its transaction, so it cannot lock more rows. Lock them before the save, or in another block."
            )
        case .expired, nil: break
        }
        guard let other else { return }
        throw FetchPlanner.refused(
            "A block locks rows of one store, and this one has locked rows of \(other.store.url?.placeName ?? "another one")."
        )
    }

    /// Begins the transaction.
    private func begin(in store: OpenStore, _ engine: any LockingStore, _ conduct: RowLocking.Conduct) throws
        -> (any LockingTransaction)?
    {
        let time = LockingTime(end: deadline, cancellation: cancellation)
        guard let transaction = try engine.beginLocking(conduct, time, holder: self) else { return nil }
        state.withLock { state in
            state.store = store
            state.transaction = transaction
        }
        BlockDeadlines.shared.add(self, deadline)
        return transaction
    }

    /// The rows of a fetch, all of which others have locked, as far as an error names them.
    private func lockedByOthers(_ plan: FetchPlan, _ engine: any LockingStore) throws -> [ObjectReference] {
        let most = RowLockFailure.mostNamed
        let limit = plan.limit > 0 ? min(plan.limit, most) : most
        return try engine.references(
            for: plan.with(predicate: plan.predicate, sort: plan.sort, limit: limit, offset: plan.offset)
        )
    }

    private func note(_ rows: [Row], of plan: FetchPlan) {
        guard !rows.isEmpty else { return }
        state.withLock { state in
            state.counts[plan.layout.name, default: 0] += rows.count
            for row in rows.prefix(max(RowLockFailure.mostNamed - state.locked.count, 0)) {
                state.locked.append(ObjectReference(key: row.key, entity: row.layout.number))
            }
        }
    }

    // MARK: - Saving

    func save(
        _ changes: StoreChanges,
        to store: OpenStore,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws
        -> [StoreConflict]?
    {
        try requireTime()
        let (isSaved, known) = state.withLock { state in
            if case .saved = state.end { return (true, nil as OpenStore?) }
            return (false, state.store)
        }
        guard !isSaved, let known else { return nil }
        // Another store at the same place has replaced the one whose rows are locked.
        guard known === store || known.index != store.index else {
            throw FetchPlanner.refused(
                "The store whose rows this block has locked was migrated, so its locks have ended."
            )
        }
        guard known === store else { return nil }
        return try using(.save) { transaction in
            guard let transaction else { return nil }
            do {
                let conflicts = try transaction.save(changes, willCommit: willCommit, didCommit: didCommit)
                if transaction.isOver { end(with: .saved) }
                return conflicts
            } catch let doubt as SaveInDoubt {
                // The next save finds out what has become of this one.
                end(with: .saved)
                throw doubt
            } catch {
                guard transaction.isOver else { throw error }
                let reported: any Error =
                    if case RowLockFailure.deadlock(let cause) = error {
                        deadlock("The changes were not saved", cause, in: store)
                    } else {
                        error
                    }
                end(with: .lost(reported))
                throw reported
            }
        }
    }

    func refuse(_ work: @autoclosure () -> String, in store: OpenStore) throws {
        let isLocked = state.withLock { $0.transaction != nil && $0.store === store }
        guard isLocked else { return }
        throw FetchPlanner.refused(
            "\(work()) cannot run in a block that has locked rows of the same store, because it would wait for the block. Run it before or afterwards."
        )
    }

    // MARK: - Errors

    /// The error of a fetch, with the rows that are concerned.
    private func described(_ error: any Error, _ plan: FetchPlan, _ store: OpenStore) -> any Error {
        if isExpired { return timeout(waitingFor: plan.layout.name, error) }
        if cancellation.isCancelled { return CancellationError() }
        switch error {
        case RowLockFailure.taken(let references):
            let ids = ids(of: references, in: store)
            let names = ids.isEmpty ? "" : ": \(Self.list(ids))"
            return CocoaError.described(
                .managedObjectContextLocking,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "Rows of \(plan.layout.name) were not locked, because others have locked them or are saving them\(names).",
                    NSRowLockObjectIDsErrorKey: ids,
                    NSAffectedStoresErrorKey: [store.store],
                ]
            ).marked(.deadline)
        case RowLockFailure.deadlock(let cause):
            return deadlock("Rows of \(plan.layout.name) were not locked", cause, in: store)
        case let error as CocoaError where error.code == .persistentStoreTimeout && ContinuousClock.now >= deadline:
            expire()
            return timeout(waitingFor: plan.layout.name, error)
        default: return error
        }
    }

    /// The error for a block that has waited for others which waited for it.
    private func deadlock(_ outcome: String, _ cause: any Error, in store: OpenStore) -> CocoaError {
        CocoaError.described(
            .managedObjectContextLocking,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "\(outcome): this block and others have waited for each other's rows, so the server has ended its transaction\(lockedText(", which had locked ")). Run the block again. Blocks that lock rows in the same order do not wait for each other in this way.",
                NSRowLockObjectIDsErrorKey: lockedIDs,
                NSAffectedStoresErrorKey: [store.store],
                NSUnderlyingErrorKey: cause,
            ]
        ).marked(.conflict)
    }

    /// The error for a block that has taken too long.
    private func timeout(waitingFor entity: String? = nil, _ cause: (any Error)? = nil) -> CocoaError {
        if let cause = cause as? CocoaError, cause.userInfo[NSRowLockObjectIDsErrorKey] != nil { return cause }
        let wait = entity.map { " It was locking rows of \($0)." } ?? ""
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "The block had \(limit) to lock rows, and has taken longer, so its transaction was rolled back.\(wait)\(lockedText(" It had locked ", "."))",
            NSRowLockObjectIDsErrorKey: lockedIDs,
        ]
        userInfo[NSUnderlyingErrorKey] = cause
        return CocoaError.described(.persistentStoreTimeout, userInfo: userInfo).marked(.deadline)
    }

    private var lockedIDs: [NSManagedObjectID] {
        let (store, locked) = state.withLock { ($0.store, $0.locked) }
        return store.map { ids(of: locked, in: $0) } ?? []
    }

    private func ids(of references: [ObjectReference], in store: OpenStore) -> [NSManagedObjectID] {
        references.map { store.ids.id(key: $0.key, layout: context.layout(of: $0), store: store) }
    }

    /// A list of the locked rows between two texts; empty if there are none.
    private func lockedText(_ before: String, _ after: String = "") -> String {
        let counts = state.withLock { $0.counts }
        guard !counts.isEmpty else { return "" }
        let rows = counts.sorted { $0.key < $1.key }.map {
            "\($0.value) \($0.value == 1 ? "row" : "rows") of \($0.key)"
        }
        return "\(before)\(rows.joined(separator: ", ")) (\(Self.list(lockedIDs)))\(after)"
    }

    private static func list(_ ids: [NSManagedObjectID]) -> String {
        let first = ids.prefix(10).map { "\($0.entity.name ?? "")/\($0.uriRepresentation().lastPathComponent)" }
        return first.joined(separator: ", ") + (ids.count > 10 ? ", …" : "")
    }
}
