import Foundation
import StrataPredicates

extension NSManagedObjectContext {
    /// Fetches what a request asks for.
    ///
    /// Pending changes are processed first and, unless the request says otherwise, folded into the answer: what is inserted
    /// counts, what is deleted does not, and what is changed counts as it is in memory. Reads on this thread, beside other
    /// readers and any writer.
    ///
    /// Dictionaries alone tell what is stored, whatever changes are pending.
    ///
    /// - Returns: Objects, IDs, dictionaries or a number, as the request's result type says.
    /// - Throws: `persistentStoreOperation` (134070) with a text that names the entity or key path for a request that makes
    ///   no sense; errors of the store.
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
        case .dictionaryResultType: return try dictionaries(specification, stores)
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
            return try DictionaryFetch(self, specification, stores).count()
        }
        return try ContextFetch(self, specification, stores, prepared).count()
    }

    /// Gives results the type that the request promises.
    private func cast<T>(_ results: [NSManagedObject], _ specification: FetchSpecification) throws -> [T] {
        guard let wanted = T.self as? NSManagedObject.Type else { return try castEach(results, specification) }
        // One look at each class that occurs is enough, which for most fetches is one look.
        var known: NSManagedObject.Type?
        for object in results {
            let type = type(of: object)
            if type == known { continue }
            guard type.isSubclass(of: wanted) else { throw mismatch(object, T.self) }
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

    private func mismatch(_ result: NSObject, _ wanted: Any.Type) -> CocoaError {
        if let object = result as? NSManagedObject, wanted is NSManagedObject.Type {
            return FetchPlanner.refused(
                "Objects of entity \(object.entity.name ?? "") are of class \(type(of: object)), not \(wanted). The model names class \"\(object.entity.managedObjectClassName ?? "")\": give it the name of your class, with its module if there is doubt."
            )
        }
        return FetchPlanner.refused(
            "The request's result type gives \(type(of: result)), not \(wanted). Set resultType to fit."
        )
    }
}

extension NSManagedObject {
    /// Whether this class is `other` or inherits from it.
    fileprivate static func isSubclass(of other: NSManagedObject.Type) -> Bool {
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
    /// What the stores have answered already; `nil` to ask them now.
    let prepared: PreparedReads?

    /// A fetch that was planned already.
    init(
        _ context: NSManagedObjectContext,
        _ specification: FetchSpecification,
        _ plan: FetchPlan,
        _ stores: [OpenStore],
        _ prepared: PreparedReads?
    ) {
        self.context = context
        self.prepared = prepared
        self.specification = specification
        self.plan = plan
        self.stores = stores
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
        self.specification = specification
        plan = try context.fetchPlanner().plan(specification)
        stores = try context.storesToAsk(plan, affected)
    }

    // MARK: - The three kinds of answer

    func objects() throws -> [NSManagedObject] {
        let overlay = PendingOverlay(context, plan, specification)
        guard let overlay else { return try window(stored(plan)) }
        if overlay.mustEvaluateAll { return overlay.window(try overlay.evaluateAll(try stored(plan.unfiltered))) }
        let rows = try stored(plan.widened(by: overlay.changedCount))
        return try overlay.fold(into: rows)
    }

    func ids() throws -> [NSManagedObjectID] {
        let overlay = PendingOverlay(context, plan, specification)
        if overlay == nil, context.upward != nil { return try askedOfParent(plan).idsForChild() }
        guard overlay == nil, stores.count == 1 else { return try objects().map(\.objectID) }
        let store = stores[0]
        return try references(in: store, plan).map {
            store.ids.id(key: $0.key, layout: context.layout(of: $0), store: store)
        }
    }

    func count() throws -> Int {
        let overlay = PendingOverlay(context, plan, specification)
        if let overlay {
            if overlay.mustEvaluateAll { return try objects().count }
            var all = try overlay.matchingCount
            if context.upward != nil {
                all += try askedOfParent(plan.unordered).idsForChild().count { !overlay.hides($0) }
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
        if context.upward != nil { return try askedOfParent(plan).count() }
        if stores.count == 1 { return try count(in: stores[0], plan) }
        // The limit is one over all stores.
        return plan.windowed(try stores.reduce(0) { $0 + (try count(in: $1, plan.unordered)) })
    }

    // MARK: - Stores

    /// What the stores, or the parent, hold, in order.
    private func stored(_ plan: FetchPlan) throws -> [NSManagedObject] {
        if context.upward != nil {
            return context.objects(of: try askedOfParent(plan).snapshotsForChild(), specification)
        }
        if stores.count == 1 { return try objects(from: stores[0], plan) }
        var all: [NSManagedObject] = []
        for store in stores { all.append(contentsOf: try objects(from: store, plan.firstPart)) }
        return try plan.sorted(all)
    }

    /// Applies offset and limit where more than one store was asked.
    private func window(_ objects: [NSManagedObject]) -> [NSManagedObject] {
        stores.count == 1 || context.upward != nil ? objects : plan.window(objects)
    }

    private func objects(from store: OpenStore, _ plan: FetchPlan) throws -> [NSManagedObject] {
        let wantsValues = !specification.returnsObjectsAsFaults || specification.shouldRefreshRefetchedObjects
        guard specification.includesPropertyValues, store.store.fetchesRows || wantsValues else {
            return try references(in: store, plan).map { reference in
                let layout = context.layout(of: reference)
                return context.registered(key: reference.key, layout: layout, storeSlot: Int32(store.slot))
                    ?? context.makeFault(key: reference.key, layout: layout, storeSlot: Int32(store.slot))
            }
        }
        let (rows, commits) = try rows(in: store, plan)
        return context.objects(
            from: rows,
            store,
            commits: commits,
            asFaults: specification.returnsObjectsAsFaults,
            refreshes: specification.shouldRefreshRefetchedObjects
        )
    }

    // MARK: - Asking

    /// The rows that a store holds, and its commit count before they were read.
    func rows(in store: OpenStore, _ plan: FetchPlan) throws -> (rows: [Row], commits: UInt64) {
        if let prepared { return try prepared.rows(store, plan) }
        let read = store.cache.beginRead()
        defer { store.cache.endRead(read) }
        let commits = store.cache.commits
        var rows = try store.store.rows(for: plan.asked(of: store))
        store.cache.offer(&rows, root: plan.layout.rootNumber, read: read)
        return (rows, commits)
    }

    private func references(in store: OpenStore, _ plan: FetchPlan) throws -> [ObjectReference] {
        try prepared?.references(store, plan) ?? store.store.references(for: plan.asked(of: store))
    }

    private func count(in store: OpenStore, _ plan: FetchPlan) throws -> Int {
        try prepared?.count(store, plan) ?? store.store.count(for: plan.asked(of: store))
    }
}

extension NSManagedObjectContext {
    /// The objects of rows that were just read: known ones stay as they are, new ones become faults on their row.
    ///
    /// What is passed:
    ///   - commits: The store's commit count before the rows were read.
    ///   - asFaults: Whether new objects stay faults until a property is read.
    ///   - refreshes: Whether known objects take the values that were read; unsaved changes stay on top.
    final func objects(
        from rows: [Row],
        _ store: OpenStore,
        commits: UInt64,
        asFaults: Bool,
        refreshes: Bool
    ) -> [NSManagedObject] {
        guard let first = rows.first else { return [] }
        let slot = Int32(store.slot)
        let root = first.layout.rootNumber
        let table = table(storeSlot: slot, root: root)
        settleStrangers()
        let isFirst = table.count == 0
        notePrefetch(store.slot, commits, rows.count)
        table.reserve(rows.count)
        var result: [NSManagedObject] = []
        result.reserveCapacity(rows.count)
        unowned(unsafe) var knownLayout = first.layout
        var type = knownLayout.objectClass.type(of: knownLayout.entity)
        for row in rows {
            if !isFirst { makeFaultIfForgotten(key: row.key, root: root, storeSlot: slot) }
            if !isFirst, let object = table[row.key] {
                if object.flags.contains(.fault) {
                    object.current = row
                    if !asFaults { object.realise(row) }
                } else if object.flags.contains(.gone) {
                    // Deleted while the store was read; or its deletion was merged, and now the row is back.
                    guard row.version > object.current?.version ?? 0 else { continue }
                    object.flags.remove([.gone, .deleted, .deletePropagated])
                    object.realise(row)
                } else if refreshes {
                    object.rebase(onto: row)
                }
                result.append(object)
                continue
            }
            if row.layout !== knownLayout {
                knownLayout = row.layout
                type = knownLayout.objectClass.type(of: knownLayout.entity)
            }
            let object = makeFault(
                key: row.key,
                layout: knownLayout,
                storeSlot: slot,
                type: type,
                in: table
            )
            object.current = row
            if !asFaults { object.realise(row) }
            result.append(object)
        }
        return result
    }

    /// Remembers at which commit faults were given their rows in advance.
    private func notePrefetch(_ slot: Int, _ commits: UInt64, _ count: Int) {
        while prefetchCommits.count <= slot { prefetchCommits.append(.max) }
        guard prefetchCommits[slot] != commits else { return }
        if prefetchCommits[slot] != .max {
            // Rows of an earlier fetch may be outdated. Where that is cheap they are dropped; else the faults that hold them,
            // and those of this fetch, ask the cache.
            guard registeredCount <= max(1024, count * 4) else { return }
            forEachRegistered { object in
                if object.flags.contains(.fault), object.storeSlot == Int32(slot) { object.current = nil }
            }
        }
        prefetchCommits[slot] = commits
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
