import StrataRows

/// The relationship changes of which a refresh has discarded one side, until the next save.
///
/// A refresh without merging discards the changes of one object, and the objects at the other ends keep theirs. The two
/// sides of such a relationship then disagree. A save writes a relationship from one side only, so the other side would
/// disagree with the store from then on. For this reason a save first makes both sides agree:
///
/// - If one of the objects is deleted, or is in no store, then they are not related.
/// - If one side is to-one and the other is to-many, then the side that is to-one decides, because its row holds the
///   reference. So a member that was refreshed stays where the store has it.
/// - Otherwise an unsaved change decides. So the object at the other end keeps its change, and the refreshed object takes
///   part in it again.
///
/// This is confined to the context's queue.
struct DiscardedSides {
    /// One relationship of one refreshed object, and the objects to which it led before or after the discarded change.
    private struct Side {
        let object: NSManagedObject
        let relationship: Relationship
        var others: [NSManagedObject]
        /// Whether the object was new, so that it is in no store now.
        let wasInserted: Bool
    }

    private struct Name: Hashable {
        let object: ObjectIdentifier
        let relationship: ObjectIdentifier
    }

    private var sides: [Side] = []
    /// The positions in `sides`.
    private var positions: [Name: Int] = [:]
    /// The number of sides above which those are dropped that do not matter any more.
    private var limit = 64

    init() {}

    /// Whether no refresh has discarded a side since the last save.
    var isEmpty: Bool { sides.isEmpty }

    /// Notes the changed relationships of an object whose changes are about to be discarded.
    ///
    /// An object at another end that is not registered has no changes, so it is left out.
    ///
    /// - Complexity: O(number of relationships, and of members that were added or removed), amortised.
    mutating func note(_ object: NSManagedObject, in context: NSManagedObjectContext) {
        for slot in object.layout.referenceSlots {
            let (before, now) = (object.baseRow?.reference(slot), object.current?.reference(slot))
            guard before != now, let relationship = slot.relationship else { continue }
            add(relationship, of: object, [before, now].compactMap { $0 }, context)
        }
        if let extras = object.extras {
            for slot in object.layout.toMany where !slot.isTransient {
                guard let state = extras.toMany[slot.index], state.hasChanges else { continue }
                add(slot.relationship, of: object, Array(state.added) + Array(state.removed), context)
            }
        }
        if sides.count > limit { compact() }
    }

    private mutating func add(
        _ relationship: Relationship,
        of object: NSManagedObject,
        _ references: [ObjectReference],
        _ context: NSManagedObjectContext
    ) {
        guard relationship.inverse != nil else { return }
        let others = references.compactMap { context.registered($0, near: object) }
        guard !others.isEmpty else { return }
        let wasInserted = object.flags.contains(.inserted)
        append(Side(object: object, relationship: relationship, others: others, wasInserted: wasInserted))
    }

    private mutating func append(_ side: Side) {
        let name = Name(object: ObjectIdentifier(side.object), relationship: ObjectIdentifier(side.relationship))
        guard let position = positions[name] else {
            positions[name] = sides.count
            return sides.append(side)
        }
        var known = Set(sides[position].others.map(ObjectIdentifier.init))
        sides[position].others += side.others.filter { known.insert(ObjectIdentifier($0)).inserted }
    }

    /// Drops the sides that agree with the other sides, because no object at another end has changes any more.
    private mutating func compact() {
        let all = sides
        (sides, positions) = ([], [:])
        for side in all where side.others.contains(where: \.hasChanges) { append(side) }
        limit = max(64, 2 * sides.count)
    }

    /// Forgets everything, because the context has no changes any more.
    mutating func forget() {
        if !sides.isEmpty { self = DiscardedSides() }
    }

    /// Makes the noted sides agree with the other sides.
    fileprivate func settle(in context: NSManagedObjectContext) {
        // All is decided before the first change, which would count as an unsaved change of the refreshed object.
        var (released, unrelated, related): ([RelatedPair], [RelatedPair], [RelatedPair]) = ([], [], [])
        for side in sides where side.object.context === context {
            guard let inverse = side.relationship.inverse else { continue }
            let isInNoStore = side.wasInserted && !side.object.flags.contains(.inserted)
            for other in side.others where other.context === context {
                let pair = RelatedPair(side.object, side.relationship, other, inverse)
                if isInNoStore {
                    released.append(pair)
                } else if let areRelated = pair.areRelated {
                    if areRelated { related.append(pair) } else { unrelated.append(pair) }
                }
            }
        }
        for pair in released { pair.releaseSecond() }
        for pair in unrelated { pair.agree(false) }
        for pair in related { pair.agree(true) }
    }
}

extension NSManagedObjectContext {
    /// Makes both sides of relationships agree of which a refresh has discarded one side; an event has ended before.
    ///
    /// This is not registered for undo, since the program has not made these changes.
    ///
    /// - Complexity: O(number of noted objects). It may read refreshed objects, and relationships that are ordered.
    final func settleDiscardedSides() {
        let sides = discardedSides
        discardedSides.forget()
        undoManager?.disableUndoRegistration()
        sides.settle(in: self)
        undoManager?.enableUndoRegistration()
        endEvent(isMerge: false)
    }
}
