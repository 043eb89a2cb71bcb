extension NSManagedObjectContext {
    /// Reads the rows of loaded objects that are about to be merged, with one query for each hierarchy, where the row cache has
    /// none: after a batch, or a change elsewhere.
    ///
    /// A save has left its rows in the cache, which the first object tells. What cannot be read here is read, and its error
    /// reported, object by object.
    final func readRowsToMerge(_ changes: [ChangeMessage.Change]) {
        guard upward == nil, changes.count > 1 else { return }
        var missing: [Hierarchy: [Int64]] = [:]
        var layouts: [Hierarchy: (layout: EntityLayout, store: OpenStore)] = [:]
        var isFirst = true
        for change in changes where change.key > 0 {
            guard
                let object = registered(
                    key: change.key,
                    layout: change.layout,
                    storeSlot: Int32(change.store.slot)
                ), !object.isFault
            else { continue }
            let root = change.layout.rootNumber
            // A version that cannot be had now has cached nothing; the object that is merged tells why.
            let isCached = (try? seen(change.store))?.cache.row(change.key, root: root) != nil
            if isFirst, isCached { return }
            isFirst = false
            guard !isCached else { continue }
            let hierarchy = Hierarchy(slot: change.store.slot, root: root)
            missing[hierarchy, default: []].append(change.key)
            layouts[hierarchy] = (change.layout, change.store)
        }
        for (hierarchy, keys) in missing where keys.count > 1 {
            guard let (layout, store) = layouts[hierarchy] else { continue }
            // Nothing is lost by an error: each object reads what is not in the cache, and reports its own.
            _ = try? storedRows(forKeys: keys, in: layout, store)
        }
    }

    private struct Hierarchy: Hashable {
        let slot: Int
        let root: Int
    }
}
