import CoreDataEssentials
import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// Keeps contexts up to date with changes that other processes write into the stores of a coordinator.
///
/// See <doc:FollowingChanges>.
///
/// ```swift
/// let follower = try coordinator.followRemoteChanges(into: [context])
/// try await follower.catchUp()  // The context shows what every process had committed before.
/// follower.stop()
/// ```
///
/// Each time a store was written to, the follower reads the new part of the store's history, and forgets the cached
/// rows of what was changed there. Then it lets the contexts merge the changes. So a merge shows what is stored,
/// whatever ``NSManagedObjectContext/stalenessInterval`` says, and unsaved changes are kept on top. Each context merges
/// on its own queue when its turn comes. A busy context delays neither the others nor the follower, and merges
/// everything that it has missed at once. Live results and fetched results controllers are updated too.
///
/// Changes that contexts of this coordinator write are not read again. In three cases the follower forgets all cached
/// rows, and brings all objects of the contexts up to date. The first: the history was purged beyond the place that the
/// follower had reached. The second: single transactions that it had not read were purged. The third: the store was
/// replaced by an older copy.
///
/// An addition to Apple's API. The follower works until ``stop()`` is called or it is released. Any thread may use it.
public final class RemoteChangeFollower: @unchecked Sendable {
    // @unchecked Sendable: `observers` is set in the initialiser and read in the deinitialiser; the rest is locked or
    // constant.

    private struct State {
        var token: NSPersistentHistoryToken
        /// The number of times that each store's history had gone back when it was read, by the store's UUID.
        var setBacks: [String: UInt64]
        var isStopped = false
    }

    private struct Target {
        weak var context: NSManagedObjectContext?
    }

    private weak let coordinator: NSPersistentStoreCoordinator?
    /// The chosen contexts; `nil` for all that follow saves.
    private let chosen: [Target]?
    private let state: Locked<State>
    private let isWoken = AtomicCell(false)
    private let queue = DispatchQueue(label: "CoreData remote change follower")
    private var observers: [any NSObjectProtocol] = []

    /// The seconds after which a history that could not be read is read again, if nothing else causes that before.
    private static let retryInterval = 1.0

    fileprivate init(
        coordinator: NSPersistentStoreCoordinator,
        contexts: [NSManagedObjectContext]?,
        token: NSPersistentHistoryToken,
        setBacks: [String: UInt64]
    ) {
        self.coordinator = coordinator
        chosen = contexts.map { $0.map { Target(context: $0) } }
        state = Locked(State(token: token, setBacks: setBacks))
        let center = NotificationCenter.default
        observers = [
            center.addObserver(forName: .NSPersistentStoreRemoteChange, object: coordinator, queue: nil) {
                [weak self] _ in self?.wake()
            },
            center.addObserver(
                forName: .NSPersistentStoreCoordinatorStoresDidChange,
                object: coordinator,
                queue: nil
            ) { [weak self] posted in
                self?.begin(with: posted.userInfo?[NSAddedPersistentStoresKey] as? [NSPersistentStore] ?? [])
            },
        ]
        // Changes may have been written since the token was taken.
        wake()
    }

    deinit { stop() }

    /// The place that the follower has reached: changes up to it are merged, or wait on the queues of the contexts.
    public var token: NSPersistentHistoryToken { state.withLock { $0.token } }

    /// Stops following.
    ///
    /// Changes that wait on the queues of contexts are still merged. Changes that are committed after this call are not.
    /// Calling it again does nothing.
    public func stop() {
        let wasStopped = state.withLock { state in
            defer { state.isStopped = true }
            return state.isStopped
        }
        guard !wasStopped else { return }
        for observer in observers { NotificationCenter.default.removeObserver(observer) }
    }

