import StrataRows

/// One save of a child into its parent: the child's changes, and the parent's objects to which they apply.
///
/// A value lives for one attempt, inside both scopes. Nothing in the parent changes before `apply()`, which cannot
/// fail.
struct ChildSave {
    /// One of the child's changed objects and the parent's object for the same row.
    private struct Pair {
        let object: NSManagedObject
        let target: NSManagedObject
        /// The slots in which the child's row differs from what it last read; none for a new object.
        let changed: SlotSet
        /// The row that the child has read, if it was changed outside of the tree since; the target is then based on
        /// it.
        var base: Row?
    }

    let child: NSManagedObjectContext
    let parent: NSManagedObjectContext
    private var inserted: [(object: NSManagedObject, known: NSManagedObject?)] = []
    private var updated: [Pair] = []
    private var deleted: [Pair] = []
    private var neverSaved = NeverSavedObjects()
    /// The parent's objects of `deleted`.
    private var deletedTargets: Set<ObjectIdentifier> = []
    /// Objects on which the child's changes depend: those that it has passed to `detectConflicts(for:)`.
    private var checked: [Pair] = []
    /// Objects that the parent has deleted, though the child has changed or deleted them.
    private(set) var lost: [NSManagedObject] = []
    /// The members of ordered relationships that were changed, by the object and the relationship's index.
    private var orders: [OrderName: [ObjectReference]] = [:]

    private struct OrderName: Hashable {
        let object: ObjectIdentifier
        let index: Int
    }

    /// Finds the parent's objects, and loads those that will be changed.
    ///
    /// O(number of changes), however many objects the parent has registered.
    ///
    /// - Throws: An error of the store; objects that were loaded before stay loaded.
    init(of child: NSManagedObjectContext, into parent: NSManagedObjectContext) throws {
        self.child = child
        self.parent = parent
        for object in child.changeTracker.objects where object.flags.isDisjoint(with: .gone) {
            let flags = object.flags
            if flags.contains(.deleted) {
                guard !flags.contains(.inserted) else {
                    neverSaved.insertIfNeverSaved(object)
                    continue
                }
                guard let target = try target(of: object, isLoaded: true) else {
                    lost.append(object)
                    continue
                }
                let base = isNewer(target, than: object, nil) ? object.baseRow : nil
                deleted.append(Pair(object: object, target: target, changed: SlotSet(), base: base))
                deletedTargets.insert(ObjectIdentifier(target))
            } else if flags.contains(.inserted) {
                try keepOrders(of: object)
                inserted.append((object, parent.registeredForChild(object)))
            } else if flags.contains(.updated) {
                let changed = object.changedSlotSet()
                let movesTransients = object.hasTransientsToMove
                guard !changed.isEmpty || object.hasToManyChanges || movesTransients else { continue }
                // A changed order of members advances the version of the owner, so the owner is checked.
                let isChecked = !changed.isEmpty || (object.changesOrders && !object.isFault)
                // If a fault were realised later, its class would set transient values again.
                let isLoaded = isChecked || child.parentConflictPolicy != nil || movesTransients
                guard let target = try target(of: object, isLoaded: isLoaded) else {
                    lost.append(object)
                    continue
                }
                try keepOrders(of: object, target)
                let isOvertaken = isNewer(target, than: object, changed)
                let base = isOvertaken ? object.baseRow : nil
                updated.append(Pair(object: object, target: target, changed: changed, base: base))
            }
        }
        for object in child.changeTracker.checkedObjects
        where object.context === child && object.flags.isDisjoint(with: [.inserted, .deleted, .gone]) {
            guard let target = try target(of: object, isLoaded: true) else { continue }
            let base = isNewer(target, than: object, nil) ? object.baseRow : nil
            checked.append(Pair(object: object, target: target, changed: SlotSet(), base: base))
        }
    }

