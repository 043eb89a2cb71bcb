extension StoreChanges {
    /// The destinations of changed relationships that this save does not write itself, by the number of their root.
    ///
    /// Only the store knows whether they are still there, inside the transaction of the save. Rows that the save
    /// changes, deletes or locks are left out: their versions are checked anyway.
    ///
    /// - Complexity: O(number of changes); nothing is hashed for changes without relationships.
    package func foreignTargets() -> [(root: Int, targets: [ObjectReference])] {
        var targets = ForeignTargets()
        for row in inserted { targets.note(row, changed: nil) }
        for update in updated { targets.note(update.row, changed: update.changed) }
        for change in toMany where !change.added.isEmpty { targets.note(change) }
        guard !targets.isEmpty else { return [] }
        for row in inserted where row.key > 0 { targets.leaveOut(row.key, row.layout) }
        for update in updated { targets.leaveOut(update.row.key, update.row.layout) }
        for deletion in deleted { targets.leaveOut(deletion.key, deletion.layout) }
        for lock in locked { targets.leaveOut(lock.key, lock.layout) }
        return targets.list
    }

    /// The keys of the rows of one hierarchy whose to-one relationship of that name is set by the save itself.
    ///
    /// If a row is written for another reason, another save may have set the relationship.
    package func keys(relating relationship: String, of root: Int, _ insertedKeys: [Int64]) -> Set<Int64> {
        var keys: Set<Int64> = []
        for update in updated where update.row.layout.rootNumber == root {
            guard let slot = update.row.layout.slot(named: relationship), update.changed.contains(slot.index) else {
                continue
            }
            keys.insert(update.row.key)
        }
        for (row, key) in zip(inserted, insertedKeys) where row.layout.rootNumber == root { keys.insert(key) }
        return keys
    }
}

/// The destinations of relationships, each once.
private struct ForeignTargets {
    /// A to-one relationship's place in a row, and the root entity of its destination.
    private struct Place {
        let slot: Int
        let word: Int
        /// The hierarchy's place in `hierarchies`.
        let hierarchy: Int
    }

    /// The targets of one hierarchy, by the number of its root entity.
    private struct Hierarchy {
        let root: Int
        /// The number of the entity by key; 0 for a key that is left out.
        var entities = KeyMap<Int>()
    }

    /// The hierarchies.
    ///
    /// There are mostly few, so that a linear search finds one faster than hashing.
    private var hierarchies: [Hierarchy] = []
    private var places: [Place] = []
    private var placesLayout: EntityLayout?
    /// The last noted target: rows mostly come in runs with one target.
    private var last: (hierarchy: Int, key: Int64) = (0, 0)

    var isEmpty: Bool { hierarchies.allSatisfy { $0.entities.count == 0 } }

    var list: [(root: Int, targets: [ObjectReference])] {
        hierarchies.compactMap { hierarchy in
            var targets: [ObjectReference] = []
            targets.reserveCapacity(hierarchy.entities.count)
            hierarchy.entities.forEach { key, entity in
                if entity > 0 { targets.append(ObjectReference(key: key, entity: entity)) }
            }
            return targets.isEmpty ? nil : (hierarchy.root, targets)
        }
    }

    /// Notes the targets of the changed to-one relationships of a row.
    ///
    /// - Parameters:
    ///   - row: The row.
    ///   - changed: The changed slots; `nil` for all.
    mutating func note(_ row: Row, changed: SlotSet?) {
        if placesLayout !== row.layout { findPlaces(of: row.layout) }
        guard !places.isEmpty else { return }
        let values = row.unsafe
        for place in places where !values.isNull(place.slot) && changed?.contains(place.slot) != false {
            let key = Int64(bitPattern: values.words[place.word])
            note(key, entity: Int(truncatingIfNeeded: values.words[place.word + 1]), place.hierarchy)
        }
    }

    /// Notes the new members of a relationship that no row holds, and the owner, of which nothing else may be written.
    mutating func note(_ change: ToManyChange) {
        let relationship = change.relationship.relationship
        note(change.owner.key, entity: change.owner.entity, hierarchy(relationship.entity.rootNumber))
        guard let root = relationship.destination?.rootNumber else { return }
        let hierarchy = hierarchy(root)
        for member in change.added { note(member.key, entity: member.entity, hierarchy) }
    }

    mutating func leaveOut(_ key: Int64, _ layout: EntityLayout) {
        guard let index = hierarchies.firstIndex(where: { $0.root == layout.rootNumber }),
            hierarchies[index].entities[key] != nil
        else { return }
        hierarchies[index].entities.set(0, for: key)
    }

    @inline(__always)
    private mutating func note(_ key: Int64, entity: Int, _ hierarchy: Int) {
        guard key > 0, last != (hierarchy, key) else { return }
        last = (hierarchy, key)
        hierarchies[hierarchy].entities.set(entity, for: key)
    }

    private mutating func hierarchy(_ root: Int) -> Int {
        if let known = hierarchies.firstIndex(where: { $0.root == root }) { return known }
        hierarchies.append(Hierarchy(root: root))
        return hierarchies.count - 1
    }

    private mutating func findPlaces(of layout: EntityLayout) {
        placesLayout = layout
        places = layout.referenceSlots.compactMap { slot in
            guard let destination = slot.relationship?.destination else { return nil }
            return Place(slot: slot.index, word: slot.word, hierarchy: hierarchy(destination.rootNumber))
        }
    }
}

extension EntityLayout {
    /// The to-one relationships of other objects that may lead to this entity, and that a delete rule takes care of.
    package var backlinks: [Relationship] {
        relationships.values.compactMap { relationship in
            guard let inverse = relationship.inverse, !inverse.isToMany, !inverse.isTransient,
                relationship.deleteRule != .noAction
            else { return nil }
            return inverse
        }
    }
}