    /// Reads what is new, and suspends until the contexts have merged it.
    ///
    /// Each context merges after the blocks that were submitted to it before. Use this method if you cannot wait for
    /// the notification: when it returns, the contexts show everything that any process had committed before the call.
    /// It does not block a thread. After ``stop()`` it has no effect.
    ///
    /// ```swift
    /// let follower = try coordinator.followRemoteChanges(into: [context])
    /// try await follower.catchUp()
    /// ```
    ///
    /// - Throws: The error that keeps a store from being read, such as `persistentStoreTimeout` (134090).
    public func catchUp() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            Schedule.async(on: queue) { continuation.resume(with: Result { try self.follow() }) }
        }
        await withTaskGroup(of: Void.self) { group in
            for context in contexts {
                group.addTask {
                    await withCheckedContinuation { context.enqueueMerge(ChangeMessage(), isRequested: true, $0) }
                }
            }
        }
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private var contexts: [NSManagedObjectContext] {
        chosen?.compactMap(\.context) ?? coordinator?.followingContexts ?? []
    }

    // MARK: - Following

    private func wake() {
        guard !isWoken.exchange(true, ordering: .sequentiallyConsistent) else { return }
        Schedule.async(on: queue) { [weak self] in self?.run() }
    }

    private func run() {
        isWoken.store(false, ordering: .sequentiallyConsistent)
        do {
            try follow()
        } catch {
            coordinator?.report(error, "following what others write")
            Schedule.async(on: queue, after: Self.retryInterval) { [weak self] in self?.wake() }
        }
    }

    /// Starts at the end of the history of stores that were just added, since no rows of them have been read yet.
    private func begin(with stores: [NSPersistentStore]) {
        guard let token = coordinator?.currentPersistentHistoryToken(fromStores: stores) else { return }
        state.withLock { state in
            // A store that was known before keeps its place, unless it is an older copy now.
            state.token = NSPersistentHistoryToken(
                state.token.places.merging(token.places) { $1.number < $0.number ? $1 : $0 }
            )
        }
    }

    /// Reads the histories from the follower's place on, and passes on the changes of other writers.
    ///
    /// Called on the follower's queue.
    private func follow() throws {
        guard let coordinator, !isStopped else { return }
        for (store, entry) in HistoryStores.ofAll(coordinator.openStores) {
            let name = entry.store.identifier ?? ""
            do {
                // After that, the numbers in the token may be those of other transactions.
                let wasSetBack = state.withLock { $0.setBacks[name] ?? 0 } != store.historySetBacks
                if wasSetBack { try startAnew(in: store, entry: entry, name: name, coordinator: coordinator) }
                try followNews(of: store, entry: entry, name: name, coordinator: coordinator)
            } catch let error as CocoaError where error.code.rawValue == NSPersistentHistoryTokenExpiredError {
                try startAnew(in: store, entry: entry, name: name, coordinator: coordinator)
            }
        }
    }

    /// Passes on what is new in a store's history, portion by portion.
    ///
    /// If transactions are missing, in between or after the last one, they were purged singly, and anything may have
    /// changed.
    private func followNews(
        of store: any HistoryStore,
        entry: OpenStore,
        name: String,
        coordinator: NSPersistentStoreCoordinator
    ) throws {
        var end: HistoryPlace?
        while true {
            let start = token.places[name] ?? HistoryPlace(number: 0)
            var query = HistoryQuery()
            query.begin(after: start)
            query.until = end?.number
            query.limit = WorkSize.followedPortion
            let records = try store.history(query)
            // A run that had begun before `stop()` may have read what was committed after it.
            guard !isStopped else { return }
            passOn(records, of: store, entry: entry, coordinator: coordinator)
            if let last = records.last?.transaction {
                if last.number - start.number != Int64(records.count) {
                    mergeUnknownChanges(of: entry, coordinator: coordinator)
                }
                move(name, to: last.place)
            }
            guard records.count < WorkSize.followedPortion else { continue }
            if let end {
                guard end.number > token.places[name]?.number ?? 0 else { return }
                mergeUnknownChanges(of: entry, coordinator: coordinator)
                return move(name, to: end)
            }
            let place = try store.lastHistoryPlace()
            guard place.number > token.places[name]?.number ?? 0 else { return }
            // Either the transaction was written meanwhile, or it is missing.
            end = place
        }
    }

    private func passOn(
        _ records: [HistoryRecord],
        of store: any HistoryStore,
        entry: OpenStore,
        coordinator: NSPersistentStoreCoordinator
    ) {
        guard !records.isEmpty else { return }
        var messages: [ChangeMessage] = []
        var ownMessages: [ChangeMessage] = []
        for record in records {
            let message = ChangeMessage(record, in: entry)
            if store.hasWritten(record.transaction.number) {
                ownMessages.append(message)
            } else {
                messages.append(message)
            }
        }
        hand(ChangeMessage(coalescing: messages), own: ChangeMessage(coalescing: ownMessages), coordinator)
    }

    /// Stores the place in a store's history.
    ///
    /// It may lie before the last one, since the store may have become an older copy.
    private func move(_ store: String, to place: HistoryPlace) {
        state.withLock { state in
            var places = state.token.places
            places[store] = place
            state.token = NSPersistentHistoryToken(places)
        }
    }

    private func hand(
        _ message: ChangeMessage,
        own ownMessage: ChangeMessage,
        _ coordinator: NSPersistentStoreCoordinator
    ) {
        // This precedes all merges, since a merge reads the newest rows from the cache.
        message.invalidateRows()
        coordinator.commits.publish(message)
        for context in contexts {
            if !message.isEmpty { context.enqueueMerge(message, isRequested: true) }
            // Contexts that follow saves have got these changes from the context that saved them.
            if chosen != nil, !ownMessage.isEmpty { context.enqueueMerge(ownMessage, isRequested: true) }
        }
    }

    /// Continues at the end of a history whose beginning was purged, or of a store that is an older copy now.
    ///
    /// Nothing that was read before is relied on.
    private func startAnew(
        in store: any HistoryStore,
        entry: OpenStore,
        name: String,
        coordinator: NSPersistentStoreCoordinator
    ) throws {
        let setBacks = store.historySetBacks
        // The place is read first: everything that is written after this is read as new.
        let place = try store.lastHistoryPlace()
        guard !isStopped else { return }
        // In an older copy, other writers give their transactions numbers that this coordinator's transactions had.
        store.forgetOwnTransactions()
        mergeUnknownChanges(of: entry, coordinator: coordinator)
        move(name, to: place)
        state.withLock { $0.setBacks[name] = setBacks }
    }

    /// Forgets all rows of a store, and brings all of its objects up to date.
    private func mergeUnknownChanges(of entry: OpenStore, coordinator: NSPersistentStoreCoordinator) {
        entry.cache.removeAll()
        coordinator.commits.publishUnknownChanges()
        for context in contexts { context.submitCall { context.mergeUnknownChanges(of: entry) } }
    }
}