    /// The parent's object for one of the child's; `nil` if the parent has deleted it, or the row does not exist.
    private func target(of object: NSManagedObject, isLoaded: Bool) throws -> NSManagedObject? {
        if let known = parent.registeredForChild(object) {
            guard known.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]) else { return nil }
            guard isLoaded, known.isFault else { return known }
            let newest = try parent.newestRow(ofFault: known)
            guard let row = startingRow(for: object, newest) else { return nil }
            known.realise(row)
            return known
        }
        let found = try ChildQuestion(object).snapshot(in: parent)
        guard isLoaded else { return found.map { parent.registerForChild($0, isLoaded: false) } }
        guard let row = startingRow(for: object, found?.row) else { return nil }
        if let found, row === found.row { return parent.registerForChild(found, isLoaded: true) }
        return parent.registerForChild(
            Snapshot(key: object.key, storeIndex: object.storeIndex, row: row, temporaries: []),
            isLoaded: true
        )
    }

    /// Loads the ordered relationships that will be changed, on both sides.
    private mutating func keepOrders(of object: NSManagedObject, _ target: NSManagedObject? = nil) throws {
        for slot in object.layout.toMany where slot.isOrdered && !slot.isTransient {
            guard object.extras?.toMany[slot.index]?.hasChanges == true else { continue }
            orders[OrderName(object: ObjectIdentifier(object), index: slot.index)] = try object.readMembers(slot)
            _ = try target?.readMembers(slot)
        }
    }

    // MARK: - Conflicts

    /// The conflicts over objects that the parent has changed or deleted since the child read them.
    func conflicts() throws -> [NSMergeConflict] {
        var result: [NSMergeConflict] = []
        // Transient values have no versions.
        for pair in updated + deleted
        where pair.object.hasPersistentChangedValues || pair.object.flags.contains(.conflictDetection) {
            if let conflict = try conflict(pair.object, pair.target) { result.append(conflict) }
        }
        for object in lost where !object.isDeleted {
            if let conflict = try conflict(object, nil) { result.append(conflict) }
        }
        for object in child.changeTracker.checkedObjects where !object.hasChanges && object.context === child {
            if let conflict = try conflict(object, try target(of: object, isLoaded: true)) { result.append(conflict) }
        }
        return result
    }

    private func conflict(_ object: NSManagedObject, _ target: NSManagedObject?) throws -> NSMergeConflict? {
        guard let base = object.baseRow else { return nil }
        guard let target, let newer = try parent.snapshot(of: target) else {
            return NSMergeConflict(inTree: object, base: base, newer: nil)
        }
        let row = newer.row
        // A policy may use the objects that the parent's row names.
        child.addForeign(newer.temporaries)
        let isSame = row === base || object.layout.slots.allSatisfy { child.hasSameValue(in: base, and: row, at: $0) }
        return isSame ? nil : NSMergeConflict(inTree: object, base: base, newer: row)
    }

    // MARK: - Applying

    /// Applies the child's changes to the parent.
    func apply() -> [(object: NSManagedObject, target: NSManagedObject)] {
        var all: [Pair] = []
        for (object, known) in inserted {
            all.append(Pair(object: object, target: insert(object, known), changed: SlotSet()))
        }
        // References are set after all objects exist to which they may lead.
        for pair in all { mendReferences(of: pair.target, pair.target.layout.referenceSlots) }
        // The inverse relationships of these objects are updated already.
        let moved = Set(updated.filter { update($0) }.map { ObjectIdentifier($0.target) })
        all.append(contentsOf: updated)
        for pair in all { applyRelationships(pair, moved) }
        for pair in all { pair.target.copyTransients(from: pair.object) }
        // Each target is based on the row that the child has read, so that the root's save detects changes by other
        // writers.
        for pair in updated + deleted + checked {
            if let base = pair.base { pair.target.stepBack(to: base, pair.changed) }
        }
        for pair in deleted { release(pair) }
        for pair in deleted { parent.deleteForChild(pair.target) }
        for pair in checked { parent.checkVersion(of: pair.target) }
        return all.map { ($0.object, $0.target) }
    }

    /// Inserts a new object of the child into the parent, where it shares the child's row.
    private func insert(_ object: NSManagedObject, _ known: NSManagedObject?) -> NSManagedObject {
        let row = object.readableRow()
        if let known, known.flags.contains(.deleted), !known.flags.contains(.gone) {
            // The child has restored an object that the parent was about to delete.
            parent.undelete(known)
            for slot in known.layout.slots where known.readableRow().hasSameValue(as: row, in: slot) == false {
                known.copyValue(of: slot, from: row)
            }
            return known
        }
        let layout = object.layout
        let target = known ?? layout.objectClass.type(of: layout.entity).init(entity: layout.entity, insertInto: nil)
        if known == nil {
            target.key = object.key
            target.storeIndex = object.storeIndex
            target.setKnownID(object.objectID)
        }
        parent.insertForChild(target, row)
        return target
    }

    /// Copies the changed attributes and to-one relationships of an object.
    ///
    /// - Returns: Whether inverse relationships were updated as well.
    private func update(_ pair: Pair) -> Bool {
        guard !pair.changed.isEmpty, let row = pair.object.current else { return false }
        let target = pair.target
        let changed = target.layout.slots.filter { pair.changed.contains($0.index) }
        if target.current?.buffer === pair.object.extras?.base?.buffer {
            // The object was not changed meanwhile, so the child's row becomes the parent's new row.
            target.applyChildRow(row)
            mendReferences(of: target, changed.filter { $0.kind == .reference })
            return false
        }
        for slot in changed {
            if slot.kind == .reference {
                let destination = row.reference(slot).flatMap { resolved($0, near: target) }
                target.setToOne(destination.flatMap { parent.object(for: $0, near: target) }, slot)
            } else {
                target.copyValue(of: slot, from: row)
            }
        }
        return true
    }

    /// Translates references in a row of the child for the parent, and removes those to objects that the parent has
    /// deleted.
    private func mendReferences(of target: NSManagedObject, _ slots: [Slot]) {
        for slot in slots {
            guard let reference = target.current?.reference(slot) else { continue }
            let wanted = resolved(reference, near: target)
            if wanted?.key != reference.key { target.writableRow().setReference(wanted, slot) }
        }
    }

    /// The reference for the parent; `nil` for an object that the parent has deleted, or that was never saved.
    private func resolved(_ reference: ObjectReference, near owner: NSManagedObject) -> ObjectReference? {
        if reference.key > 0 {
            let storeIndex = owner.storeIndex >= 0 ? owner.storeIndex : parent.storeIndexForInsertion(of: owner)
            if neverSaved.contains(reference, from: storeIndex, in: parent) { return nil }
            let layout = parent.layout(of: reference)
            let object = parent.registered(key: reference.key, layout: layout, storeIndex: storeIndex)
            return object?.flags.isDisjoint(with: [.deleted, .gone]) ?? true ? reference : nil
        }
        if let key = child.identityMap.permanentKeys[reference.key] {
            // The child has learned the permanent key after it read the reference.
            return resolved(ObjectReference(key: key, entity: reference.entity), near: owner)
        }
        let id = child.temporaryID(reference.key)
        if let object = parent.identityMap.temporaryObjects[reference.key]
            ?? id.flatMap({ parent.registeredForChild($0) })
        {
            guard object.flags.isDisjoint(with: [.deleted, .gone]) else { return nil }
            return object.reference
        }
        guard let id else { return nil }
        let (key, store) = id.current
        if store == nil { parent.addForeign([id]) }
        return ObjectReference(key: key, entity: reference.entity)
    }

    /// Applies the child's changes of to-many relationships to the parent.
    ///
    /// The child has changed both sides of each relationship, so each side is applied separately.
    private func applyRelationships(_ pair: Pair, _ moved: Set<ObjectIdentifier>) {
        guard let extras = pair.object.extras else { return }
        let target = pair.target
        for slot in target.layout.toMany where !slot.isTransient {
            guard let state = extras.toMany[slot.index], state.hasChanges else { continue }
            if slot.isOrdered { _ = target.loadedMembers(slot) }
            let removed = state.removed.compactMap { resolved($0, near: target) }
                .filter { mayChange($0, of: target, in: slot, moved: moved, isAddition: false) }
            let added = state.addedInOrder.compactMap { resolved($0, near: target) }
                .filter { mayChange($0, of: target, in: slot, moved: moved, isAddition: true) }
            let name = OrderName(object: ObjectIdentifier(pair.object), index: slot.index)
            let order = orders[name]?.compactMap { resolved($0, near: target) }
            target.changeToMany(slot) { $0.applyChildChanges(added: added, removed: removed, order: order) }
        }
    }

    /// Removes those objects from a deleted object's relationships that the child has related to other objects.
    ///
    /// Otherwise a delete rule would reach them by the parent's copy of the relationships.
    private func release(_ pair: Pair) {
        let (object, target) = (pair.object, pair.target)
        let changed = object.changedSlotSet()
        for slot in target.layout.referenceSlots
        where changed.contains(slot.index) && slot.relationship?.reaches == true {
            let destination = object.current?.reference(slot).flatMap { resolved($0, near: target) }
            target.setToOne(destination.flatMap { parent.object(for: $0, near: target) }, slot)
        }
        guard let extras = object.extras else { return }
        for slot in target.layout.toMany where slot.relationship.reaches {
            guard let state = extras.toMany[slot.index], !state.removed.isEmpty else { continue }
            let removed = state.removed.compactMap { resolved($0, near: target) }
                .filter { mayChange($0, of: target, in: slot, moved: [], isAddition: false) }
            if slot.isOrdered { _ = target.loadedMembers(slot) }
            target.changeToMany(slot) { $0.applyChildChanges(added: [], removed: removed, order: nil) }
        }
    }

    /// Whether a change of membership is applied.
    ///
    /// If the member has a to-one relationship to the owner, that decides, since siblings may have moved the member
    /// meanwhile.
    ///
    /// - Parameters:
    ///   - member: The member that was added or removed.
    ///   - owner: The parent's object that has the relationship.
    ///   - slot: The relationship.
    ///   - moved: Objects whose inverse relationships are updated already.
    ///   - isAddition: Whether the member was added.
    /// - Returns: Whether the change is applied.
    private func mayChange(
        _ member: ObjectReference,
        of owner: NSManagedObject,
        in slot: ToManySlot,
        moved: Set<ObjectIdentifier>,
        isAddition: Bool
    ) -> Bool {
        guard let inverse = slot.inverse, !inverse.isToMany,
            let object = parent.registered(member, near: owner), !object.isFault,
            let back = object.layout.slot(named: inverse.name), back.kind == .reference,
            !deletedTargets.contains(ObjectIdentifier(object))
        else { return true }
        guard !moved.contains(ObjectIdentifier(object)) else { return false }
        return (object.readableRow().reference(back)?.key == owner.key) == isAddition
    }
}

