import Foundation
import StrataRows

extension NSManagedObject {
    // MARK: - To-one

    /// The destination of a to-one relationship, as an object of the same context.
    final func toOne(_ slot: Slot) -> NSManagedObject? {
        guard let reference = readableRow(slot.index).reference(slot) else { return nil }
        return destination(reference)
    }

    /// Sets a to-one relationship, and updates the inverse on both sides.
    final func setToOne(_ value: NSManagedObject?, _ slot: Slot) {
        if flags.contains(.batchRow) {
            if let value { requireDestination(value, slot.name, number: slot.destinationNumber) }
            return setBatchDestination(value, slot)
        }
        // This may insert the object into the context of the value, or remove references that lead nowhere.
        if let value { prepareToRelate(to: value, slot.name) }
        completeRow(for: slot.index)
        let old = readableWords(slot.index).reference(slot)
        let new = value.map(\.reference)
        guard old != new else { return }
        if let value { requireDestination(value, slot.name, number: slot.destinationNumber) }
        writableRow(slot.index).setReference(new, slot)
        if let value { holdCompanion(value) }
        // A value that `awakeFromFetch` sets concerns this object only: no inverse is set, and nothing counts as
        // changed.
        guard let inverse = slot.inverse, !flags.contains(.awaking) else { return letGo(of: old) }
        if let old, let former = destination(old) { former.dropInverse(inverse, of: self) }
        if let value { value.addInverse(inverse, of: self) }
        letGo(of: old)
    }

    @inline(__always)
    private func letGo(of reference: ObjectReference?) { if let reference { releaseCompanion(reference) } }

    /// Adds `object` to the inverse relationship, after the other side was set.
    final func addInverse(_ inverse: Relationship, of object: NSManagedObject) {
        switch place(of: inverse) {
        case .toMany(let index):
            guard changeToMany(layout.toMany[index], { $0.add(object.reference) }) else { return }
            holdCompanion(object)
            noteInverse(inverse.name)
        case .slot(let index):
            let slot = layout.slots[index]
            let old = readableRow().reference(slot)
            guard old != object.reference else { return holdInverse(slot) }
            writableRow().setReference(object.reference, slot)
            holdCompanion(object)
            noteInverse(inverse.name)
            // This is a one-to-one relationship: the former destination loses this object.
            if let old, let former = destination(old), let forward = slot.inverse {
                former.dropInverse(forward, of: self)
            }
            letGo(of: old)
        default: break
        }
    }

    /// Removes `object` from the inverse relationship, after the other side was set to another object.
    final func dropInverse(_ inverse: Relationship, of object: NSManagedObject) {
        switch place(of: inverse) {
        case .toMany(let index):
            guard changeToMany(layout.toMany[index], { $0.remove(object.reference) }) else { return }
            releaseCompanion(object.reference)
            noteInverse(inverse.name)
        case .slot(let index):
            let slot = layout.slots[index]
            guard readableRow().reference(slot) == object.reference else { return holdInverse(slot) }
            writableRow().setReference(nil, slot)
            releaseCompanion(object.reference)
            noteInverse(inverse.name)
        default: break
        }
    }

    /// The place where this object stores a relationship of its entity.
    final func place(of relationship: Relationship) -> PropertyPlace? {
        relationship.place ?? layout.places[relationship.name]
    }

    /// Makes the next save check this object, whose side of a one-to-one relationship needed no change.
    ///
    /// Both sides are stored. This side already showed the value that the other side has only now been set to. So the
    /// two sides were read at different times, and the stored value of this side may differ.
    private func holdInverse(_ slot: Slot) {
        guard slot.inverse?.isToMany == false, slot.relationship?.isTransient == false else { return }
        context?.checkVersion(of: self)
    }

    // MARK: - To-many

