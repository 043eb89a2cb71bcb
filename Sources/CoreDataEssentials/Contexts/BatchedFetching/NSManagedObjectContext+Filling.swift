import StrataRows

// How many faults get their rows at once. This is confined to the context's queue.

extension NSManagedObjectContext {
    /// Gives faults of one hierarchy the rows that they will be realised with.
    ///
    /// Rows of the row cache are used where they are fresh enough; one query reads the others. Objects that are not
    /// faults stay as they are. Faults whose rows have gone get no row.
    ///
    /// - Parameters:
    ///   - faults: The objects, of one store.
    ///   - layout: An entity that has all of them.
    ///   - store: Their store.
    ///   - rereads: Whether rows are read although they are known already.
    ///   - reads: The source of reads that were made in advance.
    /// - Returns: The rows that were read for objects that are not faults.
    /// - Throws: Errors of the store. If `reads` lack an answer, ``PreparedReads/attempt(_:)`` catches what is thrown.
    @discardableResult
    package final func fill(
        _ faults: [NSManagedObject],
        of layout: EntityLayout,
        in store: OpenStore,
        rereads: Bool = false,
        _ reads: PrefetchReads = PrefetchReads(nil)
    ) throws -> [Row] {
        try FaultFilling(of: faults, layout, in: store, self).run(rereads: rereads, reads)
    }

    // MARK: - Batches

    /// Reads the batch with an object, and what the fetch prefetches, if that batch has not been read yet.
    ///
    /// Afterwards a fault has its row, if there was a batch to read and the row exists.
    ///
    /// - Parameter object: An object that is accessed, usually a fault that is being realised.
    final func readBatches(for object: NSManagedObject) {
        let awaitsBatch = object.flags.contains(.awaitsBatch)
        object.flags.remove(.awaitsBatch)
        guard !rowsInAdvance.batchedFetches.isEmpty, let store = store(at: object.storeIndex) else { return }
        let isCached = upward == nil && store.cache.row(object.key, root: object.layout.rootNumber) != nil
        var hasRead = false
        for fetch in rowsInAdvance.batchedFetches.reversed() {
            // If the cache has the row, then the batch is read only if it brings more than the row.
            let prefetches = awaitsBatch && fetch.prefetches
            guard prefetches || !hasRead && (!isCached || fetch.realisesBatches),
                let batch = fetch.unreadBatch(with: object)
            else { continue }
            hasRead = true
            fetch.read(batch, in: self, for: object)
            fetch.letGoOfOldBatches(since: batch, in: self)
            if fetch.isRead { rowsInAdvance.forget(fetch) }
        }
        // Objects that were prefetched for former batches are released as well, if no code holds them.
        if hasRead { sweepIfGrown() }
    }

    /// Forgets batched fetches if no object of them is left.
    final func forgetUnusedBatches() {
        guard !rowsInAdvance.batchedFetches.isEmpty else { return }
        rowsInAdvance.keepFetches(rowsInAdvance.batchedFetches.filter { $0.isInUse(in: self) })
    }
}
