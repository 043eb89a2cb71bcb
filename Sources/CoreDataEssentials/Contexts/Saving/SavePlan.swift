import Foundation
import StrataLocks
import StrataRows

/// The data that a save writes: one change set for each store, made from the context's changed objects.
///
/// Confined to the saving context's queue, where the coordinator uses it too.
final class SavePlan {
    /// A conflict and the store that found it.
    struct Conflict {
        let kind: StoreConflict
        let store: OpenStore
        /// The cached form, when the conflict was found, of the row that was changed or deleted elsewhere.
        let cached: Row?

        init(kind: StoreConflict, store: OpenStore) {
            self.kind = kind
            self.store = store
            switch kind {
            case .version(let layout, let key, _, _): cached = store.cache.knownRow(key, root: layout.rootNumber)
            case .missing(let target, let root): cached = store.cache.knownRow(target.key, root: root)
            case .constraint: cached = nil
            }
        }

        /// Enters the row that was read for the conflict into the cache, or removes a deleted row from the cache.
        func enterRow(_ read: RowCache.Access) {
            switch kind {
            case .version(let layout, let key, _, nil):
                store.cache.invalidate(CollectionOfOne(key), root: layout.rootNumber)
            case .missing(let target, let root):
                store.cache.invalidate(CollectionOfOne(target.key), root: root)
            case .version(_, _, _, var row?), .constraint(_, _, _, var row?):
                store.offer(&row, root: row.layout.rootNumber, read: read)
            case .constraint: break
            }
        }
    }

    let context: NSManagedObjectContext
    // Each changed object passes through the unchecked members: no access to them lasts while other code runs.
    @exclusivity(unchecked) private(set) var stores: [(store: OpenStore, changes: StoreChanges)] = []
    /// The positions in `stores`, by the indexes of the stores; there are few.
    @exclusivity(unchecked) private var positions: [(storeIndex: Int, position: Int)] = []
    /// The index of the default store for new objects of an entity, by the entity's number.
    private var insertionIndexes: [Int: Int] = [:]
    /// The entity and index of the last lookup: consecutive changes mostly belong to the same entity.
    @exclusivity(unchecked) private var lastInsertion = (entity: 0, storeIndex: 0)
    /// Whether the stores record a history, by the indexes of the stores.
    @exclusivity(unchecked) private var recording: [(storeIndex: Int, records: Bool)] = []
    private let coordinator: NSPersistentStoreCoordinator
    private let hasSeveralStores: Bool
    @exclusivity(unchecked) private var neverSaved = NeverSavedObjects()
    /// Objects of `detectConflicts(for:)` that are written, so their versions are checked anyway.
    private var checked: Set<ObjectIdentifier> = []

    /// The registrations of the save with the row caches; they begin before the save reaches the stores.
    ///
    /// A row cache treats a save under way as a read: it keeps removed versions until the save ends.
    private var underWay: [(store: OpenStore, save: RowCache.Access, commit: PendingCommit?)] = []

    /// Runs `body`, which gives the plan to the stores, while the save is registered with the row caches.
    ///
    /// Rows that are read for conflicts are newer than those that the caches may hold. So are rows that other writers
    /// commit meanwhile.
    func whileUnderWay<R>(_ body: () throws -> R) rethrows -> R {
        underWay = stores.map { ($0.store, $0.store.cache.beginAccess(), nil) }
        defer {
            for (store, save, commit) in underWay {
                if let commit { store.cache.end(commit) }
                store.cache.endAccess(save)
            }
            underWay = []
        }
        return try body()
    }

    /// Enters the row that was read for a conflict into the row cache.
    func enterRow(_ conflict: Conflict) {
        if let save = underWay.first(where: { $0.store === conflict.store })?.save { conflict.enterRow(save) }
    }

    // MARK: - Results

