import CoreDataEssentials
import StrataLocks
import StrataRows

extension NSPersistentStoreCoordinator {
    /// Carries out a batch in one store, and updates the row cache.
    ///
    /// - Throws: The store's error. Nothing has changed in that case, unless the error has
    ///   `NSPersistentStoreSaveInDoubtKey`.
    func execute(_ batch: Batch, in store: OpenStore) throws -> StoreBatch {
        var done = BatchChanges()
        var removals: UInt64 = 0
        var pending: PendingCommit?
        guard gate.enter() else { throw closedError }
        defer { gate.leave() }
        defer { if let pending { store.cache.end(pending) } }
        do {
            try store.execute(batch) { changes in
                pending = store.cache.begin(PendingCommit(of: changes), insteadOf: pending)
            } didCommit: { changes in
                FaultPoint.batchCommitted.pass()
                if !FaultGuard.batchInvalidation.isOff { store.cache.publish(changes) }
                removals = store.cache.removals
                done = changes
            }
        } catch let doubt as SaveInDoubt {
            // All rows that the batch may have changed are read again.
            store.cache.removeAll()
            throw doubt.error(of: store, "Read the objects that it was to change before you execute it again.")
        }
        return StoreBatch(store: store, changes: done, removals: removals)
    }
}

extension BatchChanges {
    /// The rows that the cache may have, and of which the store has other ones after the commit.
    fileprivate var outdated: some Sequence<BatchRows> { [changed, followed, related, deleted].joined() }
}

extension PendingCommit {
    fileprivate convenience init(of changes: BatchChanges) {
        self.init()
        for root in changes.unlistedRoots { addAll(root: root) }
        for rows in changes.outdated { for key in rows.keys { add(key, root: rows.layout.rootNumber) } }
    }
}

extension RowCache {
    /// Forgets the rows that a batch has changed or deleted.
    ///
    /// The batch calls it while it holds the store's writer, so that the cache learns of commits in their order. If a
    /// batch has not listed the rows that it changed, then the rows of the whole hierarchy are forgotten.
    fileprivate func publish(_ changes: BatchChanges) {
        for root in changes.unlistedRoots { invalidateAll(root: root) }
        var keys: [Int: [Int64]] = [:]
        for rows in changes.outdated {
            keys[rows.layout.rootNumber, default: []].append(contentsOf: rows.keys)
        }
        for (root, keys) in keys { invalidate(keys, root: root) }
        // The batch counts as a commit even if it changed no row that existed before.
        if keys.isEmpty, changes.unlistedRoots.isEmpty { invalidate(EmptyCollection(), root: 0) }
    }
}
