import StrataRows

/// Two objects, and the two sides of a relationship between them.
///
/// Usually both sides agree. But a refresh may have discarded the changes of one side, and a delete rule changes only the
/// side of the object that is not deleted.
struct RelatedPair {
    private let first: NSManagedObject
    private let forward: Relationship
    private let second: NSManagedObject
    private let back: Relationship

    init(_ first: NSManagedObject, _ forward: Relationship, _ second: NSManagedObject, _ back: Relationship) {
        (self.first, self.forward, self.second, self.back) = (first, forward, second, back)
    }

    /// Whether the next save relates the objects; `nil` if neither of them has an unsaved change of the relationship.
    var areRelated: Bool? {
        if !first.flags.isDisjoint(with: [.deleted, .gone]) || !second.flags.isDisjoint(with: [.deleted, .gone]) {
            return false
        }
        if back.isToMany, !forward.isToMany { return first.leads(to: second, by: forward) }
        if forward.isToMany, !back.isToMany { return second.leads(to: first, by: back) }
        return first.unsavedRelation(to: second, by: forward) ?? second.unsavedRelation(to: first, by: back)
    }

    /// Whether the objects are related again after the deletion of the first one was taken back.
    ///
    /// The first object still shows its relationships. The second one may have been deleted or related to another object
    /// meanwhile.
    var areRelatedAgain: Bool {
        guard second.flags.isDisjoint(with: [.deleted, .gone]) else { return false }
        guard !back.isToMany, case .slot(let index)? = second.place(of: back) else { return true }
        let reference = second.readableRow(index).reference(second.layout.slots[index])
        return reference == nil || reference == first.reference
    }

    /// Removes the first object, which is in no store, from the relationship of the second one.
    func releaseSecond() {
        if second.flags.isDisjoint(with: [.deleted, .gone]) { second.relate(to: first, by: back, false) }
    }

    /// Makes both sides say whether the objects are related.
    func agree(_ areRelated: Bool) {
        if first.flags.isDisjoint(with: [.deleted, .gone]) { first.relate(to: second, by: forward, areRelated) }
        if second.flags.isDisjoint(with: [.deleted, .gone]) { second.relate(to: first, by: back, areRelated) }
    }
}

extension NSManagedObject {
    /// Whether a to-one relationship leads to an object.
    fileprivate final func leads(to object: NSManagedObject, by relationship: Relationship) -> Bool {
        guard case .slot(let index)? = place(of: relationship) else { return false }
        return readableRow(index).reference(layout.slots[index]) == object.reference
    }

    /// Whether an unsaved change of this object relates it to another one; `nil` if there is no such change.
    fileprivate final func unsavedRelation(to object: NSManagedObject, by relationship: Relationship) -> Bool? {
        switch place(of: relationship) {
        case .slot(let index):
            let slot = layout.slots[index]
            guard flags.contains(.ownsRow), let now = current else { return nil }
            let reference = now.reference(slot)
            return reference == extras?.base?.reference(slot) ? nil : reference == object.reference
        case .toMany(let index):
            guard let state = extras?.toMany[index] else { return nil }
            if state.added.contains(object.reference) { return true }
            return state.removed.contains(object.reference) ? false : nil
        default: return nil
        }
    }

    /// Adds an object to one side of a relationship, or removes it there.
    fileprivate final func relate(to object: NSManagedObject, by relationship: Relationship, _ isRelated: Bool) {
        guard isRelated, case .toMany(let index)? = place(of: relationship),
            extras?.toMany[index]?.removed.contains(object.reference) == true
        else {
            return isRelated ? addInverse(relationship, of: object) : dropInverse(relationship, of: object)
        }
        // The member returns to its place in an ordered relationship.
        changeToMany(layout.toMany[index]) { $0.putBack(object.reference) }
    }
}