    /// The members of a to-many relationship; they are loaded if necessary.
    ///
    /// If the members cannot be read, then the error is reported. The relationship stays a fault, and shows only the
    /// members that were added here.
    final func loadedMembers(_ slot: ToManySlot) -> [ObjectReference] {
        if flags.contains(.fault) { prepareToRead() }
        let lossCount = context?.identityMap.lossCount ?? 0
        if let state = extras?.toMany[slot.index], let content = state.content, state.lossCount == lossCount {
            return content
        }
        if flags.contains(.awaitsBatch), let context {
            // This happens only once, because the flag is gone then.
            context.readBatches(for: self)
            return loadedMembers(slot)
        }
        let isFault = extras?.toMany[slot.index]?.isFault ?? true
        var stored: [ObjectReference] = []
        if isFault, let context {
            guard let found = context.storedMembers(of: slot, ownedBy: self) else {
                return extras?.toMany[slot.index]?.addedInOrder ?? []
            }
            stored = found
        }
        return loadMembers(of: slot, stored: stored, lossCount: lossCount)
    }

    /// The same as ``loadedMembers(_:)``, for callers that can throw.
    final func readMembers(_ slot: ToManySlot) throws -> [ObjectReference] {
        if flags.contains(.fault) { prepareToRead() }
        if flags.contains(.awaitsBatch) { context?.readBatches(for: self) }
        guard extras?.toMany[slot.index]?.isFault ?? true, let context else { return loadedMembers(slot) }
        return loadMembers(
            of: slot,
            stored: try context.readMembers(of: slot, ownedBy: self),
            lossCount: context.identityMap.lossCount
        )
    }

    private func loadMembers(of slot: ToManySlot, stored: [ObjectReference], lossCount: Int) -> [ObjectReference] {
        // The state is read after the members: while a child asks, keys in the state may become permanent.
        let extras = writableExtras
        var state = extras.toMany[slot.index] ?? ToManyState(isOrdered: slot.isOrdered)
        if state.isFault { state.load(stored) }
        // Objects that were deleted elsewhere leave the relationship here, since their deletion did not update the
        // inverse.
        if let context, lossCount > 0 {
            state.forget { context.registered($0, near: self)?.flags.contains(.gone) ?? false }
        }
        state.lossCount = lossCount
        extras.toMany[slot.index] = state
        return state.content ?? []
    }

    /// The members of a to-many relationship as objects, without those deleted meanwhile.
    final func members(_ slot: ToManySlot) -> [NSManagedObject] {
        assertConfined("property \"\(slot.name)\"")
        return destinations(loadedMembers(slot))
    }

    final func cachedCollection(_ slot: ToManySlot) -> Any? {
        assertConfined("property \"\(slot.name)\"")
        guard let state = extras?.toMany[slot.index], state.lossCount == context?.identityMap.lossCount ?? 0 else {
            return nil
        }
        return state.cached
    }

    final func cacheCollection(_ value: Any, _ slot: ToManySlot) {
        // If the members could not be loaded, then the collection is incomplete.
        guard extras?.toMany[slot.index]?.isFault == false else { return }
        extras?.toMany[slot.index]?.cached = value
    }

    /// Whether the members of a to-many relationship are those that they were when a note was left.
    package final func hasNote<Note: AnyObject>(_ note: Note, ofMembersNamed name: String) -> Bool {
        guard let slot = layout.toMany(named: name) else { return false }
        return cachedCollection(slot) as? Note === note
    }

    /// Leaves a note that goes with the next change of the members of a to-many relationship.
    ///
    /// It takes the place of the collection that is kept for the next read.
    package final func leaveNote(_ note: AnyObject, ofMembersNamed name: String) {
        if let slot = layout.toMany(named: name) { cacheCollection(note, slot) }
    }

    /// Whether this object comes before another one in the order of keys, in which new objects are last and have the
    /// order in which they were made.
    ///
    /// It is `nil` if the keys do not say, because the objects are in different tables.
    package final func comesByKey(before other: NSManagedObject) -> Bool? {
        if key < 0 || other.key < 0 { return key < 0 ? other.key < 0 && key > other.key : true }
        guard layout === other.layout, storeIndex == other.storeIndex else { return nil }
        return key < other.key
    }

