import Foundation
import StrataRows

extension NSManagedObject {
    // MARK: - Writing

    /// The row to write to: the object's own row; the object is marked as changed.
    ///
    /// `slot`: The slot that is written, for messages; -1 for no particular slot.
    @inline(__always)
    final func writableRow(_ slot: Int = -1) -> Row {
        isWritable ? current.unsafelyUnwrapped : prepareToWrite(slot)
    }

    /// Whether a write may access the row directly.
    @inline(__always)
    final var isWritable: Bool {
        let gate: ObjectFlags = [.fault, .checked, .detached, .writable]
        return flags.intersection(gate) == .writable
    }

    /// The slow path of a write: it fires a fault, checks confinement, copies the row, and marks the object.
    @inline(never)
    final func prepareToWrite(_ slot: Int = -1) -> Row {
        let row = quietRow(slot)
        guard flags.isDisjoint(with: [.detached, .awaking, .gone]) else { return row }
        // This comes after the copy: the mark records the object's state for undo, which is in `eventBase` by then.
        markUpdated()
        flags.insert(.writable)
        return row
    }

    /// The row to write to, without marking the object: for primitive values, and for objects that are never saved.
    final func quietRow(_ slot: Int = -1) -> Row {
        outdateInIndex()
        if !flags.isDisjoint(with: .slowRead) {
            let wasFault = flags.contains(.fault)
            prepareToRead(slot)
            if flags.contains(.fault) {
                // The row could not be read. The object is changed nevertheless, but no save accepts the change.
                context?.failedReads.recordWrite(to: self)
                flags.remove(.fault)
            } else if wasFault, flags.isDisjoint(with: .deleted), let context, !context.failedReads.isEmpty {
                context.failedReads.recordReadingWrite(to: self)
            }
        }
        let before = current.unsafelyUnwrapped
        if flags.contains(.awaking) {
            // Values that `awakeFromFetch` sets are no changes, so they go into a copy that counts as the stored row.
            return replaceRow(before.copy(), before)
        }
        if !flags.contains(.ownsRow) {
            writableExtras.base = before
            extras?.eventBase = before
            flags.insert(.ownsRow)
            return replaceRow(before.copy(), before)
        }
        if extras?.eventBase == nil, flags.isDisjoint(with: [.eventInserted, .detached]) {
            writableExtras.eventBase = before
            if flags.isDisjoint(with: .rowShared) { return replaceRow(before.copy(), before) }
        }
        unshareRow()
        return current.unsafelyUnwrapped
    }

    /// Makes sure that no child context shares the object's own row, before it is written to in place.
    final func unshareRow() {
        guard flags.contains(.rowShared) else { return }
        flags.remove(.rowShared)
        guard flags.contains(.ownsRow), let before = current else { return }
        let copy = replaceRow(before.copy(), before)
        // The header of a row from a child may be outdated.
        copy.setKey(key)
        copy.setVersion(extras?.base?.version ?? copy.version)
        context?.downward.countStateChange()
    }

    private func replaceRow(_ copy: Row, _ before: Row) -> Row {
        current = copy
        extras?.moveDecoded(from: before, to: copy)
        return copy
    }

    /// Takes over one slot's value from another row, as a change.
    final func copyValue(of slot: Slot, from other: Row) {
        let row = writableRow(slot.index)
        extras?.setDecoded(nil, slot.index, in: row)
        row.take(slot, from: other)
    }

    /// Lets the context's index of new objects look at the object again.
    ///
    /// A write in place needs no such call: an object in the index lacks the flag `writable`, so that its next write
    /// takes the slow path.
    final func outdateInIndex() {
        guard flags.contains(.indexed) else { return }
        flags.remove(.indexed)
        unmanagedContext?._withUnsafeGuaranteedRef { $0.changeTracker.index.outdate(self) }
    }

