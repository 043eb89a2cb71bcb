import Foundation
import StrataPredicates

extension NSManagedObjectContext {
    /// Fetches what a request asks for.
    ///
    /// Pending changes are processed first and, unless the request says otherwise, folded into the answer: what is
    /// inserted counts, what is deleted does not, and what is changed counts as it is in memory. Reads on this thread,
    /// beside other readers and any writer.
    ///
    /// Dictionaries alone tell what is stored, whatever changes are pending.
    ///
    /// - Returns: Objects, IDs, dictionaries or a number, as the request's result type says.
    /// - Throws: `persistentStoreOperation` (134070) with a text that names the entity or key path for a request that
    ///   makes no sense; errors of the store.
    public func fetch<T>(_ request: NSFetchRequest<T>) throws -> [T] {
        if let type = T.self as? NSManagedObject.Type { ManagedClasses.register(type) }
        return try fetch(request.specification, request.affectedStores, nil)
    }

    /// Fetches with what stores have answered beforehand, or by asking them now.
    ///
    /// - Throws: Besides the errors of ``fetch(_:)``, ``PreparedReads/Unanswered`` where `prepared` lacks an answer.
    final func fetch<T>(
        _ specification: FetchSpecification,
        _ stores: [NSPersistentStore]?,
        _ prepared: PreparedReads?
    ) throws -> [T] {
        assertCurrent("fetch(_:)")
        defer { deliverRegistrations() }
        return try inChain {
            try ConfinementScope.enter(self) { try results(specification, stores, prepared) }
        }
    }

    private func results<T>(
        _ specification: FetchSpecification,
        _ stores: [NSPersistentStore]?,
        _ prepared: PreparedReads?
    ) throws -> [T] {
        switch specification.resultType {
        case .countResultType:
            return try cast([NSNumber(value: try count(specification, stores, prepared))], specification)
        case .managedObjectIDResultType:
            let fetch = try ContextFetch(self, specification, stores, prepared)
            return try cast(try fetch.ids(), specification)
        case .managedObjectResultType:
            let fetch = try ContextFetch(self, specification, stores, prepared)
            return try cast(try fetch.objects(), specification)
        case .dictionaryResultType: return try dictionaries(specification, stores, prepared)
        default:
            throw FetchPlanner.refused(
                "resultType can be one of the result types, not several (\(specification.resultType.rawValue))."
            )
        }
    }

    /// Counts what a request would fetch, pending changes included unless the request says otherwise.
    ///
    /// - Throws: As ``fetch(_:)``.
    public func count<T>(for request: NSFetchRequest<T>) throws -> Int {
        if let type = T.self as? NSManagedObject.Type { ManagedClasses.register(type) }
        assertCurrent(#function)
        let specification = request.specification
        return try inChain {
            try ConfinementScope.enter(self) { try count(specification, request.affectedStores, nil) }
        }
    }

    private func count(
        _ specification: FetchSpecification,
        _ stores: [NSPersistentStore]?,
        _ prepared: PreparedReads?
    ) throws -> Int {
        if DictionaryFetch.decidesCount(of: specification) {
            return try DictionaryFetch(self, specification, stores, prepared).count()
        }
        return try ContextFetch(self, specification, stores, prepared).count()
    }

    /// Gives results the type that the request promises.
    private func cast<T>(_ results: [NSManagedObject], _ specification: FetchSpecification) throws -> [T] {
        guard let wanted = T.self as? NSManagedObject.Type else { return try castEach(results, specification) }
        // One look at each class that occurs is enough, which for most fetches is one look. Not counted references,
        // which lie in memory as counted ones do: the results hold the objects.
        var known: NSManagedObject.Type?
        for reference in unsafeBitCast(results, to: [Unmanaged<NSManagedObject>].self) {
            let type = reference._withUnsafeGuaranteedRef { Swift.type(of: $0) }
            if type == known { continue }
            guard type.isSubclass(of: wanted) else {
                throw mismatch(type, of: reference.takeUnretainedValue().entity, T.self)
            }
            known = type
        }
        // Every element was checked above, and arrays of class references have one layout.
        return unsafeBitCast(results, to: [T].self)
    }

    private func cast<T>(_ results: [NSObject], _ specification: FetchSpecification) throws -> [T] {
        try castEach(results, specification)
    }

    /// Gives results the type that the request promises, each for itself.
    final func castEach<T>(_ results: [NSObject], _ specification: FetchSpecification) throws -> [T] {
        try results.map { result in
            guard let typed = result as? T else { throw mismatch(result, T.self) }
            return typed
        }
    }

    /// The error for objects that are not of the class that a request promises.
    final func mismatch(
        _ type: NSManagedObject.Type,
        of entity: NSEntityDescription,
        _ wanted: Any.Type
    ) -> CocoaError {
        FetchPlanner.refused(
            "Objects of entity \(entity.name ?? "") are of class \(type), not \(wanted). The model names class \"\(entity.managedObjectClassName ?? "")\": give it the name of your class, with its module if there is doubt."
        )
    }

    private func mismatch(_ result: NSObject, _ wanted: Any.Type) -> CocoaError {
        FetchPlanner.refused(
            "The request's result type gives \(type(of: result)), not \(wanted). Set resultType to fit."
        )
    }
}

extension NSManagedObject {
    /// Whether this class is `other` or inherits from it.
    static func isSubclass(of other: NSManagedObject.Type) -> Bool {
        var type: AnyClass? = self
        while let current = type {
            if current == other { return true }
            type = _getSuperclass(current)
        }
        return false
    }
}

/// One fetch of one context: asks the stores, or the parent, and folds pending changes in.
///
/// Lives for one call.
struct ContextFetch {
    let context: NSManagedObjectContext
    let specification: FetchSpecification
    let plan: FetchPlan
    let stores: [OpenStore]
    let overlay: PendingOverlay?
    /// What the stores have answered already; `nil` to ask them now.
    let prepared: PreparedReads?
    /// What is looked at for a child; `nil` for a fetch of the context's own.
    let quiet: QuietReads?

