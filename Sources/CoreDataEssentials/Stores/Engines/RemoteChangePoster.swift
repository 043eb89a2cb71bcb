import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// Posts notifications of writes to a store, by this or another process.
///
/// Observers run on a private queue, so that a slow observer delays neither the watch nor a writer. Writes during that
/// time are posted as one notification after it.
package final class RemoteChangePoster: @unchecked Sendable {
    // @unchecked Sendable: the references are constants, and the objects behind them are thread-safe.
    private let isStopped = AtomicCell(false)
    private let isEnqueued = AtomicCell(false)
    private let queue = DispatchQueue(label: "CoreData remote changes")
    private weak let store: NSPersistentStore?
    private weak let coordinator: NSPersistentStoreCoordinator?

    package init(_ store: NSPersistentStore, in coordinator: NSPersistentStoreCoordinator) {
        self.store = store
        self.coordinator = coordinator
    }

    /// Posts soon, unless a notification is already waiting.
    package func enqueue() {
        guard !isEnqueued.exchange(true, ordering: .sequentiallyConsistent) else { return }
        Schedule.async(on: queue) { [self] in
            isEnqueued.store(false, ordering: .sequentiallyConsistent)
            guard !isStopped.load(ordering: .sequentiallyConsistent), let store, let coordinator else { return }
            coordinator.postRemoteChange(of: store)
        }
    }

    /// Stops posting.
    ///
    /// A notification that is being posted is completed.
    package func stop() { isStopped.store(true, ordering: .sequentiallyConsistent) }
}

extension NSPersistentStoreCoordinator {
    fileprivate func postRemoteChange(of store: NSPersistentStore) {
        var userInfo: [AnyHashable: Any] = [:]
        userInfo[NSStoreUUIDKey] = store.identifier
        userInfo[NSPersistentStoreURLKey] = store.url
        if ((try? store.rows) as? any HistoryStore)?.hasHistory == true {
            userInfo[NSPersistentHistoryTokenKey] = currentPersistentHistoryToken(fromStores: [store])
        }
        NotificationCenter.default.post(name: .NSPersistentStoreRemoteChange, object: self, userInfo: userInfo)
    }
}
