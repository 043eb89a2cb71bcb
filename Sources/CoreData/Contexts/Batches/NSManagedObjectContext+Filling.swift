import Foundation
import StrataRows

// How many faults get their rows at once. Confined to the context's queue.

extension NSManagedObjectContext {
    /// Gives faults of one hierarchy the rows that they will be realised with: those of the row cache, where they are
    /// fresh enough, and the others with one query.
    ///
    /// Objects that are no faults stay as they are. Faults whose rows have gone stay without.
    ///
    /// - Parameters:
    ///   - faults: The objects, of one store.
    ///   - layout: An entity that has all of them.
    ///   - store: Their store.
    ///   - rereads: Whether rows are read that are known already.
    ///   - reads: Where reads come from that were made beforehand.
    /// - Returns: The rows that were read, for those objects that are no faults.
    /// - Throws: Errors of the store; ``PreparedReads/Unanswered`` where `reads` lack an answer.
    @discardableResult
    final func fill(
        _ faults: [NSManagedObject],
        of layout: EntityLayout,
        in store: OpenStore,
        rereads: Bool = false,
        _ reads: PrefetchReads = PrefetchReads(nil)
    ) throws -> [Row] {
        if let upward { return try fillFromParent(faults, of: layout, in: store, upward, rereads: rereads) }
        let root = layout.rootNumber
        let store = try seen(store)
        var commits = store.cache.commits
        var keys: [Int64] = []
        for object in faults where object.key > 0 {
            if rereads {
                keys.append(object.key)
            } else if object.flags.contains(.fault), object.current == nil {
                if let row = try freshRow(object.key, root: root, store) {
                    object.current = row
                } else {
                    keys.append(object.key)
                }
            }
        }
        guard !keys.isEmpty else { return [] }
        let rows: [Row]
        if let prepared = try reads.rows(forKeys: keys, in: layout, store) {
            (rows, commits) = prepared
        } else {
            rows = try storedRows(forKeys: keys, in: layout, store)
        }
        notePrefetch(store, commits, rows.count)
        return give(rows, root: root, storeIndex: Int32(store.index))
    }

    /// Gives faults the rows that were read for them.
    ///
    /// - Returns: The rows of objects that are no faults.
    final func give(_ rows: [Row], root: Int, storeIndex: Int32) -> [Row] {
        let table = table(storeIndex: storeIndex, root: root)
        var others: [Row] = []
        for row in rows {
            guard let object = table[row.key] else { continue }
            if object.flags.contains(.fault) { object.current = row } else { others.append(row) }
        }
        return others
    }

    // MARK: - Batches

    /// Reads the batch of a batched fetch that an object is in, if it was not read yet, with what the fetch prefetches.
    ///
    /// A fault has its row afterwards, if there was a batch to read and the row is there.
    ///
    /// - Parameter object: An object that is touched, mostly a fault that is being realised.
    final func readBatches(for object: NSManagedObject) {
        let awaitsBatch = object.flags.contains(.awaitsBatch)
        object.flags.remove(.awaitsBatch)
        guard !rowsInAdvance.batchedFetches.isEmpty, let store = store(at: object.storeIndex) else { return }
        let isCached = upward == nil && store.cache.row(object.key, root: object.layout.rootNumber) != nil
        var hasRead = false
        for fetch in rowsInAdvance.batchedFetches.reversed() {
            // A row of the cache is no reason to read a batch, unless more than the row is to come with it.
            let prefetches = awaitsBatch && fetch.prefetches
            guard prefetches || !hasRead && (!isCached || fetch.realisesBatches),
                let batch = fetch.unreadBatch(with: object)
            else { continue }
            hasRead = true
            fetch.read(batch, in: self, for: object)
            fetch.letGoOfOldBatches(since: batch, in: self)
            if fetch.isRead { rowsInAdvance.forget(fetch) }
        }
        // Objects that were prefetched for former batches go as well, if nothing holds them.
        if hasRead { sweepIfGrown() }
    }

    /// Forgets batched fetches of which no object is left.
    final func forgetUnusedBatches() {
        guard !rowsInAdvance.batchedFetches.isEmpty else { return }
        rowsInAdvance.keepFetches(rowsInAdvance.batchedFetches.filter { $0.isInUse(in: self) })
    }
}