    /// A fetch that was planned already.
    init(
        _ context: NSManagedObjectContext,
        _ specification: FetchSpecification,
        _ plan: FetchPlan,
        _ stores: [OpenStore],
        _ prepared: PreparedReads?,
        _ quiet: QuietReads? = nil
    ) {
        self.context = context
        self.prepared = prepared
        self.quiet = quiet
        self.specification = specification
        self.plan = plan
        self.stores = stores
        overlay = PendingOverlay(context, plan, specification, affected: stores, quiet)
    }

    init(
        _ context: NSManagedObjectContext,
        _ specification: FetchSpecification,
        _ affected: [NSPersistentStore]?,
        _ prepared: PreparedReads? = nil
    ) throws {
        context.assertCurrent("fetch(_:)")
        context.processPendingChanges()
        self.context = context
        self.prepared = prepared
        quiet = nil
        self.specification = specification
        plan = try context.fetchPlanner().plan(specification)
        stores = try context.storesToAsk(plan, affected)
        overlay = PendingOverlay(context, plan, specification, affected: affected == nil ? nil : stores)
    }

    // MARK: - The three kinds of answer

    func objects() throws -> [NSManagedObject] {
        // What the request says wrongly is refused before anything is read.
        let prefetches = try self.prefetches
        let wantedSlots = try context.fetchPlanner().wantedSlots(specification, of: plan.layout)
        if isReadInBatches {
            let fetch = try batched(defaultSize: 0)
            if !fetch.isRead { context.rowsInAdvance.remember(fetch) }
            return fetch.objects(in: context)
        }
        let found = try partialObjects(wantedSlots) ?? unbatchedObjects()
        try context.prefetch(prefetches, of: found, PrefetchReads(prepared))
        return found
    }

    private var prefetches: [PrefetchStep] {
        get throws {
            try context.fetchPlanner()
                .prefetches(specification.relationshipKeyPathsForPrefetching ?? [], of: plan.layout)
        }
    }

    /// Whether an array's faults are to get their rows batch by batch.
    ///
    /// What fits into one batch is read at once; what comes from several stores has to be read to be put in order.
    private var isReadInBatches: Bool {
        specification.fetchBatchSize > 0 && specification.includesPropertyValues && stores.count == 1
            && !specification.shouldRefreshRefetchedObjects
            && (plan.limit == 0 || plan.limit > specification.fetchBatchSize)
    }

