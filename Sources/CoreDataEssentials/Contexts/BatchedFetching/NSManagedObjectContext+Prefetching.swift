import Foundation
import StrataRows

// Reading related objects before they are asked for takes one query for each relationship, whatever the number of
// owners. It is confined to the context's queue.

extension NSManagedObjectContext {
    /// Reads the objects that relationships of objects of one hierarchy lead to.
    ///
    /// Destinations that the context does not know become faults with rows. The members of a to-many relationship are
    /// loaded if the relationship was a fault. Realised and changed objects stay as they are, and changes stay on
    /// top.
    ///
    /// - Parameters:
    ///   - steps: The relationships to follow.
    ///   - owners: The objects that have them.
    ///   - reads: The source of reads that were made in advance.
    /// - Throws: Errors of the store. If `reads` lack an answer, ``PreparedReads/attempt(_:)`` catches what is thrown.
    final func prefetch(
        _ steps: [PrefetchStep],
        of owners: [NSManagedObject],
        _ reads: PrefetchReads = PrefetchReads(nil)
    ) throws {
        guard !steps.isEmpty, !owners.isEmpty else { return }
        if steps.contains(where: \.isToOne) { try requireRows(of: owners, reads.step(-1)) }
        for (index, step) in steps.enumerated() {
            let reads = reads.step(index)
            switch step.place {
            case .toOne(let slot):
                let destinations = destinations(of: slot, step, owners)
                for (store, objects) in byStore(destinations) {
                    try fill(objects, of: step.destination, in: store, reads)
                }
                try prefetch(step.next, of: destinations, reads)
            case .toMany(let slot):
                for (store, objects) in byStore(owners) {
                    try loadMembers(of: slot, for: step, ownedBy: objects, in: store, reads: reads)
                }
                guard !step.next.isEmpty else { continue }
                try prefetch(step.next, of: members(of: slot, owners), reads)
            }
        }
    }

    /// Fills the owners that are faults without rows, since their rows say where to-one relationships lead.
    private func requireRows(of owners: [NSManagedObject], _ reads: PrefetchReads) throws {
        let bare = owners.filter { $0.flags.contains(.fault) && $0.heldRow == nil }
        guard let first = bare.first else { return }
        let root = model.layouts[first.layout.rootNumber - 1]
        for (store, objects) in byStore(bare) { try fill(objects, of: root, in: store, reads) }
    }

    /// Groups stored objects by their store.
    private func byStore(_ objects: [NSManagedObject]) -> [(OpenStore, [NSManagedObject])] {
        guard let storeIndex = objects.first(where: { $0.key > 0 })?.storeIndex else { return [] }
        if coordinator?.hasSeveralStores != true {
            guard let store = store(at: storeIndex) else { return [] }
            return [(store, objects)]
        }
        return Dictionary(grouping: objects.lazy.filter { $0.key > 0 }, by: \.storeIndex).compactMap {
            storeIndex,
            objects in
            store(at: storeIndex).map { ($0, objects) }
        }
    }

    // MARK: - To-one

    /// The objects that a to-one relationship leads to, each once; unknown objects become faults.
    private func destinations(
        of slot: Slot,
        _ step: PrefetchStep,
        _ owners: [NSManagedObject]
    ) -> [NSManagedObject] {
        var result: [NSManagedObject] = []
        var seen: [Int32: KeyMap<Bool>] = [:]
        var known = KeyMap<Bool>()
        var knownStore: Int32 = -1
        let (index, word) = (slot.index, slot.word)
        for owner in owners {
            // The owner holds the row.
            guard let row = owner.heldRow, let reference = UnsafeRow(row).reference(index, at: word) else { continue }
            let storeIndex = owner.storeIndex >= 0 ? owner.storeIndex : storeIndexForInsertion(of: owner)
            if storeIndex != knownStore {
                // Owners of the same store usually follow one another.
                seen[knownStore] = known
                known = seen[storeIndex] ?? KeyMap()
                knownStore = storeIndex
            }
            guard known[reference.key] == nil else { continue }
            known.set(true, for: reference.key)
            let layout = layout(of: reference)
            if let object = registered(key: reference.key, layout: layout, storeIndex: storeIndex) {
                if object.flags.contains(.gone) { continue }
                object.flags.insert(.prefetched)
                result.append(object)
            } else if reference.key > 0 {
                let object = makeFault(key: reference.key, layout: layout, storeIndex: storeIndex)
                object.flags.insert(.prefetched)
                result.append(object)
            }
        }
        return result
    }