    /// Whether an object is a member; the relationship is loaded unless the object's own side gives the answer.
    final func isMember(_ object: NSManagedObject, of slot: ToManySlot) -> Bool {
        guard object.context === context, context != nil || destination(object.reference) === object else {
            return false
        }
        if let isMember = membershipByInverse(of: object, in: slot, isChange: false) { return isMember }
        _ = loadedMembers(slot)
        return extras?.toMany[slot.index]?.contains(object.reference) ?? false
    }

    /// The answer of the other side of a one-to-many relationship, as long as this side is not loaded.
    ///
    /// - Parameters:
    ///   - object: The object that may be a member.
    ///   - slot: The relationship.
    ///   - isChange: Whether the membership is about to be changed.
    /// - Returns: Whether it is a member; `nil` if only this side can say that.
    private func membershipByInverse(of object: NSManagedObject, in slot: ToManySlot, isChange: Bool) -> Bool? {
        guard extras?.toMany[slot.index]?.isFault ?? flags.isDisjoint(with: [.inserted, .detached]),
            let inverse = slot.inverse, !inverse.isToMany, !inverse.isTransient,
            let back = object.layout.slot(named: inverse.name), back.kind == .reference
        else { return nil }
        if isChange { object.completeRow(for: back.index) }
        return object.readableRow(back.index).reference(back) == reference
    }

    /// Adds a member, at the end of an ordered relationship or at `index`, and updates the inverse.
    final func addMember(_ object: NSManagedObject, to slot: ToManySlot, at index: Int? = nil) {
        prepareToRelate(to: object, slot.name)
        requireDestination(object, slot.name, number: slot.destinationNumber)
        let isMember = membershipByInverse(of: object, in: slot, isChange: true)
        if isMember == true, index == nil { return }
        // A member that is known to be new comes after the others, whichever these are.
        if slot.isOrdered, isMember != false || index != nil { _ = loadedMembers(slot) }
        guard changeToMany(slot, { $0.add(object.reference, at: index) }) else { return }
        holdCompanion(object)
        guard let inverse = slot.inverse, !flags.contains(.awaking) else { return }
        object.addInverse(inverse, of: self)
    }

    /// Removes a member and updates the inverse.
    final func removeMember(_ object: NSManagedObject, from slot: ToManySlot) {
        guard object.context === context else { return }
        if slot.isOrdered {
            _ = loadedMembers(slot)
        } else if membershipByInverse(of: object, in: slot, isChange: true) == false {
            return
        }
        guard changeToMany(slot, { $0.remove(object.reference) }) else { return }
        releaseCompanion(object.reference)
        guard let inverse = slot.inverse, !flags.contains(.awaking) else { return }
        object.dropInverse(inverse, of: self)
    }

    /// Replaces all members, in the given order if the relationship is ordered.
    final func setMembers(_ objects: [NSManagedObject], _ slot: ToManySlot) {
        for object in objects {
            prepareToRelate(to: object, slot.name)
            requireDestination(object, slot.name, number: slot.destinationNumber)
        }
        let wanted = Set(objects.map(\.reference))
        let stray = loadedMembers(slot).filter { !wanted.contains($0) }
        if !stray.isEmpty {
            changeToMany(slot) { $0.remove(Set(stray)) }
            if let inverse = slot.inverse, !flags.contains(.awaking) {
                for reference in stray { destination(reference)?.dropInverse(inverse, of: self) }
            }
            for reference in stray { releaseCompanion(reference) }
        }
        for object in objects { addMember(object, to: slot) }
        guard slot.isOrdered else { return }
        var seen: Set<ObjectReference> = []
        let order = objects.map(\.reference).filter { seen.insert($0).inserted }
        changeToMany(slot) { $0.reorder(order) }
    }

    /// Makes the members of a to-many relationship be read anew; local changes stay on top.
    final func reloadMembers(of relationship: Relationship) {
        guard case .toMany(let index)? = place(of: relationship), let extras else { return }
        extras.toMany[index]?.turnIntoFault()
    }

