/// One save of a child into its parent: the child's changes, and the parent's objects that they are made to.
///
/// Lives for one attempt, inside both scopes. Nothing in the parent changes before `apply()`, which cannot fail.
struct ChildSave {
    /// One of the child's changed objects and the parent's object for the same row.
    private struct Pair {
        let object: NSManagedObject
        let target: NSManagedObject
        /// The slots in which the child's row differs from what it last read; none for a new object.
        let changed: SlotSet
    }

    private let child: NSManagedObjectContext
    private let parent: NSManagedObjectContext
    private var inserted: [(object: NSManagedObject, known: NSManagedObject?)] = []
    private var updated: [Pair] = []
    private var deleted: [Pair] = []
    /// The parent's objects of `deleted`.
    private var deletedTargets: Set<ObjectIdentifier> = []
    /// Objects that the parent does not have any more, though the child has changed or deleted them.
    private(set) var lost: [NSManagedObject] = []
    /// The members of ordered relationships that were changed, by the object and the relationship's index.
    private var orders: [OrderName: [ObjectReference]] = [:]

    private struct OrderName: Hashable {
        let object: ObjectIdentifier
        let index: Int
    }

    /// Finds the parent's objects, and loads those that are to be changed.
    ///
    /// O(number of changes), whatever the parent has registered.
    ///
    /// - Throws: An error of the store; objects that were loaded until then stay loaded.
    init(of child: NSManagedObjectContext, into parent: NSManagedObjectContext) throws {
        self.child = child
        self.parent = parent
        for object in child.changedList where object.flags.isDisjoint(with: .gone) {
            let flags = object.flags
            if flags.contains(.deleted) {
                guard !flags.contains(.inserted) else { continue }
                guard let target = try target(of: object, isLoaded: true) else {
                    lost.append(object)
                    continue
                }
                deleted.append(Pair(object: object, target: target, changed: SlotSet()))
                deletedTargets.insert(ObjectIdentifier(target))
            } else if flags.contains(.inserted) {
                try keepOrders(of: object)
                inserted.append((object, parent.registeredForChild(object)))
            } else if flags.contains(.updated) {
                let changed = object.changedSlotSet()
                guard !changed.isEmpty || object.hasToManyChanges else { continue }
                let isLoaded = !changed.isEmpty || child.parentConflictPolicy != nil
                guard let target = try target(of: object, isLoaded: isLoaded) else {
                    lost.append(object)
                    continue
                }
                try keepOrders(of: object, target)
                updated.append(Pair(object: object, target: target, changed: changed))
            }
        }
    }

