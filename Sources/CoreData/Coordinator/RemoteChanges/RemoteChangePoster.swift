import Foundation
import StrataSQLite
import Synchronization

/// Posts that a store was written to, by whomever.
///
/// Observers run on a queue of their own, so that a slow one holds up neither the watch nor a writer; what is written
/// meanwhile is posted once, after it.
final class RemoteChangePoster: Sendable {
    private let watcher: CommitWatcher
    private let post: Post

    /// Starts to watch a store.
    ///
    /// - Throws: `SQLiteError` if its file cannot be read.
    init(_ store: SQLiteStore, _ pool: ConnectionPool, in coordinator: NSPersistentStoreCoordinator) throws(SQLiteError)
    {
        let post = Post(store, coordinator)
        self.post = post
        watcher = try CommitWatcher(pool) { post.enqueue() }
    }

    /// Ends the watch; no notification is posted that is not under way.
    func stop() {
        post.isStopped.store(true, ordering: .sequentiallyConsistent)
        watcher.stop()
    }

    /// The notification that waits to be posted.
    private final class Post: @unchecked Sendable {
        // @unchecked Sendable: the references are constants, and the objects behind them are thread-safe.
        let isStopped = Atomic(false)
        private let isEnqueued = Atomic(false)
        private let queue = DispatchQueue(label: "CoreData remote changes")
        private weak let store: SQLiteStore?
        private weak let coordinator: NSPersistentStoreCoordinator?

        init(_ store: SQLiteStore, _ coordinator: NSPersistentStoreCoordinator) {
            self.store = store
            self.coordinator = coordinator
        }

        func enqueue() {
            guard !isEnqueued.exchange(true, ordering: .sequentiallyConsistent) else { return }
            queue.async { [self] in
                isEnqueued.store(false, ordering: .sequentiallyConsistent)
                guard !isStopped.load(ordering: .sequentiallyConsistent), let store, let coordinator else { return }
                coordinator.postRemoteChange(of: store)
            }
        }
    }
}

extension NSPersistentStoreCoordinator {
    fileprivate func postRemoteChange(of store: SQLiteStore) {
        var userInfo: [AnyHashable: Any] = [:]
        userInfo[NSStoreUUIDKey] = store.identifier
        userInfo[NSPersistentStoreURLKey] = store.url
        if store.hasHistory {
            userInfo[NSPersistentHistoryTokenKey] = currentPersistentHistoryToken(fromStores: [store])
        }
        NotificationCenter.default.post(name: .NSPersistentStoreRemoteChange, object: self, userInfo: userInfo)
    }
}
