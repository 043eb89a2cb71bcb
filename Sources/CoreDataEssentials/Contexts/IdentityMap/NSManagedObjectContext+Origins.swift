import StrataRows

/// A relationship by which a program has come to objects.
package struct OriginOfObjects {
    /// The name of the relationship.
    package let relationship: String
    /// The entity of the objects that have the relationship.
    package let entity: String
    /// The number of the root of that entity's hierarchy.
    package let root: Int
    /// The keys of these objects.
    package let owners: Set<Int64>
}

extension NSManagedObjectContext {
    /// The relationship whose loaded values lead to the most of some objects; `nil` if none leads to any.
    ///
    /// It reads nothing, and fires no fault.
    ///
    /// - Parameters:
    ///   - keys: The keys of the objects.
    ///   - root: The number of the root of their hierarchy.
    ///   - later: Objects to which these lead, and the root of their hierarchy; what leads back from them does not count.
    /// - Returns: The relationship, and the objects that have it. If several lead to equally many, then a to-one
    ///   relationship comes first, and then the first by name.
    /// - Complexity: O(number of registered objects and of their loaded relationships).
    package final func origin(
        ofObjects keys: Set<Int64>,
        root: Int,
        before later: (keys: Set<Int64>, root: Int)? = nil
    ) -> OriginOfObjects? {
        struct Votes {
            let slot: (name: String, isToMany: Bool)
            let entity: EntityLayout
            var reached: Set<Int64> = []
            var owners: Set<Int64> = []
        }
        var votes: [String: Votes] = [:]
        func vote(_ name: String, isToMany: Bool, of owner: NSManagedObject, for key: Int64) {
            votes["\(owner.layout.rootNumber) \(name)", default: Votes(slot: (name, isToMany), entity: owner.layout)]
                .reached.insert(key)
            votes["\(owner.layout.rootNumber) \(name)"]?.owners.insert(owner.key)
        }
        let layouts = model.layouts
        forEachRegistered { object in
            if let later, object.layout.rootNumber == later.root, later.keys.contains(object.key) { return }
            if let row = object.current {
                for slot in row.layout.referenceSlots
                where slot.destinationNumber > 0 && layouts[slot.destinationNumber - 1].rootNumber == root {
                    guard let key = row.reference(slot)?.key, keys.contains(key) else { continue }
                    vote(slot.name, isToMany: false, of: object, for: key)
                }
            }
            guard let extras = object.extras else { return }
            for slot in object.layout.toMany {
                for member in extras.toMany[slot.index]?.content ?? []
                where keys.contains(member.key) && layouts[member.entity - 1].rootNumber == root {
                    vote(slot.name, isToMany: true, of: object, for: member.key)
                }
            }
        }
        let best = votes.values.max { first, second in
            if first.reached.count != second.reached.count { return first.reached.count < second.reached.count }
            if first.slot.isToMany != second.slot.isToMany { return first.slot.isToMany }
            return (first.entity.name, first.slot.name) > (second.entity.name, second.slot.name)
        }
        guard let best else { return nil }
        return OriginOfObjects(
            relationship: best.slot.name,
            entity: best.entity.name,
            root: best.entity.rootNumber,
            owners: best.owners
        )
    }

    /// Whether the context is saving or ending an event, and so reads for itself.
    package final var readsForItself: Bool { saving.isSaving || changeTracker.isEndingEvent }
}
