import Foundation
import StrataLocks

extension NSManagedObjectContext {
    /// Does the work of ``mergeChanges(fromContextDidSave:)``, which subclasses may override.
    final func mergeSave(of notification: Notification) {
        let message = ChangeMessage(userInfo: notification.userInfo ?? [:], coordinator)
        // This coordinator's row cache does not have changes that another coordinator or process has saved.
        if notification.userInfo?[NSPersistentHistoryTokenKey] != nil {
            message.invalidateRows()
        } else if let sender = notification.object as? NSManagedObjectContext,
            sender.persistentStoreCoordinator !== coordinator
        {
            message.invalidateRows()
        }
        merge(message)
    }

    /// Merges changes that were made elsewhere into several contexts, each on its own queue, and waits for all.
    ///
    /// This method waits as `performAndWait(_:)` does. If two blocks of different contexts each merge into the other's
    /// context at the same time, neither can continue, and the program stops. So call the method outside of any block,
    /// or inside a block of a context into which no other block merges. Or let contexts merge in turn
    /// (``automaticallyMergesChangesFromParent``, ``save(mergingInto:)``).
    ///
    /// ```swift
    /// let delete = NSBatchDeleteRequest(objectIDs: [id])
    /// delete.resultType = .resultTypeObjectIDs
    /// let deleted = (try context.execute(delete) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID] ?? []
    /// NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectIDsKey: deleted], into: [context])
    /// ```
    ///
    /// - Parameters:
    ///   - changeNotificationData: IDs, or URIs of IDs, in arrays or sets under the inserted, updated and deleted keys
    ///     (those for objects or those for IDs). A batch request's result or a message of another process has this
    ///     form. The cached rows of these IDs are forgotten first.
    ///   - contexts: The contexts to merge into.
    public class func mergeChanges(
        fromRemoteContextSave changeNotificationData: [AnyHashable: Any],
        into contexts: [NSManagedObjectContext]
    ) {
        var known: [(coordinator: NSPersistentStoreCoordinator, message: ChangeMessage)] = []
        // A child that is listed together with its parent merges after it, since it takes data over from the parent.
        for context in contexts.map({ ($0, $0.contextQueue.depth) }).sorted(by: { $0.1 < $1.1 }).map(\.0) {
            guard let coordinator = context.persistentStoreCoordinator else { continue }
            if !known.contains(where: { $0.coordinator === coordinator }) {
                let message = ChangeMessage(userInfo: changeNotificationData, coordinator)
                message.invalidateRows()
                known.append((coordinator, message))
            }
            guard let message = known.first(where: { $0.coordinator === coordinator })?.message else { continue }
            context.performAndWait { context.merge(message) }
            context.observers.storesChangedElsewhere(message)
        }
    }

    /// Whether this context merges saves of other contexts automatically.
    ///
    /// Default false. A root merges the saves of other contexts on the same coordinator; a child merges the saves of
    /// its parent, and of others into its parent.
    ///
    /// Saves and batches through this coordinator are merged. Changes of other processes are merged only if a
    /// `RemoteChangeFollower` follows them. Unsaved changes of this context are kept.
    ///
    /// A child merges in a block on its own queue that reads from its parent, so it waits until the parent has finished
    /// what it is doing. If the parent is in a block that waits for the child, the child reads within that block.
    ///
    /// ```swift
    /// container.viewContext.automaticallyMergesChangesFromParent = true
    /// ```
    public var automaticallyMergesChangesFromParent: Bool {
        get {
            assertCurrentOrUnused(#function)
            return inbox.isFollowing
        }
        set {
            assertCurrentOrUnused(#function)
            inbox.isFollowing = newValue
            followParent(newValue)
        }
    }

    /// Takes in a message that the context merges when its turn comes.
    ///
    /// Called on the saving context's queue. Messages that wait are merged together. A requested message is merged even
    /// if the context does not follow; `waiter` is resumed when that is done.
    package final func enqueueMerge(
        _ message: ChangeMessage,
        isRequested: Bool = false,
        _ waiter: CheckedContinuation<Void, Never>? = nil
    ) {
        if FaultGuard.mergeDelivery.isOff, waiter == nil { return }
        inbox.post(message, isRequested: isRequested, waiter) {
            performInternally {
                let (message, waiters) = self.inbox.removeAll()
                self.merge(message)
                self.changeTracker.show(recentlyDeleted: [])
                for waiter in waiters { waiter.resume() }
            }
        }
    }

    /// Merges a message into the registered objects.
    final func merge(_ message: ChangeMessage) {
        guard !message.isEmpty else { return }
        var merge = ContextMerge(of: message, into: self)
        measured(.merge, entity: nil, entersScope: false, rows: { message.count }) { merge.run() }
    }
}
