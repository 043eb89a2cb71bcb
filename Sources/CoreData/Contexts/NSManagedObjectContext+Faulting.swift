import Foundation

// How faults get their rows: from what a fetch brought in advance, from the row cache, or from the store.

extension NSManagedObjectContext {
    /// What became of the attempt to realise a fault.
    enum FaultResult {
        case found(Row)
        /// There is no such row any more.
        case missing
        /// The store cannot be read just now. That was reported; a property access cannot throw.
        case unreadable
    }

    /// Finds the row for a fault that is being realised.
    ///
    /// A store that was removed counts as one without rows.
    final func rowForFault(_ object: NSManagedObject) -> FaultResult {
        do {
            return try newestRow(ofFault: object).map { .found($0) } ?? .missing
        } catch {
            coordinator?.report(error, "reading \(object.objectID)")
            return .unreadable
        }
    }

    /// The row that a fault would be filled with; `nil` if there is none.
    ///
    /// The object stays a fault.
    final func newestRow(ofFault object: NSManagedObject) throws -> Row? {
        if object.key < 0 { settleStrangers() }
        if upward != nil {
            if let row = object.current, isNewestInTree(row) { return row }
            return try parentRow(of: object)
        }
        guard object.key > 0, let store = store(at: object.storeSlot), store.isOpen else { return nil }
        if let row = object.current, isNewest(row, store) { return row }
        return try newestRow(key: object.key, layout: object.layout, store: store, prefetched: object.current)
    }

    /// What the coordinator, or the parent, holds of an object just now; `nil` if it holds nothing.
    final func newestRow(of object: NSManagedObject) throws -> Row? {
        if upward != nil { return try parentRow(of: object) }
        guard object.key > 0, let store = store(at: object.storeSlot) else { return nil }
        return try newestRow(key: object.key, layout: object.layout, store: store, prefetched: nil)
    }

    /// Whether a row that a fetch of this context brought is still the newest, without asking the cache.
    @inline(__always)
    private func isNewest(_ row: Row, _ store: OpenStore) -> Bool {
        guard stalenessInterval < 0, store.slot < prefetchCommits.count, row.version >= 0 else { return false }
        return store.cache.commits == prefetchCommits[store.slot]
    }

    /// The newest row: of the cache if it is fresh enough, else of the store.
    final func newestRow(key: Int64, layout: EntityLayout, store: OpenStore, prefetched: Row?) throws -> Row? {
        let cached = store.cache.row(key, root: layout.rootNumber)
        if let cached, isFreshEnough(cached) { return cached }
        if cached == nil, let prefetched, isNewest(prefetched, store) { return prefetched }
        let read = store.cache.beginRead()
        defer { store.cache.endRead(read) }
        // A store of one's own is told who asks.
        guard let row = try ConfinementScope.enter(self, { try store.store.row(forKey: key, in: layout) }) else {
            return nil
        }
        var rows = [row]
        store.cache.offer(&rows, root: layout.rootNumber, read: read)
        return rows[0]
    }

    private func isFreshEnough(_ row: Row) -> Bool {
        if stalenessInterval < 0 { return true }
        return CoarseClock.seconds(since: row.stamp) < stalenessInterval
    }

    /// What the store, or the parent, holds of a to-many relationship.
    final func storedMembers(of slot: ToManySlot, ownedBy object: NSManagedObject) -> [ObjectReference] {
        guard !slot.isTransient, !object.flags.contains(.inserted) else { return [] }
        do {
            if upward != nil { return try parentMembers(of: slot, ownedBy: object) }
            guard object.key > 0, let store = store(at: object.storeSlot) else { return [] }
            return try ConfinementScope.enter(self) { try store.store.members(of: slot, ownedBy: object.reference) }
        } catch {
            coordinator?.report(error, "reading \"\(slot.name)\" of \(object.objectID)")
            return []
        }
    }

    /// Marks an object whose row has gone as deleted.
    ///
    /// Nothing has to be written for it.
    final func noteInaccessible(_ object: NSManagedObject) {
        object.flags.insert([.deleted, .deletePropagated, .gone])
        lossCount += 1
        noteEvent(object, .eventDeleted)
    }

    final func handleInaccessibleFault(of object: NSManagedObject) {
        inaccessibleFaultHandler?(object)
    }
}
