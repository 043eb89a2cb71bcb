import StrataPredicates
import StrataRows

/// One fetch of one context: it asks the stores or the parent, and adds pending changes to the answer.
///
/// It lives for one call.
package struct ContextFetch {
    let context: NSManagedObjectContext
    let specification: FetchSpecification
    let plan: FetchPlan
    let stores: [OpenStore]
    let overlay: PendingOverlay?
    /// The answers that stores have already given; `nil` to ask them now.
    let prepared: PreparedReads?
    /// The quiet reads that a child's fetch makes in this context; `nil` for a fetch of the context's own.
    let quiet: QuietReads?

    /// Makes a fetch that was planned already.
    init(
        context: NSManagedObjectContext,
        specification: FetchSpecification,
        plan: FetchPlan,
        stores: [OpenStore],
        prepared: PreparedReads?,
        quiet: QuietReads? = nil
    ) {
        self.context = context
        self.prepared = prepared
        self.quiet = quiet
        self.specification = specification
        self.plan = plan
        self.stores = stores
        overlay = PendingOverlay(
            context: context,
            plan: plan,
            specification: specification,
            affected: stores,
            quiet: quiet
        )
    }

    package init(
        context: NSManagedObjectContext,
        specification: FetchSpecification,
        affected: [NSPersistentStore]?,
        prepared: PreparedReads? = nil
    ) throws {
        context.assertCurrent("fetch(_:)")
        context.endEvent(isMerge: false)
        self.context = context
        self.prepared = prepared
        quiet = nil
        self.specification = specification
        let locksRows = specification.resultType == .managedObjectResultType && prepared == nil
        plan = try context.fetchPlanner()
            .plan(specification, locksRows: locksRows && context.lockingBlock != nil)
        stores = try context.storesToAsk(plan, affected)
        overlay = PendingOverlay(
            context: context,
            plan: plan,
            specification: specification,
            affected: affected == nil ? nil : stores
        )
    }

    // MARK: - The three kinds of answer

    func objects() throws -> [NSManagedObject] {
        // Mistakes in the request are refused before anything is read.
        try context.requireClasses(for: plan)
        let prefetches = try self.prefetches
        if let locking = specification.rowLocking { return try lockedObjects(locking, prefetches) }
        let wantedSlots = try context.fetchPlanner().wantedSlots(specification, of: plan.layout)
        if isReadInBatches {
            return try objects(of: batched(defaultSize: 0), prefetches)
        }
        let found = try partialObjects(wantedSlots) ?? unbatchedObjects()
        try context.prefetch(prefetches, of: found, PrefetchReads(prepared))
        return found
    }

    /// The objects of rows that are locked from now on, with the newest values.
    ///
    /// Unsaved changes do not count in the answer. An object that has some keeps the row on which they are based, so
    /// that a save finds out if another context has changed the row before it was locked.
    private func lockedObjects(_ locking: RowLocking, _ prefetches: [PrefetchStep]) throws -> [NSManagedObject] {
        guard let block = context.lockingBlock, context.pinnedVersion.generation == nil, stores.count == 1 else {
            throw FetchPlanner.refused(
                context.pinnedVersion.generation != nil
                    ? "\(context.describedName) is pinned, and locked rows are the newest ones. Unpin it before it locks rows."
                    : "Rows of one store are locked at a time, and \(stores.count) stores may hold \(plan.layout.name). Name one of them in affectedStores."
            )
        }
        let store = stores[0]
        try context.willRead(announced)
        let (rows, commits) = try lockedRows(locking, by: block, in: store)
        let found = context.uniqued(
            rows,
            from: store,
            commits: commits,
            asFaults: specification.returnsObjectsAsFaults,
            refreshes: true,
            sparesChanged: true
        ).filter { !$0.isDeleted }
        try context.prefetch(prefetches, of: found, PrefetchReads(nil))
        return found
    }

    /// Locks rows, and offers them to the cache.
    ///
    /// - Returns: The rows, and the number of commits that the cache had received before.
    private func lockedRows(_ locking: RowLocking, by block: any LockingBlock, in store: OpenStore) throws
        -> ([Row], UInt64)
    {
        // The cache notes removals from now on, because the locks may end as soon as the rows are read.
        let read = store.cache.beginAccess()
        defer { store.cache.endAccess(read) }
        let rows = try block.rows(for: plan.asked(ofStore: store.number), locking, in: store)
        // No other writer has changed the rows since, so they are as new as anything that the cache has received.
        let commits = store.cache.commits
        var offered = rows
        store.offer(&offered, root: plan.layout.rootNumber, read: read)
        return (rows, commits)
    }

    /// The objects of a fetch whose faults get their rows batch by batch.
    private func objects(of fetch: BatchedFetch, _ prefetches: [PrefetchStep]) throws -> [NSManagedObject] {
        let found = try fetch.objects(in: context)
        if !prefetches.isEmpty {
            // An object that already has its values triggers no read of a batch.
            let realised = found.filter { !$0.flags.contains(.fault) }
            try context.prefetch(prefetches, of: realised, PrefetchReads(prepared))
            for object in found where object.key > 0 { object.flags.insert(.awaitsBatch) }
        }
        fetch.letGoOfUnsaved()
        if !fetch.isRead { context.rowsInAdvance.remember(fetch) }
        return found
    }

    private var prefetches: [PrefetchStep] {
        get throws {
            try context.fetchPlanner()
                .prefetches(specification.relationshipKeyPathsForPrefetching ?? [], of: plan.layout)
        }
    }

    /// Whether the faults of an array get their rows batch by batch.
    ///
    /// A result that fits into one batch is read at once. Results from several stores have to be read to be put in
    /// order.
    private var isReadInBatches: Bool {
        specification.fetchBatchSize > 0 && specification.includesPropertyValues && stores.count == 1
            && !specification.shouldRefreshRefetchedObjects
            && (plan.limit == 0 || plan.limit > specification.fetchBatchSize)
    }

    /// The matching objects, to be read in batches.
    ///
    /// - Parameter defaultSize: The size of a batch if the request does not give one.
    /// - Returns: The fetch; no row is read unless the objects have to be put in order.
    /// - Throws: The errors of ``objects()``.
    func batched(defaultSize: Int) throws -> BatchedFetch {
        guard specification.rowLocking == nil else {
            throw FetchPlanner.refused(
                "A request with a rowLock is read by fetch(_:), which locks all of its rows at once."
            )
        }
        try context.requireClasses(for: plan)
        let size = specification.fetchBatchSize > 0 ? specification.fetchBatchSize : defaultSize
        let options = BatchedFetch.Options(
            readsRows: specification.includesPropertyValues,
            asFaults: specification.returnsObjectsAsFaults,
            refreshes: specification.shouldRefreshRefetchedObjects,
            prefetches: try prefetches
        )
        guard stores.count == 1, overlay?.mustEvaluateAll != true else {
            return BatchedFetch(try unbatchedObjects(), of: plan.layout, batchSize: size, options)
        }
        let store = stores[0]
        var (references, unsaved) = try identities(in: store, overlay?.widened(onlyStore) ?? plan)
        if let overlay {
            let folded = try overlay.fold(into: references, of: store, unsaved: unsaved, batchSize: size)
            references = folded.references
            unsaved += folded.unsaved
        }
        return BatchedFetch(
            references,
            of: plan.layout,
            storeIndex: Int32(store.index),
            unsaved: unsaved,
            batchSize: size,
            options
        )
    }

    /// The objects that the store or the parent has found, and those that only the parent has so far.
    private func identities(
        in store: OpenStore,
        _ plan: FetchPlan
    ) throws -> (references: [ObjectReference], unsaved: [NSManagedObject]) {
        guard context.upward != nil else { return (try references(in: store, plan), []) }
        var unsaved: [NSManagedObject] = []
        let references = try askParent(plan, { try $0.idsForChild() }).map { id in
            let (key, store) = id.current
            if store != nil { return ObjectReference(key: key, entity: id.layout.number) }
            unsaved.append(context.objectOrFault(with: id))
            return unsaved[unsaved.count - 1].reference
        }
        return (references, unsaved)
    }

    private func unbatchedObjects() throws -> [NSManagedObject] {
        guard let overlay else { return try window(stored(plan)) }
        if overlay.mustEvaluateAll { return overlay.window(try overlay.evaluateAll(try stored(plan.unfiltered))) }
        return try overlay.fold(into: try stored(overlay.widened(onlyStore)))
    }

    /// The store, if it is the only one and may leave out rows or values; otherwise `nil`.
    ///
    /// Reads that were made in advance do not know which rows to leave out, and refreshing objects takes all of them.
    private var onlyStore: OpenStore? {
        stores.count == 1 && prepared == nil && context.upward == nil && !specification.shouldRefreshRefetchedObjects
            ? stores[0] : nil
    }

    package func ids() throws -> [NSManagedObjectID] {
        if overlay == nil, context.upward != nil { return try askParent(plan) { try $0.idsForChild() } }
        guard overlay == nil, stores.count == 1 else { return try unbatchedObjects().map(\.objectID) }
        let store = stores[0]
        return try references(in: store, plan).map {
            store.ids.id(key: $0.key, layout: context.layout(of: $0), store: store)
        }
    }

    func count() throws -> Int {
        guard specification.rowLocking == nil else {
            throw FetchPlanner.refused(
                "A request with a rowLock locks the rows that fetch(_:) returns; it counts none."
            )
        }
        if let overlay {
            if overlay.mustEvaluateAll { return try unbatchedObjects().count }
            var all = try overlay.matchingCount
            if context.upward != nil {
                all += try askParent(plan.unordered) { try $0.idsForChild() }.count { !overlay.hides($0) }
                return plan.windowed(all)
            }
            for store in stores {
                // Only the keys are read, to leave out rows whose stored values are overridden by pending changes.
                for reference in try references(in: store, plan.unordered)
                where !overlay.hides(reference, store) {
                    all += 1
                }
            }
            return plan.windowed(all)
        }
        if context.upward != nil { return try askParent(plan) { try $0.count() } }
        if stores.count == 1 { return try count(in: stores[0], plan) }
        // One limit applies to all stores together.
        return plan.windowed(try stores.reduce(0) { $0 + (try count(in: $1, plan.unordered)) })
    }

    // MARK: - Stores

    /// The objects that the stores or the parent hold, in order.
    private func stored(_ plan: FetchPlan) throws -> [NSManagedObject] {
        let objects = try storedObjects(plan)
        if let quiet { for object in objects { quiet.recordRead(of: object) } }
        return objects
    }

    private func storedObjects(_ plan: FetchPlan) throws -> [NSManagedObject] {
        let evaluating = overlay?.mustEvaluateAll == true ? overlay?.reader : nil
        if context.upward != nil {
            let stamp = context.stampBeforeRead(of: stores)
            let found = try askParent(plan) { try $0.snapshotsForChild() }
            let objects = context.uniqued(found, specification, readAt: stamp)
            if let evaluating {
                for (object, snapshot) in zip(objects, found) {
                    substitute(context.row(of: snapshot, for: object), for: object, in: evaluating)
                }
            }
            return objects
        }
        if stores.count == 1 { return try ask(stores[0], plan, comparing: evaluating) }
        let reader = evaluating ?? ObjectReader(quiet)
        var all: [NSManagedObject] = []
        for store in stores { all.append(contentsOf: try ask(store, plan.firstPart, comparing: reader)) }
        return try plan.sorted(all, reader)
    }

    /// Lets a reader use the row that was read for an object in place of the values that the object shows.
    ///
    /// Unsaved changes count if the request includes them. Otherwise, and if another context has saved changes that
    /// this one has not merged, the store decides which objects are found, and in which order.
    private func substitute(_ row: Row, for object: NSManagedObject, in reader: ObjectReader) {
        guard object.flags.isDisjoint(with: .fault), let current = object.current, row.version >= current.version,
            !object.hasChanges || !specification.includesPendingChanges
        else { return }
        reader.substitute(row, for: object)
    }

    /// Applies offset and limit if more than one store was asked.
    private func window(_ objects: [NSManagedObject]) -> [NSManagedObject] {
        stores.count == 1 || context.upward != nil ? objects : plan.window(objects)
    }

    /// Faults with the values of some slots; `nil` if whole rows are needed.
    ///
    /// Whole rows are needed to realise or refresh objects, to put the results of several stores in order, or to add
    /// unsaved changes.
    private func partialObjects(_ slots: SlotSet?) throws -> [NSManagedObject]? {
        guard let slots, specification.includesPropertyValues, specification.returnsObjectsAsFaults, overlay == nil,
            let store = onlyStore, store.fetchesRows
        else { return nil }
        var partial = plan.asked(ofStore: store.number)
        partial.wantedSlots = slots
        try context.willRead(announced)
        return try context.partialObjects(from: store.reader.rows(for: partial), slots, storeIndex: Int32(store.index))
    }

    /// The objects that one store has found.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - plan: The part of the fetch for this store.
    ///   - reader: The reader that compares the objects afterwards, or puts them in order; `nil` if nothing does.
    /// - Returns: The objects, in the store's order.
    /// - Throws: Errors of the store.
    private func ask(
        _ store: OpenStore,
        _ plan: FetchPlan,
        comparing reader: ObjectReader?
    ) throws -> [NSManagedObject] {
        // Realising or refreshing objects needs their rows, and so does a comparison.
        let wantsValues = !specification.returnsObjectsAsFaults || specification.shouldRefreshRefetchedObjects
        guard
            specification.shouldRefreshRefetchedObjects || (reader != nil && store.fetchesRows)
                || (specification.includesPropertyValues && (store.fetchesRows || wantsValues))
        else { return try references(in: store, plan).compactMap { try object(of: $0, in: store) } }
        let (rows, commits) = try rows(in: store, plan)
        let objects = context.uniqued(
            rows,
            from: store,
            commits: commits,
            asFaults: specification.returnsObjectsAsFaults,
            refreshes: specification.shouldRefreshRefetchedObjects
        )
        if let reader, let first = rows.first {
            let table = context.table(storeIndex: Int32(store.index), root: first.layout.rootNumber)
            for row in rows { if let object = table[row.key] { substitute(row, for: object, in: reader) } }
        }
        return objects
    }

    /// The object of a row that was found without its values; `nil` if it has gone.
    private func object(of reference: ObjectReference, in store: OpenStore) throws -> NSManagedObject? {
        let (layout, storeIndex) = (context.layout(of: reference), Int32(store.index))
        context.makeFaultIfForgotten(key: reference.key, root: layout.rootNumber, storeIndex: storeIndex)
        guard let known = context.registered(key: reference.key, layout: layout, storeIndex: storeIndex) else {
            return context.makeFault(key: reference.key, layout: layout, storeIndex: storeIndex)
        }
        // The object's deletion was merged, and the row may exist again.
        return try !known.flags.contains(.gone) || context.isBack(known) ? known : nil
    }

    // MARK: - Asking

    /// The fetch, for those who watch.
    private var announced: StoreRead { StoreRead(.fetch, plan.layout, predicate: specification.predicate) }

    /// The rows that a store holds, and its commit count before they were read.
    func rows(in store: OpenStore, _ plan: FetchPlan) throws -> (rows: [Row], commits: UInt64) {
        if let rows = try prepared?.rows(store, plan) { return rows }
        try context.willRead(announced)
        store.forgetRowsOverwrittenByOthers()
        let read = store.cache.beginAccess()
        defer { store.cache.endAccess(read) }
        let commits = store.cache.commits
        return (try store.rows(for: plan.asked(ofStore: store.number), by: read), commits)
    }

    private func references(in store: OpenStore, _ plan: FetchPlan) throws -> [ObjectReference] {
        if let references = try prepared?.references(store, plan) { return references }
        try context.willRead(announced)
        return try store.reader.references(for: plan.asked(ofStore: store.number))
    }

    private func count(in store: OpenStore, _ plan: FetchPlan) throws -> Int {
        if let count = try prepared?.count(store, plan) { return count }
        try context.willRead(announced)
        return try store.reader.count(for: plan.asked(ofStore: store.number))
    }
}
