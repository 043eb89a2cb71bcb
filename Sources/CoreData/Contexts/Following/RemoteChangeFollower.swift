import Foundation
import StrataRows
import Synchronization

/// Keeps contexts fresh with what other processes write into the stores of a coordinator.
///
/// See <doc:FollowingChanges>.
///
/// ```swift
/// let follower = try coordinator.followRemoteChanges(into: [context])
/// try await follower.catchUp()  // The context shows what every process had committed before.
/// follower.stop()
/// ```
///
/// Each time a store was written to, the follower reads the store's history from where it was last, forgets the cached
/// rows of what was changed there, and only then has the contexts merge it. So a merge shows what is stored, whatever
/// ``NSManagedObjectContext/stalenessInterval`` says, and unsaved changes are kept on top. Contexts merge in turn, each
/// on its own queue; one that is busy holds up neither the others nor the follower, and takes what it has missed as one
/// merge. Live results and fetched results controllers follow.
///
/// What contexts of this coordinator write is not read again. If the history was purged further than the follower had
/// come, or transactions that it had not read were picked out, or the store has been replaced by an older copy, then
/// all cached rows are forgotten and all objects of the contexts brought up to date.
///
/// An addition to Apple's API. It follows until ``stop()``, or until nobody holds it. Any thread may use it.
public final class RemoteChangeFollower: @unchecked Sendable {
    // @unchecked Sendable: `observers` is set in the initialiser and read in the deinitialiser; the rest is locked or
    // constant.

    private struct State {
        var token: NSPersistentHistoryToken
        /// How often the history of each store had gone back when it was read from its end, by the store's UUID.
        var setBacks: [String: UInt64]
        var isStopped = false
    }

    private struct Target {
        weak var context: NSManagedObjectContext?
    }

    private weak let coordinator: NSPersistentStoreCoordinator?
    /// The contexts that were chosen; `nil` for all that follow saves.
    private let chosen: [Target]?
    private let state: Mutex<State>
    private let isWoken = Atomic(false)
    private let queue = DispatchQueue(label: "CoreData remote change follower")
    private var observers: [any NSObjectProtocol] = []

    /// Transactions that are read at a time, so that a long absence takes no more memory than its largest portion.
    private static let portion = 500
    /// Seconds after which a history that could not be read is read again, should nothing happen before.
    private static let retryInterval = 1.0

    fileprivate init(
        _ coordinator: NSPersistentStoreCoordinator,
        _ contexts: [NSManagedObjectContext]?,
        _ token: NSPersistentHistoryToken,
        setBacks: [String: UInt64]
    ) {
        self.coordinator = coordinator
        chosen = contexts.map { $0.map { Target(context: $0) } }
        state = Mutex(State(token: token, setBacks: setBacks))
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
        // For what was written since the token was taken.
        wake()
    }

    deinit { stop() }

    /// How far the follower has come: all that the token covers is merged, or waits on the queues of the contexts.
    public var token: NSPersistentHistoryToken { state.withLock { $0.token } }

    /// Ends the following.
    ///
    /// What waits on the queues of contexts is still merged. Idempotent.
    public func stop() {
        let wasStopped = state.withLock { state in
            defer { state.isStopped = true }
            return state.isStopped
        }
        guard !wasStopped else { return }
        for observer in observers { NotificationCenter.default.removeObserver(observer) }
    }