    /// The parent's object for one of the child's; `nil` if the parent has deleted it or there is no such row.
    private func target(of object: NSManagedObject, isLoaded: Bool) throws -> NSManagedObject? {
        if let known = parent.registeredForChild(object) {
            guard known.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]) else { return nil }
            guard isLoaded, known.isFault else { return known }
            guard let row = try parent.newestRow(ofFault: known) else { return nil }
            known.realise(row)
            return known
        }
        let id = object.key < 0 ? object.objectID : nil
        guard let found = try parent.snapshot(forKey: object.key, object.layout, object.storeSlot, id) else {
            return nil
        }
        return parent.registerForChild(found, isLoaded: isLoaded)
    }

    /// Loads the ordered relationships that are to be changed, on both sides.
    private mutating func keepOrders(of object: NSManagedObject, _ target: NSManagedObject? = nil) throws {
        for slot in object.layout.toMany where slot.isOrdered && !slot.isTransient {
            guard object.extras?.toMany[slot.index]?.hasChanges == true else { continue }
            orders[OrderName(object: ObjectIdentifier(object), index: slot.index)] = try object.readMembers(slot)
            _ = try target?.readMembers(slot)
        }
    }

    // MARK: - Conflicts

    /// The changes of objects that the parent has changed, or deleted, since the child read them.
    func conflicts() throws -> [NSMergeConflict] {
        var result: [NSMergeConflict] = []
        for pair in updated + deleted {
            if let conflict = try conflict(pair.object, pair.target) { result.append(conflict) }
        }
        for object in lost where !object.isDeleted {
            if let conflict = try conflict(object, nil) { result.append(conflict) }
        }
        for object in child.conflictDetectionList where !object.hasChanges && object.context === child {
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
        // A policy may give the object what the parent's row names.
        child.noteForeign(newer.temporaries)
        let isSame = row === base || object.layout.slots.allSatisfy { hasSameValue(base, row, $0) }
        return isSame ? nil : NSMergeConflict(inTree: object, base: base, newer: row)
    }

    private func hasSameValue(_ base: Row, _ row: Row, _ slot: Slot) -> Bool {
        if base.hasSameValue(as: row, in: slot) { return true }
        guard let old = base.reference(slot, in: .reference), let new = row.reference(slot, in: .reference) else {
            return false
        }
        // The parent may know the permanent key where the child's row still has the temporary one.
        return child.temporaryID(old.key)?.key == new.key
    }

    // MARK: - Applying

    /// Makes the child's changes in the parent.
    func apply() -> [(object: NSManagedObject, target: NSManagedObject)] {
        var all: [Pair] = []
        for (object, known) in inserted {
            all.append(Pair(object: object, target: insert(object, known), changed: SlotSet()))
        }
        // References are set when all objects that they may lead to are there.
        for pair in all { mendReferences(of: pair.target, pair.target.layout.referenceSlots) }
        for pair in updated { update(pair) }
        all.append(contentsOf: updated)
        for pair in all { applyRelationships(pair) }
        for pair in deleted { parent.deleteForChild(pair.target) }
        return all.map { ($0.object, $0.target) }
    }

    /// Enters a new object of the child into the parent, with the child's very row.
    private func insert(_ object: NSManagedObject, _ known: NSManagedObject?) -> NSManagedObject {
        let row = object.readableRow()
        if let known, known.flags.contains(.deleted), !known.flags.contains(.gone) {
            // The child has brought back what the parent was about to delete.
            parent.undelete(known)
            for slot in known.layout.slots where known.readableRow().hasSameValue(as: row, in: slot) == false {
                known.take(slot, from: row)
            }
            return known
        }
        let layout = object.layout
        let target = known ?? layout.objectClass.type(of: layout.entity).init(entity: layout.entity, insertInto: nil)
        if known == nil {
            target.key = object.key
            target.storeSlot = object.storeSlot
            target.adopt(object.objectID)
        }
        parent.insertForChild(target, row)
        return target
    }

    private func update(_ pair: Pair) {
        guard !pair.changed.isEmpty, let row = pair.object.current else { return }
        let target = pair.target
        let changed = target.layout.slots.filter { pair.changed.contains($0.index) }
        if target.current?.buffer === pair.object.extras?.base?.buffer {
            // Nobody else has changed the object: the child's row is the parent's new one.
            target.takeOver(row)
            mendReferences(of: target, changed.filter { $0.kind == .reference })
            return
        }
        for slot in changed {
            if slot.kind == .reference {
                let destination = row.reference(slot).flatMap { resolved($0, near: target) }
                target.setToOne(destination.flatMap { parent.object(for: $0, near: target) }, slot)
            } else {
                target.take(slot, from: row)
            }
        }
    }

    /// Lets references in a row of the child's name what the parent knows, and drops those to what it has deleted.
    private func mendReferences(of target: NSManagedObject, _ slots: [Slot]) {
        for slot in slots {
            guard let reference = target.current?.reference(slot) else { continue }
            let wanted = resolved(reference, near: target)
            if wanted?.key != reference.key { target.writableRow().setReference(wanted, slot) }
        }
    }

    /// The reference as the parent is to have it; `nil` for an object that it has deleted, or that was never saved.
    private func resolved(_ reference: ObjectReference, near owner: NSManagedObject) -> ObjectReference? {
        if reference.key > 0 {
            let slot = owner.storeSlot >= 0 ? owner.storeSlot : parent.storeSlotForInsertion(of: owner)
            let layout = parent.layout(of: reference)
            let object = parent.registered(key: reference.key, layout: layout, storeSlot: slot)
            return object?.flags.isDisjoint(with: [.deleted, .gone]) ?? true ? reference : nil
        }
        if let key = child.permanentKeys[reference.key] {
            // The child has learned of it after the reference was read.
            return resolved(ObjectReference(key: key, entity: reference.entity), near: owner)
        }
        let id = child.temporaryID(reference.key)
        if let object = parent.temporaryObjects[reference.key] ?? id.flatMap({ parent.registeredForChild($0) }) {
            guard object.flags.isDisjoint(with: [.deleted, .gone]) else { return nil }
            return object.reference
        }
        guard let id else { return nil }
        let (key, store) = id.current
        if store == nil { parent.noteForeign([id]) }
        return ObjectReference(key: key, entity: reference.entity)
    }

    /// Changes the parent's to-many relationships as the child has.
    ///
    /// Both sides of a relationship are changed in the child, so each is taken over by itself.
    private func applyRelationships(_ pair: Pair) {
        guard let extras = pair.object.extras else { return }
        let target = pair.target
        for slot in target.layout.toMany where !slot.isTransient {
            guard let state = extras.toMany[slot.index], state.hasChanges else { continue }
            if slot.isOrdered { _ = target.loadedMembers(slot) }
            for case let member? in state.removed.map({ resolved($0, near: target) })
            where belongs(member, to: target, slot) != true {
                target.changeToMany(slot) { $0.remove(member) }
            }
            for case let member? in state.addedInOrder.map({ resolved($0, near: target) })
            where belongs(member, to: target, slot) != false {
                target.changeToMany(slot) { $0.add(member) }
            }
            let name = OrderName(object: ObjectIdentifier(pair.object), index: slot.index)
            guard let order = orders[name]?.compactMap({ resolved($0, near: target) }) else { continue }
            // What others have added meanwhile keeps its order behind.
            let content = target.loadedMembers(slot)
            let members = Set(content)
            let known = Set(order)
            let wanted = order.filter(members.contains) + content.filter { !known.contains($0) }
            target.changeToMany(slot) { $0.reorder(wanted) }
        }
    }

    /// Whether a member's to-one relationship, which has been taken over, leads to the owner; `nil` where none tells.
    ///
    /// Siblings may have moved the member meanwhile. A member that the child has deleted belongs to nobody.
    private func belongs(_ member: ObjectReference, to owner: NSManagedObject, _ slot: ToManySlot) -> Bool? {
        guard let inverse = slot.relationship.inverseRelationship, !inverse.isToMany,
            let object = parent.registered(member, near: owner), !object.isFault,
            let back = object.layout.slot(named: inverse.name), back.kind == .reference,
            !deletedTargets.contains(ObjectIdentifier(object))
        else { return nil }
        return object.readableRow().reference(back)?.key == owner.key
    }
}

extension NSManagedObject {
    /// Takes over the row of a child's object, made upon the very row that this object has.
    fileprivate final func takeOver(_ row: Row) {
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
        context?.downward.noteState()
        markUpdated()
    }
}

extension Row {
    /// The destination of a to-one relationship; `nil` if the slot is none.
    fileprivate func reference(_ slot: Slot, in kind: SlotKind) -> ObjectReference? {
        slot.kind == kind ? reference(slot) : nil
    }
}
