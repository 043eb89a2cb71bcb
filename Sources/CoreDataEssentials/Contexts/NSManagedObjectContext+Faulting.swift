import Foundation
import StrataLocks
import StrataRows

// How faults get their rows: from rows that a fetch read in advance, from the row cache, or from the store.

extension NSManagedObjectContext {
    /// The result of an attempt to realise a fault.
    enum FaultResult {
        case found(Row)
        /// There is no such row any more.
        case missing
        /// The store cannot be read now.
        ///
        /// This was reported, since a property access cannot throw.
        case unreadable
    }

    /// Finds the row for a fault that is being realised.
    ///
    /// A store that was removed counts as one without rows.
    ///
    /// - Parameters:
    ///   - object: The fault.
    ///   - slot: The slot whose value is read; -1 for no particular slot.
    /// - Returns: The row, or why there is none.
    final func rowForFault(_ object: NSManagedObject, triggeredBy slot: Int) -> FaultResult {
        readingLazily(object, object.layout.slots.indices.contains(slot) ? object.layout.slots[slot].name : nil) {
            rowForFault(object)
        }
    }

    private final func rowForFault(_ object: NSManagedObject) -> FaultResult {
        let hadRow = object.current != nil
        if !hadRow || object.flags.contains(.awaitsBatch) {
            readBatches(for: object)
            // A row that was there before may be outdated.
            if !hadRow, let row = object.current { return .found(row) }
        }
        do {
            return try newestRow(ofFault: object).map { .found($0) } ?? .missing
        } catch {
            failedReads.recordFailedRow(of: object, error: error)
            coordinator?.report(error, "reading \(object.objectID)")
            return .unreadable
        }
    }

    /// The row that a fault would be filled with; `nil` if there is none.
    ///
    /// The object stays a fault.
    final func newestRow(ofFault object: NSManagedObject) throws -> Row? {
        if object.key < 0 { fileNewlySavedFaults() }
        if upward != nil {
            if let row = object.current, isNewestInTree(row) { return row }
            return try parentRow(of: object)
        }
        guard object.key > 0, let store = storeToRead(at: object.storeIndex) else { return nil }
        if let row = object.heldRow, isNewest(row, storeIndex: object.storeIndex) { return object.current }
        if stalenessInterval < 0, object.heldRow != nil || object.flags.contains(.lostRow) {
            return try renewedRow(of: object, in: store)
        }
        return try newestRow(key: object.key, layout: object.layout, store: store, prefetched: object.current)
    }

    /// The store at an index, unless it was removed.
    ///
    /// A pinned version of a store that has been migrated since is returned as well. Reading it may throw, but its
    /// rows still exist.
    final func storeToRead(at storeIndex: Int32) -> OpenStore? {
        while let store = store(at: storeIndex) {
            if store.isOpen { return store }
            // Another store has just taken its place.
            if store.hasMoved { continue }
            return store.base.successor == nil ? nil : store
        }
        return nil
    }

    /// Runs a fetch, and runs it a second time if a store was migrated meanwhile.
    final func followingMoves<R>(_ fetch: () throws -> R) throws -> R {
        guard let coordinator else { return try fetch() }
        return try coordinator.followingMoves(fetch)
    }

    /// The row that the coordinator or the parent now holds for an object; `nil` if it holds none.
    final func newestRow(of object: NSManagedObject) throws -> Row? {
        if upward != nil { return try parentRow(of: object) }
        guard object.key > 0, let store = store(at: object.storeIndex) else { return nil }
        return try newestRow(key: object.key, layout: object.layout, store: store, prefetched: nil)
    }

    /// Whether a row that a fetch of this context brought is still the newest, without a look into the cache.
    ///
    /// It counts no references, because every fetched object calls it when it is first read.
    @inline(__always)
    final func isNewest(_ row: Unmanaged<RowBuffer>, storeIndex: Int32) -> Bool {
        let storeIndex = Int(storeIndex)
        guard storeIndex >= 0, storeIndex < rowsInAdvance.prefetches.count, stalenessInterval < 0,
            UnsafeRow(row).header.pointee.version >= 0
        else { return false }
        return rowsInAdvance.prefetches[storeIndex].isCurrent
    }