    /// The permanent keys of rows that had temporary ones.
    @exclusivity(unchecked) private(set) var permanentKeys = PermanentKeys()
    private(set) var reread: [(store: OpenStore, rows: [Row])] = []
    /// The numbers of the transactions that the histories have recorded, by the UUIDs of the stores.
    private(set) var historyNumbers: [String: Int64] = [:]
    /// The indexes of the stores that have committed.
    private(set) var committed: Set<Int> = []
    /// The changes of the store that could not say whether it has committed them; `nil` if there is no such store.
    private(set) var doubt: SaveDoubt?

    /// Whether a store that has not committed yet was migrated since the plan was made.
    var isOutdated: Bool { stores.contains { !committed.contains($0.store.index) && $0.store.successor != nil } }

    /// Notes that a store cannot say whether it has committed its changes.
    ///
    /// - Returns: The error that the caller sees.
    func recordDoubt(_ doubt: SaveInDoubt, of store: OpenStore, changes: StoreChanges) -> CocoaError {
        self.doubt = SaveDoubt(doubt: doubt, plan: self, store: store, changes: changes)
        return self.doubt?.error
            ?? doubt.error(
                of: store,
                "The changes are kept as unsaved ones. Read the objects anew before you save them again."
            )
    }

    /// Makes the change sets of a context.
    ///
    /// - Throws: `persistentStoreSave` (134030) for a store that cannot take a change, and
    ///   `managedObjectExternalRelationship` (133010) for a relationship between stores.
    init(_ context: NSManagedObjectContext, _ coordinator: NSPersistentStoreCoordinator) throws {
        self.context = context
        self.coordinator = coordinator
        hasSeveralStores = coordinator.hasSeveralStores
        // This precedes all other objects, whose relationships may lead to the deleted ones.
        context.changeTracker.objects.forEachBorrowed { neverSaved.insertIfNeverSaved($0) }
        try context.changeTracker.objects.forEachBorrowed { try add($0) }
        for object in context.changeTracker.checkedObjects where object.context === context {
            guard object.flags.isDisjoint(with: [.inserted, .deleted, .gone]), let row = object.baseRow,
                !checked.contains(ObjectIdentifier(object))
            else { continue }
            let lock = ExpectedRow(layout: object.layout, key: object.key, baseVersion: row.version)
            try change(storeIndex: Int(object.storeIndex), object: object) { $0.locked.append(lock) }
        }
        for index in stores.indices {
            stores[index].changes.author = context.transactionAuthor
            stores[index].changes.contextName = context.name
        }
    }

    private func add(_ object: NSManagedObject) throws {
        let flags = object.flags
        guard flags.isDisjoint(with: .gone) else { return }
        if flags.contains(.deleted) {
            guard !flags.contains(.inserted) else { return }
            if object.isFault { object.fireFault() }
            guard let base = object.baseRow, !object.flags.contains(.inaccessible) else { return }
            let deletion = ExpectedRow(layout: object.layout, key: object.key, baseVersion: base.version)
            try change(storeIndex: Int(object.storeIndex), object: object) { $0.deleted.append(deletion) }
            return
        }
        let storeIndex = flags.contains(.inserted) ? try insertionIndex(of: object) : Int(object.storeIndex)
        // The store changes keys and versions in the row directly, so the object must not share it.
        object.unshareRow()
        if flags.contains(.inserted), let row = object.current {
            resolveReferences(of: row, storeIndex)
            try change(storeIndex: storeIndex, object: object) { $0.inserted.append(row) }
        } else if flags.contains(.updated) {
            let changed = object.changedSlotSet()
            let advances =
                object.layout.hasOrderedToMany
                && object.extras?.toMany.indices.contains { index in
                    object.extras?.toMany[index]?.hasChanges == true && object.layout.toMany[index].isOrdered
                } == true
            if !changed.isEmpty || advances {
                if object.isFault { object.fireFault() }
                // If no column has changed, the row may still be shared; only its version advances then.
                if !flags.contains(.ownsRow), let row = object.current {
                    object.writableExtras.base = row
                    object.current = row.copy()
                    object.flags.insert(.ownsRow)
                }
                guard let row = object.current, let base = object.extras?.base else { return }
                resolveReferences(of: row, storeIndex)
                if flags.contains(.conflictDetection) { checked.insert(ObjectIdentifier(object)) }
                let update = RowUpdate(row: row, baseVersion: base.version, changed: changed)
                try change(storeIndex: storeIndex, object: object) { $0.updated.append(update) }
            }
        }
        if hasSeveralStores { try requireOneStore(object, storeIndex) }
        try addToMany(of: object, storeIndex)
    }