extension NSManagedObject {
    /// Whether transient attributes were set since the last save.
    fileprivate final var hasTransientsToMove: Bool {
        guard let extras, !extras.setTransients.isEmpty else { return false }
        return layout.transients.contains { $0.isAttribute && extras.setTransients.contains($0.index) }
    }

    /// Takes over the transient attributes that were set on a child's object, as changes.
    ///
    /// No row holds their values, so only the child can provide them.
    fileprivate final func copyTransients(from object: NSManagedObject) {
        guard object.hasTransientsToMove, let extras = object.extras else { return }
        for slot in layout.transients where slot.isAttribute && extras.setTransients.contains(slot.index) {
            setAnyValue(extras.transients[slot.index], forKey: slot.name)
        }
    }

    /// Takes over the row of a child's object; the child's changes are based on the row that this object has now.
    fileprivate final func applyChildRow(_ row: Row) {
        let extras = writableExtras
        if flags.contains(.ownsRow) {
            if extras.eventBase == nil, flags.isDisjoint(with: .eventInserted) { extras.eventBase = current }
        } else {
            extras.base = current
            extras.eventBase = current
            flags.insert(.ownsRow)
        }
        current = row
        flags.insert(.rowShared)
        flags.remove(.writable)
        context?.downward.countStateChange()
        markUpdated()
    }
}

extension Relationship {
    /// Whether a deletion depends on the objects at the other end, or deletes them too.
    fileprivate var reaches: Bool { !isTransient && (deleteRule == .cascade || deleteRule == .deny) }
}

extension TransientSlot {
    /// Whether the property is an attribute; a relationship leads to an object of one context, so it cannot be taken
    /// over.
    fileprivate var isAttribute: Bool { property is NSAttributeDescription }
}

extension ToManyState {
    /// Applies the changes of a child and returns whether that changed anything.
    ///
    /// O(number of changes); if the relationship is ordered, O(number of members).
    fileprivate mutating func applyChildChanges(
        added: [ObjectReference],
        removed: [ObjectReference],
        order: [ObjectReference]?
    ) -> Bool {
        var didChange = false
        if isOrdered, !isFault {
            didChange = remove(Set(removed))
        } else {
            for member in removed where remove(member) { didChange = true }
        }
        for member in added where add(member) { didChange = true }
        guard let order, let content else { return didChange }
        // Members that were added elsewhere meanwhile come last, in their order.
        let members = Set(content)
        let known = Set(order)
        let wanted = order.filter(members.contains) + content.filter { !known.contains($0) }
        return reorder(wanted) || didChange
    }
}