    /// Reads what is new, and suspends until the contexts have merged it, each after the blocks that were submitted to
    /// it before.
    ///
    /// For those who cannot wait for the notification: when this returns, the contexts show all that was committed, by
    /// whichever process, before the call. Does not wait with a thread. Without effect once the follower was stopped.
    ///
    /// ```swift
    /// let follower = try coordinator.followRemoteChanges(into: [context])
    /// try await follower.catchUp()
    /// ```
    ///
    /// - Throws: What keeps a store from being read, such as `persistentStoreTimeout` (134090).
    public func catchUp() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async { continuation.resume(with: Result { try self.follow() }) }
        }
        await withTaskGroup(of: Void.self) { group in
            for context in contexts {
                group.addTask {
                    await withCheckedContinuation { context.enqueueMerge(ChangeMessage(), isRequested: true, $0) }
                }
            }
        }
    }

    private var contexts: [NSManagedObjectContext] {
        chosen?.compactMap(\.context) ?? coordinator?.followingContexts ?? []
    }

    // MARK: - Following

    private func wake() {
        guard !isWoken.exchange(true, ordering: .sequentiallyConsistent) else { return }
        queue.async { [weak self] in self?.run() }
    }

    private func run() {
        isWoken.store(false, ordering: .sequentiallyConsistent)
        do {
            try follow()
        } catch {
            coordinator?.report(error, "following what others write")
            queue.asyncAfter(deadline: .now() + Self.retryInterval) { [weak self] in self?.wake() }
        }
    }

    /// Starts at the end of the history of stores that were just added: nobody has read rows of them yet.
    private func begin(with stores: [NSPersistentStore]) {
        guard let token = coordinator?.currentPersistentHistoryToken(fromStores: stores) else { return }
        state.withLock { state in
            // A store that was there before keeps its place, unless it is an older copy now.
            state.token = NSPersistentHistoryToken(
                state.token.places.merging(token.places) { $1.number < $0.number ? $1 : $0 }
            )
        }
    }

    /// Reads the histories from where the follower is, and hands on what others have written.
    ///
    /// On the follower's queue.
    private func follow() throws {
        guard let coordinator, !state.withLock({ $0.isStopped }) else { return }
        for (store, entry) in HistoryStores.ofAll(coordinator.openStores) {
            let name = entry.store.identifier ?? ""
            do {
                // The numbers that the token has may be those of other transactions.
                let wasSetBack = state.withLock { $0.setBacks[name] ?? 0 } != store.historySetBacks
                if wasSetBack { try startAnew(store, entry, name, coordinator) }
                try followNews(of: store, entry, name, coordinator)
            } catch let error as CocoaError where error.code.rawValue == NSPersistentHistoryTokenExpiredError {
                try startAnew(store, entry, name, coordinator)
            }
        }
    }

    /// Hands on what is new in a store's history, portion by portion.
    ///
    /// Transactions that are missing in between, or behind the last one, were picked out: then anything may have
    /// changed.
    private func followNews(
        of store: any HistoryStore,
        _ entry: OpenStore,
        _ name: String,
        _ coordinator: NSPersistentStoreCoordinator
    ) throws {
        var end: HistoryPlace?
        while true {
            let start = token.places[name] ?? HistoryPlace(number: 0)
            var query = HistoryQuery()
            query.begin(after: start)
            query.until = end?.number
            query.limit = Self.portion
            let records = try store.history(query)
            hand(records, of: store, entry, coordinator)
            if let last = records.last?.transaction {
                if last.number - start.number != Int64(records.count) { noteUnknownChanges(of: entry, coordinator) }
                move(name, to: last.place)
            }
            guard records.count < Self.portion else { continue }
            if let end {
                guard end.number > token.places[name]?.number ?? 0 else { return }
                noteUnknownChanges(of: entry, coordinator)
                return move(name, to: end)
            }
            let place = try store.lastHistoryPlace()
            guard place.number > token.places[name]?.number ?? 0 else { return }
            // Either it has come meanwhile, or it is missing.
            end = place
        }
    }

    private func hand(
        _ records: [HistoryRecord],
        of store: any HistoryStore,
        _ entry: OpenStore,
        _ coordinator: NSPersistentStoreCoordinator
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

    /// Notes the place in a store's history, which may lie behind the one before: the store may have become an older
    /// copy.
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
        // Before anybody merges: a merge reads what is newest in the cache.
        message.invalidateRows()
        coordinator.commits.publish(message)
        for context in contexts {
            if !message.isEmpty { context.enqueueMerge(message, isRequested: true) }
            // Contexts that follow saves were told by the one that has saved.
            if chosen != nil, !ownMessage.isEmpty { context.enqueueMerge(ownMessage, isRequested: true) }
        }
    }

    /// Goes on at the end of a history whose beginning is gone, or of which there is an older copy now, with nothing
    /// taken for granted.
    private func startAnew(
        _ store: any HistoryStore,
        _ entry: OpenStore,
        _ name: String,
        _ coordinator: NSPersistentStoreCoordinator
    ) throws {
        let setBacks = store.historySetBacks
        // The place first: what is written from here on is read as news.
        let place = try store.lastHistoryPlace()
        // In an older copy others give their transactions numbers that own ones had.
        store.forgetOwnTransactions()
        noteUnknownChanges(of: entry, coordinator)
        move(name, to: place)
        state.withLock { $0.setBacks[name] = setBacks }
    }

    /// Takes nothing of a store for granted that was read before.
    private func noteUnknownChanges(of entry: OpenStore, _ coordinator: NSPersistentStoreCoordinator) {
        entry.cache.removeAll()
        coordinator.commits.publishUnknownChanges()
        for context in contexts { context.perform { context.mergeUnknownChanges(of: entry) } }
    }
}

extension NSPersistentStoreCoordinator {
    /// Has contexts merge what other processes, and other coordinators of this one, write into the stores.
    ///
    /// For SQLite stores that were added with ``NSPersistentHistoryTrackingKey`` and
    /// ``NSPersistentStoreRemoteChangeNotificationPostOptionKey``; those added later are followed from then on. May be
    /// called on any thread.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// let follower = try coordinator.followRemoteChanges(into: [context])
    /// try await follower.catchUp()
    /// ```
    ///
    /// - Parameters:
    ///   - contexts: Where to merge: contexts of this coordinator without a parent, which are not kept alive. `nil`, the default,
    ///     for all whose ``NSManagedObjectContext/automaticallyMergesChangesFromParent`` is true at the time.
    ///   - token: Where to start; `nil`, the default, for now.
    /// - Returns: The follower, which has to be kept: it stops when nobody holds it.
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
            StoreOption.flag($0.store.options?[NSPersistentStoreRemoteChangeNotificationPostOptionKey])
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
        return RemoteChangeFollower(self, contexts, start ?? current, setBacks: setBacks)
    }
}

extension ChangeMessage {
    /// What a transaction of the history has changed.
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