    /// Adds changes of relationships that are stored neither in the object's own row nor in the row of a changed
    /// member.
    private func addToMany(of object: NSManagedObject, _ storeIndex: Int) throws {
        guard let extras = object.extras else { return }
        if !object.flags.contains(.inserted), recordsHistory(storeIndex) {
            try addTouched(object, extras: extras, storeIndex: storeIndex)
        }
        for index in extras.toMany.indices {
            guard let state = extras.toMany[index], state.hasChanges else { continue }
            let slot = object.layout.toMany[index]
            guard !slot.isTransient, !slot.isToldByMembers else { continue }
            let inverse = slot.inverse
            let isManyToMany = inverse?.isToMany == true
            let tellsMembership = inverse == nil || (isManyToMany && slot.relationship.isCanonical)
            let order = slot.isOrdered ? try order(of: object, slot, storeIndex) : nil
            var change = ToManyChange(
                relationship: slot,
                owner: object.reference,
                added: tellsMembership ? state.added.compactMap { resolved($0, storeIndex) } : [],
                removed: tellsMembership ? state.removed.filter { $0.key > 0 } : [],
                order: order?.members,
                appendedCount: order?.appendedCount ?? 0
            )
            change.isUnread = order?.isUnread ?? false
            guard !change.added.isEmpty || !change.removed.isEmpty || order != nil else { continue }
            try self.change(storeIndex: storeIndex, object: object) { $0.toMany.append(change) }
        }
    }

    /// The members of an ordered relationship as the store can resolve them.
    private struct MemberOrder {
        let members: [ObjectReference]
        /// The number of members that are new at the end.
        var appendedCount = 0
        /// Whether these are only the new members, because the others were not read.
        var isUnread = false
    }

    private func order(of object: NSManagedObject, _ slot: ToManySlot, _ storeIndex: Int) throws -> MemberOrder {
        if slot.inverse?.isToMany == false, let new = object.extras?.toMany[slot.index]?.unreadAdditions,
            coordinator.openStore(at: storeIndex)?.rows.placesUnreadMembers == true
        {
            return MemberOrder(members: new.compactMap { resolved($0, storeIndex) }, isUnread: true)
        }
        let members = try object.readMembers(slot)
        guard let state = object.extras?.toMany[slot.index] else { return MemberOrder(members: members) }
        // Most members are stored, and nothing has to be looked up for them.
        let start = neverSaved.isEmpty ? Swift.min(state.permanentCount, members.count) : 0
        let rest = members[start...].compactMap { resolved($0, storeIndex) }
        // Usually no member is left out or renamed, and none has to be copied.
        if members[start...].elementsEqual(rest) {
            return MemberOrder(members: members, appendedCount: state.appendedCount)
        }
        let order = Array(members[..<start] + rest)
        return MemberOrder(
            members: order,
            appendedCount: order.count == members.count ? state.appendedCount : 0
        )
    }

    private func addTouched(_ object: NSManagedObject, extras: ObjectExtras, storeIndex: Int) throws {
        let changed = extras.toMany.indices.filter { index in
            extras.toMany[index]?.hasChanges == true && !object.layout.toMany[index].isTransient
        }
        guard !changed.isEmpty else { return }
        let touched = TouchedOwner(owner: object.reference, relationships: changed)
        try change(storeIndex: storeIndex, object: object) { $0.touched.append(touched) }
    }

    private func recordsHistory(_ storeIndex: Int) -> Bool {
        if let known = recording.first(where: { $0.storeIndex == storeIndex }) { return known.records }
        let store = coordinator.openStore(at: storeIndex)?.rows as? any HistoryStore
        let records = store?.recordsHistory ?? false
        recording.append((storeIndex, records))
        return records
    }