    /// Marks the object as changed, in the context and in the current event.
    @inline(__always)
    final func markUpdated() {
        guard flags.isDisjoint(with: [.detached, .awaking, .gone]) else { return }
        if flags.isDisjoint(with: [.inserted, .updated]) || flags.isDisjoint(with: [.eventInserted, .eventUpdated]) {
            unmanagedContext?._withUnsafeGuaranteedRef { $0.markAsUpdated(self) }
        }
    }

    // MARK: - Changed values

    /// The unsaved values, by property; nil values are `NSNull`, relationships show objects.
    ///
    /// The result is empty after a save. The method does not load the object, and leaves out transient properties.
    ///
    /// ```swift
    /// venue.price += 1
    /// print(venue.changedValues())
    /// ```
    ///
    /// - Returns: Values by the names of properties; empty for an object without changes. O(number of changed properties).
    public final func changedValues() -> [String: Any] {
        assertConfined(#function)
        guard let current else { return changedRelationships() }
        return changedRelationships().merging(values(of: changedSlots(), in: current)) { $1 }
    }

    private func changedRelationships() -> [String: Any] {
        var result: [String: Any] = [:]
        for slot in layout.toMany where extras?.toMany[slot.index]?.hasChanges == true {
            result[slot.name] = collection(of: slot, members: members(slot))
        }
        return result
    }

    /// The former values of properties that changed since the last objects-did-change notification; nil values are
    /// `NSNull`.
    ///
    /// - Returns: Former values by the names of properties.
    /// - Complexity: O(number of properties).
    public final func changedValuesForCurrentEvent() -> [String: Any] {
        assertConfined(#function)
        guard let extras else { return [:] }
        var result: [String: Any] = [:]
        if let before = extras.eventBase, let current {
            result = values(of: layout.slots.filter { !before.hasSameValue(as: current, in: $0) }, in: before)
        }
        for (index, known) in extras.eventToMany {
            let slot = layout.toMany[index]
            var state = known ?? ToManyState(isOrdered: slot.isOrdered)
            if state.isFault { state.load(context?.storedMembers(of: slot, ownedBy: self) ?? []) }
            result[slot.name] = collection(of: slot, state.content ?? [])
        }
        return result
    }

    /// The values of some slots in a row, by property; a composite attribute is included as a whole.
    private func values(of slots: [Slot], in row: Row) -> [String: Any] {
        var result: [String: Any] = [:]
        for slot in slots {
            if let name = slot.name.compositeName {
                guard case .composite(let index)? = layout.places[name], result[name] == nil else { continue }
                result[name] = compositeValue(layout.composites[index], in: row) ?? NSNull()
            } else {
                result[slot.name] = objectValue(of: slot, in: row) ?? NSNull()
            }
        }
        return result
    }

    /// The last fetched or saved values of properties.
    ///
    /// The result is empty for an object that was never saved.
    ///
    /// ```swift
    /// venue.price += 1
    /// print(venue.committedValues(forKeys: ["price"]))
    /// ```
    ///
    /// - Parameter keys: Names of attributes and relationships; `nil` for all. Names that the entity lacks are left out.
    /// - Returns: The values by name; nil values are `NSNull`, relationships show objects.
    /// - Complexity: O(number of keys). A fault fires. A to-many relationship that is not loaded, or that has
    ///   changes, may be read from the store.
    public final func committedValues(forKeys keys: [String]?) -> [String: Any] {
        assertConfined(#function)
        if flags.contains(.fault) { prepareToRead() }
        guard let base = baseRow else { return [:] }
        var result: [String: Any] = [:]
        for name in keys ?? Array(layout.places.keys) {
            switch layout.places[name] {
            case .slot(let index):
                let slot = layout.slots[index]
                guard slot.name.compositeName == nil else { continue }
                result[name] = objectValue(of: slot, in: base) ?? NSNull()
            case .composite(let index):
                result[name] = compositeValue(layout.composites[index], in: base) ?? NSNull()
            case .toMany(let index):
                let slot = layout.toMany[index]
                var state = extras?.toMany[index] ?? ToManyState(isOrdered: slot.isOrdered)
                if state.isFault || state.hasChanges {
                    state = ToManyState(isOrdered: slot.isOrdered)
                    state.load(context?.storedMembers(of: slot, ownedBy: self) ?? [])
                }
                result[name] = collection(of: slot, state.content ?? [])
            default:
                continue
            }
        }
        return result
    }

    /// Whether a save would store other values than those stored now.
    ///
    /// The result is false if only transient properties changed, or if values were set back.
    public final var hasPersistentChangedValues: Bool {
        assertConfined(#function)
        if flags.contains(.inserted) || flags.contains(.deleted) { return true }
        return !changedSlotSet().isEmpty || hasToManyChanges
    }

    final var hasToManyChanges: Bool {
        guard let extras else { return false }
        return layout.toMany.contains { !$0.isTransient && extras.toMany[$0.index]?.hasChanges == true }
    }

    /// The indices of the to-many relationships with unsaved changes.
    final func changedToManySet() -> SlotSet {
        var set = SlotSet()
        guard let extras else { return set }
        for index in extras.toMany.indices where extras.toMany[index]?.hasChanges == true { set.insert(index) }
        return set
    }

    /// The slots that differ from the last fetched or saved row; for a new object, those with a value.
    private func changedSlots() -> [Slot] {
        guard flags.contains(.ownsRow), let current else { return [] }
        guard let base = extras?.base else { return layout.slots.filter { !current.isNull($0.index) } }
        return layout.slots.filter { !base.hasSameValue(as: current, in: $0) }
    }

    /// The positions of the slots that differ from the last fetched or saved row; empty for a new object.
    ///
    /// If a part of a composite attribute differs, then all of its parts count: it is one value.
    final func changedSlotSet() -> SlotSet {
        guard flags.contains(.ownsRow), let current, let base = extras?.base else { return SlotSet() }
        return base.slots(differingFrom: current)
    }

    // MARK: - Events and saves

    /// Ends the current event for this object.
    final func endEvent() {
        flags.remove([.eventInserted, .eventUpdated, .eventDeleted, .eventRefreshed, .eventListed, .writable])
        guard let extras else { return }
        extras.eventBase = nil
        extras.endEventToMany()
    }

    /// Marks the object as saved: a save has written it, so its values are now the stored ones.
    final func commit() {
        flags.remove([.ownsRow, .inserted, .updated, .conflictDetection, .writable])
        guard let extras else { return }
        extras.base = nil
        extras.eventBase = nil
        extras.commitTransients()
        // This comes first: it drops the event's states, so that changes of the members copy nothing.
        extras.endEventToMany()
        extras.commitRelationships()
    }

    /// Drops all changes: the object shows its last fetched or saved values again.
    final func discardChanges() {
        noteValues()
        if flags.contains(.ownsRow), let base = extras?.base {
            current = base
            flags.remove(.ownsRow)
        }
        flags.remove(.writable)
        if let extras {
            extras.base = nil
            extras.eventBase = nil
            extras.endEventToMany()
            extras.commitTransients()
            extras.forgetDecoded()
            for index in extras.toMany.indices { extras.toMany[index]?.discardChanges() }
        }
        flags.remove([
            .inserted, .updated, .deleted, .deletePropagated, .eventInserted, .eventUpdated, .eventDeleted,
            .conflictDetection,
        ])
    }

    /// Puts a newer stored row under the object's changes: unchanged properties show the new values.
    ///
    /// Afterwards the object's changes count as made on the new row, so that a save does not conflict with it.
    ///
    /// - Parameters:
    ///   - row: The newer row.
    ///   - reloadsRelationships: Whether to-many relationships are read from the store again.
    final func rebase(onto row: Row, reloadsRelationships: Bool = true) {
        guard !flags.contains(.fault) else { return }
        noteValues(relationships: reloadsRelationships ? nil : SlotSet())
        if flags.contains(.ownsRow), let base = extras?.base, let old = current {
            let merged = row.copy()
            let changed = changedSlotSet()
            for slot in layout.slots where changed.contains(slot.index) { merged.take(slot, from: old) }
            current = merged
            extras?.base = row
            moveMemberships(from: base, to: row, own: old)
            keepOneToOne(from: base, to: row)
        } else if !flags.contains(.ownsRow) {
            current = row
        }
        guard reloadsRelationships, !flags.contains(.inserted) else { return }
        extras?.reloadRelationships()
        if layout.hasOrderedToMany { rebaseOrders() }
    }

    /// Makes changed orders of members count as made on the stored ones.
    ///
    /// The stored orders are read at once. If they were read at the next use, then others might have changed them again,
    /// and nothing would show that.
    private func rebaseOrders() {
        guard let context, let extras else { return }
        for slot in layout.toMany
        where slot.isOrdered && !slot.isTransient && extras.toMany[slot.index]?.isReordered == true {
            // If they cannot be read, then the next use of the relationship reports that.
            guard let stored = try? context.readMembers(of: slot, ownedBy: self) else { continue }
            extras.toMany[slot.index]?.rebaseOrder(onto: stored)
        }
    }

    /// Updates inverse relationships after both this context and a save elsewhere have moved the object.
    ///
    /// Changes made here to these relationships then count as made on the new row.
    private func moveMemberships(from base: Row, to row: Row, own: Row) {
        guard let context else { return }
        for slot in layout.referenceSlots {
            let (before, now, here) = (base.reference(slot), row.reference(slot), own.reference(slot))
            guard before != now, here != before, let inverse = slot.inverse, inverse.isToMany
            else { continue }
            // The object has already left `before`. If `here` is `now`, then it is a member there; otherwise it has
            // to leave `now` too.
            if let before { context.registered(before, near: self)?.forgetChange(of: self, in: inverse) }
            guard let now, let owner = context.object(for: now, near: self) else { continue }
            if here == now {
                owner.forgetChange(of: self, in: inverse)
            } else {
                owner.markAsAbsent(self, from: inverse)
            }
        }
    }

    /// Forgets a local change of a member of a to-many relationship, because the member was also changed elsewhere.
    private func forgetChange(of member: NSManagedObject, in relationship: Relationship) {
        guard let index = layout.toMany(named: relationship.name)?.index else { return }
        extras?.toMany[index]?.forgetChange(of: member.reference)
    }

    /// Notes that an object which was made a member elsewhere is not a member here.
    private func markAsAbsent(_ member: NSManagedObject, from relationship: Relationship) {
        guard let slot = layout.toMany(named: relationship.name), let context else { return }
        let extras = writableExtras
        var state = extras.toMany[slot.index] ?? ToManyState(isOrdered: slot.isOrdered)
        state.markAsAbsent(member.reference)
        extras.toMany[slot.index] = state
        markUpdatedByOthers(in: context)
    }

    /// Marks the object as changed, because this context keeps what others have changed; that is no undo step.
    final func markUpdatedByOthers(in context: NSManagedObjectContext) {
        if flags.isDisjoint(with: [.inserted, .updated]) { flags.insert(.updated) }
        context.list(self)
    }

    /// Replaces references to objects that have obtained permanent keys.
    final func replaceReferences(_ permanent: PermanentKeys) {
        if flags.contains(.ownsRow) {
            for slot in layout.referenceSlots {
                guard let reference = current?.reference(slot), reference.key < 0, let key = permanent[reference.key]
                else {
                    continue
                }
                unshareRow()
                current?.setReference(ObjectReference(key: key, entity: reference.entity), slot)
            }
        }
        extras?.replaceKeys(permanent)
    }
}

extension String {
    /// For the name of a leaf of a composite attribute, the name of the composite; otherwise `nil`.
    package var compositeName: String? {
        utf8.firstIndex(of: UInt8(ascii: ".")).map { String(self[..<$0]) }
    }
}