    // MARK: - To-many

    /// Loads a to-many relationship of those owners that have not loaded it yet, and the rows of the members.
    private func loadMembers(
        of slot: ToManySlot,
        for step: PrefetchStep,
        ownedBy owners: [NSManagedObject],
        in store: OpenStore,
        reads: PrefetchReads
    ) throws {
        let cold = owners.filter { owner in
            guard isStored(owner), owner.flags.isDisjoint(with: [.gone, .inaccessible]) else { return false }
            // If a former fetch has prefetched the members for a fault, then the owner has not shown them yet.
            return owner.flags.contains(.fault) || owner.extras?.toMany[slot.index]?.isFault ?? true
        }
        guard let first = cold.first else { return }
        let store = try seen(store)
        let storeIndex = Int32(store.index)
        let root = step.destination.rootNumber
        if let upward {
            var members: [NSManagedObject] = []
            try foreseeMembers(of: slot, ownedBy: cold, memberRoot: root, in: store, through: upward) {
                owner,
                references in
                owner.loadPrefetched(references, slot)
                for reference in references {
                    guard let member = object(for: reference, near: owner) else { continue }
                    member.flags.insert(.prefetched)
                    members.append(member)
                }
                // The members are filled before the root releases the rows.
                if owner === cold.last { try fill(members, of: step.destination, in: store) }
            }
            return
        }
        let owners = cold.map(\.reference)
        var commits = store.cache.commits
        let found: Memberships
        if let prepared = try reads.memberships(of: slot, ownedBy: owners, memberRoot: root, store) {
            (found, commits) = prepared
        } else {
            found = try storedMemberships(of: slot, ownedBy: owners, memberRoot: root, store)
        }
        recordPrefetch(from: store, commits: commits, count: found.rows.count)
        let table = table(storeIndex: storeIndex, root: root)
        table.reserve(found.rows.count)
        for row in found.rows {
            let object = table[row.key] ?? makeFault(key: row.key, layout: row.layout, storeIndex: storeIndex)
            object.flags.insert(.prefetched)
            if object.flags.contains(.fault) { object.current = row }
        }

        let ownerTable = self.table(storeIndex: storeIndex, root: first.layout.rootNumber)
        for (key, members) in found.groups { ownerTable[key]?.loadPrefetched(members, slot) }
        guard found.groups.count < cold.count else { return }
        var withMembers = KeyMap<Bool>(minimumCapacity: found.groups.count)
        for (key, _) in found.groups { withMembers.set(true, for: key) }
        for owner in cold where withMembers[owner.key] == nil { owner.loadPrefetched([], slot) }
    }

    /// The members of a loaded to-many relationship, each once.
    private func members(of slot: ToManySlot, _ owners: [NSManagedObject]) -> [NSManagedObject] {
        var result: [NSManagedObject] = []
        var seen: Set<ObjectIdentifier> = []
        for owner in owners {
            for reference in owner.extras?.toMany[slot.index]?.content ?? [] {
                guard let member = object(for: reference, near: owner), !member.flags.contains(.gone),
                    seen.insert(ObjectIdentifier(member)).inserted
                else { continue }
                result.append(member)
            }
        }
        return result
    }
}

extension NSManagedObject {
    /// Takes the stored members of a to-many relationship that was not loaded, and puts pending changes on top.
    fileprivate final func loadPrefetched(_ members: [ObjectReference], _ slot: ToManySlot) {
        let extras = writableExtras
        var state = extras.toMany[slot.index] ?? ToManyState(isOrdered: slot.isOrdered)
        // The stored state is removed first, so that nothing is copied.
        extras.toMany[slot.index] = nil
        state.turnIntoFault()
        state.load(members)
        if let context, context.identityMap.lossCount > 0 {
            state.forget { context.registered($0, near: self)?.flags.contains(.gone) ?? false }
        }
        state.lossCount = context?.identityMap.lossCount ?? 0
        extras.toMany[slot.index] = state
        if let context, !context.failedReads.isEmpty { context.failedReads.forgetFailedMembers(slot, of: self) }
    }
}