    /// The reference as the store can resolve it; `nil` if its object is not saved.
    private func resolved(_ reference: ObjectReference, _ storeIndex: Int) -> ObjectReference? {
        if neverSaved.contains(reference, from: Int32(storeIndex), in: context) { return nil }
        guard reference.key < 0 else { return reference }
        if let key = context.identityMap.permanentKeys[reference.key] {
            return ObjectReference(key: key, entity: reference.entity)
        }
        guard let object = context.identityMap.temporaryObjects[reference.key], object.isInserted, !object.isDeleted
        else {
            return nil
        }
        return reference
    }

    /// Updates the references in a row that the object owns.
    ///
    /// Objects that have got permanent keys meanwhile are named by these, and references to objects that will never be
    /// saved are removed.
    private func resolveReferences(of row: Row, _ storeIndex: Int) {
        for slot in row.layout.referenceSlots {
            guard let reference = row.reference(slot), reference.key < 0 || !neverSaved.isEmpty else { continue }
            let wanted = resolved(reference, storeIndex)
            if wanted?.key != reference.key { row.setReference(wanted, slot) }
        }
    }

    private func change(storeIndex: Int, object: NSManagedObject, body: (inout StoreChanges) -> Void) throws {
        if let known = positions.first(where: { $0.storeIndex == storeIndex }) {
            return body(&stores[known.position].changes)
        }
        guard let store = coordinator.storeToWrite(at: storeIndex) else {
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(object.objectID) cannot be saved: its store was removed, or no store holds entity \(object.entity.name ?? "").",
                    NSAffectedObjectsErrorKey: [object],
                ]
            )
        }
        guard !store.store.isReadOnly else {
            throw CocoaError.described(
                .fileWriteNoPermission,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(object.objectID) cannot be saved: the store \(store.store.url?.placeName ?? "") is read-only.",
                    NSAffectedObjectsErrorKey: [object],
                    NSAffectedStoresErrorKey: [store.store],
                ]
            )
        }
        positions.append((storeIndex, stores.count))
        stores.append((store, StoreChanges()))
        body(&stores[stores.count - 1].changes)
    }

    /// The index of the store that a new object is saved into.
    private func insertionIndex(of object: NSManagedObject) throws -> Int {
        let number = object.layout.number
        if object.storeIndex < 0, let known = knownInsertionIndex(of: number) { return known }
        let storeIndex = Int(context.storeIndexForInsertion(of: object))
        guard let store = coordinator.storeToWrite(at: storeIndex), store.entityNumbers.contains(number)
        else {
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "No store of the coordinator that can be written to holds entity \(object.entity.name ?? "").",
                    NSAffectedObjectsErrorKey: [object],
                ]
            )
        }
        if object.storeIndex < 0 { insertionIndexes[number] = storeIndex }
        return storeIndex
    }

    private func knownInsertionIndex(of entity: Int) -> Int? {
        if lastInsertion.entity == entity { return lastInsertion.storeIndex }
        guard let storeIndex = insertionIndexes[entity] else { return nil }
        lastInsertion = (entity, storeIndex)
        return storeIndex
    }

    /// The index of the store that a new object was saved into.
    func storeIndexOfInserted(_ object: NSManagedObject) -> Int32 {
        if object.storeIndex < 0, let known = knownInsertionIndex(of: object.layout.number) { return Int32(known) }
        return context.storeIndexForInsertion(of: object)
    }

    /// Throws an error if a relationship leads to an object in another store.
    private func requireOneStore(_ object: NSManagedObject, _ storeIndex: Int) throws {
        for slot in object.layout.referenceSlots {
            guard let destination = object.toOne(slot) else { continue }
            try requireOneStore(of: object, storeIndex: storeIndex, relationship: slot.name, destination: destination)
        }
        guard let extras = object.extras else { return }
        for (slot, state) in zip(object.layout.toMany, extras.toMany) where !slot.isTransient {
            for member in state?.added ?? [] {
                guard let destination = context.object(for: member, near: object) else { continue }
                // A stored member is looked up in the owner's store, which therefore has to hold the member's entity.
                if member.key > 0, coordinator.openStore(at: storeIndex)?.entityNumbers.contains(member.entity) != true
                {
                    throw external(object, relationship: slot.name, destination: destination)
                }
                try requireOneStore(
                    of: object,
                    storeIndex: storeIndex,
                    relationship: slot.name,
                    destination: destination
                )
            }
        }
    }

    private func requireOneStore(
        of object: NSManagedObject,
        storeIndex: Int,
        relationship name: String,
        destination: NSManagedObject
    ) throws {
        let other =
            destination.isInserted ? Int(context.storeIndexForInsertion(of: destination)) : Int(destination.storeIndex)
        if other != storeIndex { throw external(object, relationship: name, destination: destination) }
    }

    private func external(_ object: NSManagedObject, relationship name: String, destination: NSManagedObject)
        -> CocoaError
    {
        CocoaError.described(
            .managedObjectExternalRelationship,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Relationship \"\(name)\" leads from \(object.objectID) to \(destination.objectID) in another store. Use assign(_:to:) to keep both in one.",
                NSAffectedObjectsErrorKey: [object, destination],
            ]
        )
    }

    // MARK: - Around the commit

    /// Makes reads of the rows that the save replaces go to the store, from now on until the rows are published.
    ///
    /// An attempt that is made again calls it again.
    func willCommit(_ result: StoreSaveResult, to store: OpenStore, _ changes: StoreChanges) {
        guard let index = underWay.firstIndex(where: { $0.store === store }) else { return }
        let commit = PendingCommit(of: changes, reread: result.reread)
        underWay[index].commit = store.cache.begin(commit, insteadOf: underWay[index].commit)
    }

    /// Ends what ``willCommit(_:to:_:)`` has begun for an attempt that was not committed.
    func didRefuse(_ store: OpenStore) {
        guard let index = underWay.firstIndex(where: { $0.store === store }) else { return }
        if let former = underWay[index].commit { store.cache.end(former) }
        underWay[index].commit = nil
    }

    /// Applies the result of a commit: keys and versions go into the rows, rows into the cache, and IDs become
    /// permanent.
    ///
    /// The stores may have committed in any order.
    func didCommit(_ result: StoreSaveResult, to store: OpenStore, _ changes: StoreChanges) {
        committed.insert(store.index)
        if let number = result.historyNumber { historyNumbers[store.store.identifier ?? ""] = number }
        let temporaryKeys = changes.inserted.map(\.key)
        let keys = changes.settle(result)
        context.downward.promotions.promote {
            for start in stride(from: 0, to: temporaryKeys.count, by: WorkSize.combinedIDs) {
                let part = temporaryKeys[start..<Swift.min(start + WorkSize.combinedIDs, temporaryKeys.count)]
                for (index, id) in TemporaryIDs.removeHeld(part) {
                    store.ids.succeed(id, key: changes.inserted[index].key, store: store)
                }
            }
        }
        var written = changes.inserted
        written.append(contentsOf: changes.updated.map(\.row))
        written.append(contentsOf: result.reread)
        if let index = underWay.firstIndex(where: { $0.store === store }) {
            let (_, save, commit) = underWay[index]
            underWay[index].commit = nil
            store.cache.publish(
                written: written,
                removed: changes.deleted.map { (RowName(root: $0.layout.rootNumber, key: $0.key), $0.baseVersion) },
                by: save,
                ending: commit
            )
        }
        if permanentKeys.count == 0 { permanentKeys = keys } else { keys.forEach { permanentKeys.set($1, for: $0) } }
        if !result.reread.isEmpty { reread.append((store, result.reread)) }
    }
}

extension PendingCommit {
    /// The rows that a save changes or deletes; new rows are in no cache.
    fileprivate convenience init(of changes: StoreChanges, reread: [Row]) {
        self.init()
        for update in changes.updated { add(update.row.key, root: update.row.layout.rootNumber) }
        for deletion in changes.deleted { add(deletion.key, root: deletion.layout.rootNumber) }
        for row in reread { add(row.key, root: row.layout.rootNumber) }
    }
}