    /// Changes the state of a to-many relationship; if `change` returns true, then the object counts as changed.
    @discardableResult
    final func changeToMany(_ slot: ToManySlot, _ change: (inout ToManyState) -> Bool) -> Bool {
        assertConfined("property \"\(slot.name)\"")
        let isAwaking = flags.contains(.awaking)
        let isUndoable = unmanagedContext?._withUnsafeGuaranteedRef { $0.undoManager != nil } ?? false
        // Undo has to know the former members.
        if isAwaking || isUndoable { _ = loadedMembers(slot) }
        let extras = writableExtras
        // The state is moved out, so that the members are changed in place unless another state shares them.
        var state = exchange(&extras.toMany[slot.index], with: nil) ?? newToManyState(slot)
        // A copy is needed if the event or undo needs the former state.
        let isFirstInEvent =
            flags.isDisjoint(with: [.eventInserted, .detached, .awaking])
            && !extras.eventToMany.contains { $0.index == slot.index }
        let wantsBefore = isFirstInEvent || isUndoable
        let before = wantsBefore && !state.isUntouchedFault ? state.kept() : nil
        let didChange = change(&state)
        if isAwaking { state.commitChanges() }
        guard didChange, !isAwaking else {
            extras.toMany[slot.index] = consume state
            return didChange
        }
        if isUndoable {
            extras.toMany[slot.index] = before
            context?.recordForUndo(self, before: nil)
        }
        if isFirstInEvent { extras.recordBeforeEvent(index: slot.index, state: before) }
        extras.toMany[slot.index] = consume state
        markUpdated()
        extras.refreshOrderedSet(slot.index)
        return true
    }

    private func newToManyState(_ slot: ToManySlot) -> ToManyState {
        var state = ToManyState(isOrdered: slot.isOrdered)
        // The relationships of a new object have nothing to load.
        if flags.contains(.inserted) || flags.contains(.detached) { state.load([]) }
        state.lossCount = context?.identityMap.lossCount ?? 0
        return state
    }

    /// Removes an object whose deletion is saved from loaded relationships that its delete rules left alone.
    final func leaveLooseRelationships() {
        guard let context, let current else { return }
        func leave(_ owner: ObjectReference, _ relationship: Relationship?) {
            guard relationship?.deleteRule == .noAction, let inverse = relationship?.inverse,
                let owner = context.registered(owner, near: self), let slot = owner.layout.toMany(named: inverse.name)
            else { return }
            owner.extras?.toMany[slot.index]?.forget { $0 == reference }
        }
        for slot in layout.referenceSlots {
            if let owner = current.reference(slot) { leave(owner, slot.relationship) }
        }
        for slot in layout.toMany {
            for owner in extras?.toMany[slot.index]?.content ?? [] { leave(owner, slot.relationship) }
        }
    }

    /// Removes deleted objects from those loaded relationships of this object that `concerns` selects.
    final func forgetMembers(_ concerns: (ToManySlot) -> Bool, where isDeleted: (ObjectReference) -> Bool) {
        guard let extras else { return }
        for slot in layout.toMany where concerns(slot) {
            extras.toMany[slot.index]?.forget(where: isDeleted)
        }
    }

    // MARK: - Misuse

    /// Stops the program if `object` is not of the relationship's destination entity.
    private func requireDestination(_ object: NSManagedObject, _ name: String, number: Int) {
        guard object.layout.number != number else { return }
        let destination = (layout.entity.relationshipsByName[name]?.destinationEntity)
        if let destination, object.entity.isKindOf(entity: destination) { return }
        fatalError(
            "CoreData: relationship \"\(name)\" of \(entity.name ?? "") takes objects of entity \(destination?.name ?? "?"), not of \(object.entity.name ?? "")."
        )
    }
}

extension NSManagedObjectContext {
    /// Returns this context's object for an object of another context, by its ID.
    ///
    /// The object should have been saved: an unsaved object is a fault here that cannot be realised.
    ///
    /// - Parameter object: An object of any context on the same stores.
    /// - Complexity: O(1), without a fetch.
    /// - Returns: The object with the same ID in this context, usually a fault.
    public func bring<Object: NSManagedObject>(_ object: Object) -> Object {
        guard object.context !== self else { return object }
        return unsafeDowncast(self.object(with: object.objectID), to: Object.self)
    }
}