    /// The newest row: the one in the cache if it is fresh enough, else the one in the store.
    final func newestRow(key: Int64, layout: EntityLayout, store: OpenStore, prefetched: Row?) throws -> Row? {
        try newestRow(key: key, layout: layout, seen: seen(store), prefetched: prefetched)
    }

    /// The newest row, as above, from a store as the context sees it.
    final func newestRow(key: Int64, layout: EntityLayout, seen store: OpenStore, prefetched: Row?) throws -> Row? {
        if prefetched == nil, stalenessInterval < 0 {
            // This is the usual case, in which the cache is entered once before the read and once after it.
            switch store.cache.rowOrAccess(key, root: layout.rootNumber) {
            case .row(let row): return row
            case .access(let read): return try readRow(key, layout, store, read)
            case .renewal(let read): return try readRow(key, layout, store, read, renewing: true)
            }
        }
        // No row is fresh enough then.
        if stalenessInterval == 0 { return try readRow(key, layout, store, store.cache.beginFreshRead()) }
        let cached = store.cache.row(key, root: layout.rootNumber)
        if let cached, isFreshEnough(cached) { return cached }
        if cached == nil, let prefetched, store.isOpen,
            isNewest(Unmanaged.passUnretained(prefetched.buffer), storeIndex: Int32(store.index))
        {
            return prefetched
        }
        return try readRow(key, layout, store, store.cache.beginAccess(), renewing: prefetched != nil)
    }

    /// Reads a row from the store, and ends the read.
    private func readRow(
        _ key: Int64,
        _ layout: EntityLayout,
        _ store: OpenStore,
        _ read: RowCache.Access,
        renewing: Bool = false
    ) throws -> Row? {
        var row: Row?
        do {
            try willRead(StoreRead(.row, layout, key: key, renewsRow: renewing))
            // The read enters the context's scope, so that a custom store knows which context asks.
            row = try measuredRead(of: layout, rows: { $0 == nil ? 0 : 1 }) {
                try store.reading { try $0.row(forKey: key, in: layout) }
            }
        } catch {
            store.cache.endAccess(read)
            throw error
        }
        guard var found = row else {
            store.cache.endAccess(read)
            return nil
        }
        FaultPoint.faultRead.pass()
        store.offer(&found, root: layout.rootNumber, ending: read)
        return found
    }

    private func isFreshEnough(_ row: Row) -> Bool {
        if stalenessInterval < 0 { return true }
        return CoarseClock.seconds(since: row.stamp) < stalenessInterval
    }

    /// The cached row, if it is fresh enough.
    ///
    /// A child gets `nil`, because its parent may see another row than the newest.
    final func freshRow(_ key: Int64, root: Int, _ store: OpenStore) throws -> Row? {
        guard upward == nil else { return nil }
        let store = try seen(store)
        guard let row = store.cache.row(key, root: root), isFreshEnough(row) else { return nil }
        return row
    }

    /// The store's rows for some keys; where the row cache has a newer row, that one is returned instead.
    final func storedRows(forKeys keys: [Int64], in layout: EntityLayout, _ store: OpenStore) throws -> [Row] {
        let store = try seen(store)
        try willRead(StoreRead(.rows, layout))
        let read = store.cache.beginAccess()
        defer { store.cache.endAccess(read) }
        var rows = try ConfinementScope.enter(self) {
            try store.reading { try $0.rows(forKeys: keys, in: layout) }
        }
        store.offer(&rows, root: layout.rootNumber, read: read)
        return rows
    }

    /// The stored members of a to-many relationship of many owners, with the members' rows.
    final func storedMemberships(
        of slot: ToManySlot,
        ownedBy owners: [ObjectReference],
        memberRoot: Int,
        _ store: OpenStore
    ) throws -> Memberships {
        let store = try seen(store)
        if let first = owners.first {
            try willRead(StoreRead(.memberships, model.layouts[first.entity - 1], relationship: slot.name))
        }
        let read = store.cache.beginAccess()
        defer { store.cache.endAccess(read) }
        var found = try ConfinementScope.enter(self) {
            try store.reading { try $0.memberships(of: slot, ownedBy: owners) }
        }
        store.offer(&found.rows, root: memberRoot, read: read)
        return found
    }

