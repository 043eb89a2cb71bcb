import StrataRows

/// One reading of the rows with which many faults of one hierarchy will be realised.
///
///     root: rows of the cache that are fresh enough → one query for the others → faults get their rows
///     child: the root reads ahead, with one query → the parent is asked for each fault → faults get their rows
///
/// In a tree only the root asks stores. Then the child asks its parent as it does for a single fault. So changes of the
/// contexts in between count, and none of these contexts gets an object for this. A value lives for one call, inside
/// the context's scope.
struct FaultFilling {
    private let faults: [NSManagedObject]
    private let layout: EntityLayout
    private let store: OpenStore
    private let context: NSManagedObjectContext

    init(of faults: [NSManagedObject], _ layout: EntityLayout, in store: OpenStore, _ context: NSManagedObjectContext) {
        self.faults = faults
        self.layout = layout
        self.store = store
        self.context = context
    }

    /// Reads the rows, and gives them to the faults.
    ///
    /// - Returns: The rows that were read for objects that are not faults.
    func run(rereads: Bool, _ reads: PrefetchReads) throws -> [Row] {
        if let upward = context.upward { return try askParent(upward, rereads: rereads) }
        let store = try context.seen(store)
        var commits = store.cache.commits
        let keys = try keysToRead(rereads: rereads, store)
        guard !keys.isEmpty else { return [] }
        let rows: [Row]
        if let prepared = try reads.rows(forKeys: keys, in: layout, store) {
            (rows, commits) = prepared
        } else {
            rows = try context.storedRows(forKeys: keys, in: layout, store)
        }
        context.recordPrefetch(from: store, commits: commits, count: rows.count)
        return give(rows, storeIndex: Int32(store.index))
    }

    // MARK: - From the store

    /// Gives faults the rows that the cache has, and returns the keys of the others.
    private func keysToRead(rereads: Bool, _ store: OpenStore) throws -> [Int64] {
        var keys: [Int64] = []
        for object in faults where object.key > 0 {
            if rereads {
                keys.append(object.key)
            } else if object.flags.contains(.fault), object.current == nil {
                if let row = try context.freshRow(object.key, root: layout.rootNumber, store) {
                    object.current = row
                } else {
                    keys.append(object.key)
                }
            }
        }
        return keys
    }

    /// Gives faults the rows that were read for them, and returns those of other objects.
    private func give(_ rows: [Row], storeIndex: Int32) -> [Row] {
        let table = context.table(storeIndex: storeIndex, root: layout.rootNumber)
        var others: [Row] = []
        for row in rows {
            guard let object = table[row.key] else { continue }
            if object.flags.contains(.fault) { object.current = row } else { others.append(row) }
        }
        return others
    }

    // MARK: - From the parent

    private func askParent(_ upward: ParentLink, rereads: Bool) throws -> [Row] {
        let wanted = faults.filter { object in
            guard !object.flags.contains(.gone), context.isStored(object) else { return false }
            return object.flags.contains(.fault) ? rereads || object.current == nil : rereads
        }
        guard !wanted.isEmpty else { return [] }
        return try context.holdingChain {
            let stamp = context.stampBeforeRead(of: [store])
            let read = try readAhead(wanted.map(\.key), in: upward.root)
            context.recordPrefetch(through: upward, at: stamp, count: wanted.count)
            var others: [Row] = []
            for object in wanted {
                guard let row = try context.parentRow(of: object) else { continue }
                if object.flags.contains(.fault) { object.current = row } else { others.append(row) }
            }
            // Until here, the row cache may be the only other holder of these rows.
            withExtendedLifetime(read) {}
            return others
        }
    }

    /// Makes the row cache keep the rows of some keys, for as long as the caller holds the result.
    private func readAhead(_ keys: [Int64], in root: NSManagedObjectContext) throws -> [Row] {
        var rows: [Row] = []
        var cold: [Int64] = []
        for key in keys where key > 0 {
            if let row = try root.freshRow(key, root: layout.rootNumber, store) {
                rows.append(row)
            } else {
                cold.append(key)
            }
        }
        guard !cold.isEmpty else { return rows }
        return rows + (try root.storedRows(forKeys: cold, in: layout, store))
    }
}