    /// What matches, to be read in batches.
    ///
    /// - Parameter defaultSize: The size of a batch where the request says nothing.
    /// - Returns: The fetch, of which nothing is read unless it has to be put in order.
    /// - Throws: What ``objects()`` throws.
    func batched(defaultSize: Int) throws -> BatchedFetch {
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

    /// What the store, or the parent, has found, and those objects that only the parent has so far.
    private func identities(
        in store: OpenStore,
        _ plan: FetchPlan
    ) throws -> (references: [ObjectReference], unsaved: [NSManagedObject]) {
        guard context.upward != nil else { return (try references(in: store, plan), []) }
        var unsaved: [NSManagedObject] = []
        let references = try askParent(plan, { try $0.idsForChild() }).map { id in
            let (key, store) = id.current
            if store != nil { return ObjectReference(key: key, entity: id.layout.number) }
            unsaved.append(context.object(with: id))
            return unsaved[unsaved.count - 1].reference
        }
        return (references, unsaved)
    }

    private func unbatchedObjects() throws -> [NSManagedObject] {
        guard let overlay else { return try window(stored(plan)) }
        if overlay.mustEvaluateAll { return overlay.window(try overlay.evaluateAll(try stored(plan.unfiltered))) }
        return try overlay.fold(into: try stored(overlay.widened(onlyStore)))
    }

    /// The store, if it is the only one and may leave rows or values out: what was read before does not know which, and
    /// to refresh objects takes all.
    private var onlyStore: OpenStore? {
        stores.count == 1 && prepared == nil && context.upward == nil && !specification.shouldRefreshRefetchedObjects
            ? stores[0] : nil
    }

    func ids() throws -> [NSManagedObjectID] {
        if overlay == nil, context.upward != nil { return try askParent(plan) { try $0.idsForChild() } }
        guard overlay == nil, stores.count == 1 else { return try unbatchedObjects().map(\.objectID) }
        let store = stores[0]
        return try references(in: store, plan).map {
            store.ids.id(key: $0.key, layout: context.layout(of: $0), store: store)
        }
    }

    func count() throws -> Int {
        if let overlay {
            if overlay.mustEvaluateAll { return try unbatchedObjects().count }
            var all = try overlay.matchingCount
            if context.upward != nil {
                all += try askParent(plan.unordered) { try $0.idsForChild() }.count { !overlay.hides($0) }
                return plan.windowed(all)
            }
            for store in stores {
                // Only the keys are read, to leave out those whose stored values do not count.
                for reference in try references(in: store, plan.unordered)
                where !overlay.hides(reference, store) {
                    all += 1
                }
            }
            return plan.windowed(all)
        }
        if context.upward != nil { return try askParent(plan) { try $0.count() } }
        if stores.count == 1 { return try count(in: stores[0], plan) }
        // The limit is one over all stores.
        return plan.windowed(try stores.reduce(0) { $0 + (try count(in: $1, plan.unordered)) })
    }

    // MARK: - Stores

    /// What the stores, or the parent, hold, in order.
    private func stored(_ plan: FetchPlan) throws -> [NSManagedObject] {
        let objects = try storedObjects(plan)
        if let quiet { for object in objects { quiet.note(object) } }
        return objects
    }

    private func storedObjects(_ plan: FetchPlan) throws -> [NSManagedObject] {
        if context.upward != nil {
            return context.uniqued(try askParent(plan) { try $0.snapshotsForChild() }, specification)
        }
        if stores.count == 1 { return try ask(stores[0], plan) }
        var all: [NSManagedObject] = []
        for store in stores { all.append(contentsOf: try ask(store, plan.firstPart)) }
        return try plan.sorted(all, ObjectReader(quiet))
    }

    /// Applies offset and limit where more than one store was asked.
    private func window(_ objects: [NSManagedObject]) -> [NSManagedObject] {
        stores.count == 1 || context.upward != nil ? objects : plan.window(objects)
    }

    /// Faults with the values of some slots; `nil` where whole rows are needed: to realise or refresh objects, to put
    /// the results of several stores in order, or to fold unsaved changes in.
    private func partialObjects(_ slots: SlotSet?) throws -> [NSManagedObject]? {
        guard let slots, specification.includesPropertyValues, specification.returnsObjectsAsFaults, overlay == nil,
            let store = onlyStore, store.store.fetchesRows
        else { return nil }
        var partial = plan.asked(of: store)
        partial.wantedSlots = slots
        return context.partialObjects(from: try store.reader.rows(for: partial), slots, storeIndex: Int32(store.index))
    }

    /// The objects of what one store has found.
    private func ask(_ store: OpenStore, _ plan: FetchPlan) throws -> [NSManagedObject] {
        // To realise or to refresh objects takes their rows.
        let wantsValues = !specification.returnsObjectsAsFaults || specification.shouldRefreshRefetchedObjects
        guard
            specification.shouldRefreshRefetchedObjects
                || (specification.includesPropertyValues && (store.store.fetchesRows || wantsValues))
        else {
            return try references(in: store, plan).map { reference in
                let layout = context.layout(of: reference)
                return context.registered(key: reference.key, layout: layout, storeIndex: Int32(store.index))
                    ?? context.makeFault(key: reference.key, layout: layout, storeIndex: Int32(store.index))
            }
        }
        let (rows, commits) = try rows(in: store, plan)
        return context.uniqued(
            rows,
            from: store,
            commits: commits,
            asFaults: specification.returnsObjectsAsFaults,
            refreshes: specification.shouldRefreshRefetchedObjects
        )
    }

    // MARK: - Asking

    /// The rows that a store holds, and its commit count before they were read.
    func rows(in store: OpenStore, _ plan: FetchPlan) throws -> (rows: [Row], commits: UInt64) {
        if let rows = try prepared?.rows(store, plan) { return rows }
        let read = store.cache.beginRead()
        defer { store.cache.endRead(read) }
        let commits = store.cache.commits
        var rows = try store.reader.rows(for: plan.asked(of: store))
        store.cache.offer(&rows, root: plan.layout.rootNumber, read: read)
        return (rows, commits)
    }

    private func references(in store: OpenStore, _ plan: FetchPlan) throws -> [ObjectReference] {
        try prepared?.references(store, plan) ?? store.reader.references(for: plan.asked(of: store))
    }

    private func count(in store: OpenStore, _ plan: FetchPlan) throws -> Int {
        try prepared?.count(store, plan) ?? store.reader.count(for: plan.asked(of: store))
    }
}

extension NSManagedObjectContext {
    /// The objects of rows that were just read: known ones stay as they are, new ones become faults on their row.
    ///
    /// - Parameters:
    ///   - rows: What was read, of one hierarchy.
    ///   - store: The store that has the rows.
    ///   - commits: The store's commit count before the rows were read.
    ///   - asFaults: Whether new objects stay faults until a property is read.
    ///   - refreshes: Whether known objects take the values that were read; unsaved changes stay on top.
    /// - Returns: One object for each row, but for those whose deletion is newer than the row.
    final func uniqued(
        _ rows: [Row],
        from store: OpenStore,
        commits: UInt64,
        asFaults: Bool,
        refreshes: Bool
    ) -> [NSManagedObject] {
        guard let first = rows.first else { return [] }
        let storeIndex = Int32(store.index)
        let root = first.layout.rootNumber
        let table = table(storeIndex: storeIndex, root: root)
        settleStrangers()
        // Hooks that run on the way may bring in objects of rows that are still to come.
        let isFirst = table.count == 0 && asFaults
        notePrefetch(store, commits, rows.count)
        table.reserve(max(0, rows.count - table.count))
        let flags = ObjectFlags.newFault
        var result: [NSManagedObject] = []
        result.reserveCapacity(rows.count)
        var layout = first.unsafe.header.pointee.layout
        var type = layout.takeUnretainedValue().objectType
        for held in Row.unmanaged(rows) {
            let row = UnsafeRow(held)
            let key = row.header.pointee.key
            if !isFirst { makeFaultIfForgotten(key: key, root: root, storeIndex: storeIndex) }
            if !isFirst, let object = table[key] {
                let row = Row(shared: held.takeUnretainedValue())
                if object.flags.contains(.gone) {
                    // Deleted while the store was read; or its deletion was merged, and now the row is back.
                    guard row.version > object.current?.version ?? 0 else { continue }
                    bringBack(object, row)
                } else if object.flags.contains(.fault) {
                    object.current = row
                    if !asFaults { object.realise(row) }
                } else if refreshes {
                    object.rebase(onto: row)
                }
                result.append(object)
                continue
            }
            let rowLayout = row.header.pointee.layout
            if rowLayout.toOpaque() != layout.toOpaque() {
                layout = rowLayout
                type = layout.takeUnretainedValue().objectType
            }
            let object = layout._withUnsafeGuaranteedRef {
                makeFault(key: key, layout: $0, storeIndex: storeIndex, type: type, flags: flags, in: table)
            }
            object.hold(held)
            if !asFaults { object.realise() }
            result.append(consume object)
        }
        return result
    }
}

extension NSFetchRequest {
    /// Executes the request in the context whose scope the caller is in.
    ///
    /// - Throws: As ``NSManagedObjectContext/fetch(_:)``; `persistentStoreOperation` (134070) outside of any scope.
    public func execute() throws -> [ResultType] {
        guard let context = ConfinementScope.innermost as? NSManagedObjectContext else {
            throw FetchPlanner.refused(
                "execute() was called outside of any context's perform, so there is no context to use."
            )
        }
        return try context.fetch(self)
    }
}