    /// Remembers at which commit the faults of a store were given their rows in advance.
    final func recordPrefetch(from store: OpenStore, commits: UInt64, count: Int) {
        let storeIndex = store.index
        // If a hook has unpinned the context meanwhile, then the rows of that version are not what the context sees.
        guard store === self.store(at: Int32(storeIndex)) else {
            // The same holds for rows of a store that was migrated meanwhile. But faults may hold them, and the next
            // fetch has to know that.
            guard store.hasMoved else { return }
            rowsInAdvance.reserve(storeIndex: storeIndex)
            return rowsInAdvance.recordPrefetch(Prefetch(store, commits), storeIndex: storeIndex)
        }
        rowsInAdvance.reserve(storeIndex: storeIndex)
        guard !rowsInAdvance.prefetches[storeIndex].began(at: commits) else { return }
        if rowsInAdvance.prefetches[storeIndex].hasBegun {
            // Rows of an earlier fetch may be outdated. If it is cheap, then they are dropped. Otherwise the faults
            // that hold them, and the faults of this fetch, look into the cache.
            guard identityMap.storedCount <= max(WorkSize.searchedObjects, count * 4) else { return }
            forEachRegistered { object in
                guard object.flags.contains(.fault), object.storeIndex == Int32(storeIndex), object.heldRow != nil
                else { return }
                object.flags.insert(.lostRow)
                object.forgetRow()
            }
        }
        rowsInAdvance.recordPrefetch(Prefetch(store, commits), storeIndex: storeIndex)
    }

    /// The members that the store or the parent holds for a to-many relationship; `nil` if they cannot be read now.
    ///
    /// The error was reported, for callers that cannot throw. The relationship then has to stay a fault, so that the
    /// next access reads it.
    final func storedMembers(of slot: ToManySlot, ownedBy object: NSManagedObject) -> [ObjectReference]? {
        do {
            let members = try readingLazily(object, slot.name) { try readMembers(of: slot, ownedBy: object) }
            if !failedReads.isEmpty { failedReads.forgetFailedMembers(slot, of: object) }
            return members
        } catch {
            failedReads.recordFailedMembers(slot, of: object, error: error)
            coordinator?.report(error, "reading \"\(slot.name)\" of \(object.objectID)")
            return nil
        }
    }

    /// The members that the store or the parent holds for a to-many relationship.
    final func readMembers(of slot: ToManySlot, ownedBy object: NSManagedObject) throws -> [ObjectReference] {
        guard !slot.isTransient, !object.flags.contains(.inserted) else { return [] }
        if upward != nil { return try parentMembers(of: slot, ownedBy: object) }
        guard object.key > 0, let store = store(at: object.storeIndex) else { return [] }
        return try members(of: slot, ownedBy: object.reference, in: store)
    }

    /// Marks an object whose row has gone as deleted.
    ///
    /// A save has nothing to write for it.
    final func markAsInaccessible(_ object: NSManagedObject) {
        object.flags.insert([.deleted, .deletePropagated, .gone])
        identityMap.countLoss()
        addToEvent(object, as: .eventDeleted)
    }

    /// Fills a fault, or an object whose row had gone and exists again.
    final func fill(_ object: NSManagedObject, _ row: Row) {
        if object.flags.isDisjoint(with: [.gone, .inaccessible]) {
            object.realise(row)
        } else {
            bringBack(object, row)
        }
    }

    /// Revives an object that a merge or a read had marked as deleted, because its row exists again.
    final func bringBack(_ object: NSManagedObject, _ row: Row) {
        object.discardChanges()
        object.flags.remove([.gone, .ownsRow])
        object.extras?.reloadRelationships()
        addToEvent(object, as: .eventRefreshed)
        object.realise(row)
    }

    final func handleInaccessibleFault(of object: NSManagedObject) {
        inaccessibleFaultHandler?(object)
    }
}