extension NSPersistentStoreCoordinator {
    /// Lets contexts merge changes that other processes, and other coordinators of this process, write into the stores.
    ///
    /// This works for SQLite stores that were added with ``NSPersistentHistoryTrackingKey`` and
    /// ``NSPersistentStoreRemoteChangeNotificationPostOptionKey``. Stores that are added later are followed from then
    /// on. May be called on any thread.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// let follower = try coordinator.followRemoteChanges(into: [context])
    /// try await follower.catchUp()
    /// ```
    ///
    /// - Parameters:
    ///   - contexts: The contexts that merge: contexts of this coordinator without a parent, which are not kept alive.
    ///     `nil`, the default, for all whose ``NSManagedObjectContext/automaticallyMergesChangesFromParent`` is true at
    ///     the time.
    ///   - token: The place to start from; `nil`, the default, for the current end of the history.
    /// - Returns: The follower. Keep it: it stops when it is released.
    /// - Throws: `persistentStoreOperation` (134070) if no store has both options.
    public func followRemoteChanges(
        into contexts: [NSManagedObjectContext]? = nil,
        after token: NSPersistentHistoryToken? = nil
    ) throws -> RemoteChangeFollower {
        var setBacks: [String: UInt64] = [:]
        for (store, entry) in HistoryStores.ofAll(openStores) {
            setBacks[entry.store.identifier ?? ""] = store.historySetBacks
        }
        let current = currentPersistentHistoryToken(fromStores: nil)
        let postsChanges = openStores.contains {
            ($0.store as? any CommitReportingStore)?.reportsCommits
                ?? StoreOption.flag($0.store.options?[NSPersistentStoreRemoteChangeNotificationPostOptionKey])
        }
        guard let current, postsChanges else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        """
                    There is nothing to follow: add a SQLite store with NSPersistentHistoryTrackingKey and \
                    NSPersistentStoreRemoteChangeNotificationPostOptionKey first.
                    """
                ]
            )
        }
        let start = token.map { token in
            // A store that the token does not name is followed from now on.
            NSPersistentHistoryToken(current.places.merging(token.places) { $1 })
        }
        return RemoteChangeFollower(coordinator: self, contexts: contexts, token: start ?? current, setBacks: setBacks)
    }
}

extension ChangeMessage {
    /// Makes a message from a transaction of the history.
    init(_ record: HistoryRecord, in entry: OpenStore) {
        self.init()
        for change in record.changes {
            let row = Change(key: change.key, layout: change.layout, store: entry)
            switch change.kind {
            case .insert: inserted.append(row)
            case .update: updated.append(row)
            case .delete: deleted.append(row)
            }
        }
    }
}
