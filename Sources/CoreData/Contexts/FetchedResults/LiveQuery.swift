import Foundation
import StrataPredicates
import Synchronization

/// One observer's query: what may have changed since its last snapshot, and who waits for that.
///
/// Commits leave notes here, from whatever thread they are announced on; the observer takes them when it asks for its next
/// snapshot, and only then a fetch is made. So a slow observer coalesces commits instead of queueing snapshots, and no
/// thread belongs to an observer. As a snapshot is read after the commit was noted, none is missed, and as one
/// observer's snapshots are read one after the other, they come in commit order.
///
/// Any thread may call any member.
final class LiveQuery: Sendable {
    /// A row that was committed.
    struct RowIdentity: Hashable {
        let store: ObjectIdentifier
        let root: Int
        let key: Int64
    }

    /// What was committed since the last snapshot.
    struct Notes {
        /// The rows of the entity itself that changed.
        var rows: Set<RowIdentity> = []
        /// Whether there is anything to look at.
        var isEmpty = true
        /// Whether there is a new snapshot whatever changed.
        var isCertain = false
    }

    private struct State {
        weak var context: NSManagedObjectContext?
        var notes = Notes()
        var isFinished = false
        var waiter: CheckedContinuation<Bool, Never>?
    }

    private let state: Mutex<State>
    private let request: LiveRequest

    init(_ request: LiveRequest, _ context: NSManagedObjectContext) {
        self.request = request
        var notes = Notes()
        notes.isEmpty = false
        notes.isCertain = true
        state = Mutex(State(context: context, notes: notes))
    }

    /// A query that has nothing to tell.
    static func finished(_ request: LiveRequest) -> LiveQuery { LiveQuery(finished: request) }

    private init(finished request: LiveRequest) {
        self.request = request
        state = Mutex(State(context: nil, isFinished: true))
    }

    // MARK: - Noting commits

    /// Notes what was committed, if it can matter.
    func note(_ message: ChangeMessage) {
        var rows: [RowIdentity] = []
        var mayMatter = false
        for change in [message.inserted, message.updated, message.deleted].joined() {
            if request.entityNumbers.contains(change.layout.number) {
                rows.append(
                    RowIdentity(store: ObjectIdentifier(change.store), root: change.layout.rootNumber, key: change.key)
                )
                mayMatter = true
            }
            if request.relatedRoots.contains(change.layout.rootNumber) { mayMatter = true }
        }
        guard mayMatter else { return }
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.isFinished else { return nil }
            state.notes.isEmpty = false
            if !state.notes.isCertain {
                state.notes.rows.formUnion(rows)
                // An observer that does not ask for a long time needs no list of what it has missed.
                if state.notes.rows.count > 10_000 {
                    state.notes.rows = []
                    state.notes.isCertain = true
                }
            }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: true)
    }

    /// Notes that anything may have changed: there is a new snapshot in any case.
    func noteUnknownChanges() {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.isFinished else { return nil }
            state.notes = Notes(isEmpty: false, isCertain: true)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: true)
    }

    /// Ends the sequence: nothing is waited for any more.
    func finish() {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            state.isFinished = true
            state.context = nil
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: false)
    }

    // MARK: - The observer's side

    /// Waits until something was noted.
    ///
    /// - Returns: False when the context has gone or the task was cancelled.
    private func awaitNotes() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if state.isFinished { return false }
                    if !state.notes.isEmpty { return true }
                    state.waiter = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            finish()
        }
    }

    /// The next list of IDs that differs from `last`, or whose objects have changed.
    ///
    /// - Returns: `nil` when the context has gone or the task was cancelled.
    func next(after last: [NSManagedObjectID]?) async throws -> [NSManagedObjectID]? {
        while await awaitNotes() {
            let (context, notes) = state.withLock { state in
                defer { state.notes = Notes() }
                return (state.context, state.notes)
            }
            guard let context else { return nil }
            let ids: [NSManagedObjectID]
            do {
                let request = request
                ids = try await context.perform { try request.fetch(in: context) }
            } catch {
                finish()
                throw error
            }
            if Task.isCancelled { return nil }
            if notes.isCertain || last == nil || isNews(ids, last ?? [], notes.rows) { return ids }
        }
        return nil
    }

    private func isNews(_ ids: [NSManagedObjectID], _ last: [NSManagedObjectID], _ changed: Set<RowIdentity>) -> Bool {
        guard ids.count == last.count, zip(ids, last).allSatisfy({ $0 === $1 }) else { return true }
        guard !changed.isEmpty else { return false }
        return ids.contains { id in
            let (key, store) = id.current
            guard let store else { return false }
            return changed.contains(
                RowIdentity(store: ObjectIdentifier(store), root: id.layout.rootNumber, key: key)
            )
        }
    }
}

/// What a live query asks for, resolved once; any thread may read it.
struct LiveRequest: Sendable {
    /// A private copy that nobody changes: predicates and sort descriptors are immutable.
    private let specification: UncheckedBox<(FetchSpecification, [NSPersistentStore]?)>
    /// The entities whose rows the answer consists of.
    private(set) var entityNumbers: Set<Int> = []
    /// The roots of other entities that decide what the answer is.
    private(set) var relatedRoots: Set<Int> = []

    init(_ request: any AnyFetchRequest, _ context: NSManagedObjectContext) {
        var specification = request.specification
        specification.resultType = .managedObjectIDResultType
        specification.includesPendingChanges = false
        self.specification = UncheckedBox((specification, request.affectedStores))
        // A request that makes no sense is told of by the first fetch.
        guard let model = context.persistentStoreCoordinator?.frozenModel,
            let plan = try? FetchPlanner(model: model).plan(specification)
        else { return }
        entityNumbers = Set(plan.entityNumbers)
        relatedRoots = plan.relatedRootNumbers
    }

    /// The IDs of what is committed now.
    func fetch(in context: NSManagedObjectContext) throws -> [NSManagedObjectID] {
        try ContextFetch(context, specification.value.0, specification.value.1).ids()
    }
}
