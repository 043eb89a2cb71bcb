import Foundation
import StrataRows
import StrataSQL

/// Rows that a save changes besides those of its request: owners of changed to-many relationships, and rows whose
/// relationship to a deleted row is cleared.
struct TouchedRows {
    private struct Touched {
        let key: Int64
        let entity: EntityMapping
        /// The changed properties; `nil` once they were taken.
        var mask: HistoryMask?
    }

    /// The rows of one hierarchy.
    private struct Hierarchy {
        let root: Int
        var rows: [Touched] = []
        /// Their positions by key.
        var positions = KeyMap<Int>()
    }

    /// There are usually few, so a linear search is faster than hashing.
    private var hierarchies: [Hierarchy] = []

    mutating func touch(_ key: Int64, of entity: EntityMapping, mask: HistoryMask) {
        let index: Int
        if let known = hierarchies.firstIndex(where: { $0.root == entity.rootNumber }) {
            index = known
        } else {
            index = hierarchies.count
            hierarchies.append(Hierarchy(root: entity.rootNumber))
        }
        if let position = hierarchies[index].positions[key] {
            hierarchies[index].rows[position].mask?.formUnion(mask)
        } else {
            hierarchies[index].positions.set(hierarchies[index].rows.count, for: key)
            hierarchies[index].rows.append(Touched(key: key, entity: entity, mask: mask))
        }
    }

    /// Whether rows of an entity's hierarchy were touched.
    func concerns(_ entity: EntityMapping) -> Bool { hierarchies.contains { $0.root == entity.rootNumber } }

    /// Removes and returns the changed properties of a row, because the row is recorded now or was already.
    mutating func removeMask(of key: Int64, in entity: EntityMapping) -> HistoryMask? {
        guard let index = hierarchies.firstIndex(where: { $0.root == entity.rootNumber }),
            let position = hierarchies[index].positions[key]
        else { return nil }
        defer { hierarchies[index].rows[position].mask = nil }
        return hierarchies[index].rows[position].mask
    }

    /// Records the remaining rows in the order of their keys.
    func record(in history: HistoryRecorder) {
        for hierarchy in hierarchies.sorted(by: { $0.root < $1.root }) {
            for row in hierarchy.rows.sorted(by: { $0.key < $1.key }) {
                if let mask = row.mask { history.updated(CollectionOfOne(row.key), of: row.entity, mask: mask) }
            }
        }
    }
}

extension SaveTransaction {
    /// Records inserted and changed rows when everything is written; deletions are recorded when they are made.
    func recordHistory() throws {
        guard let history else { return }
        var touched = try collectTouched(history)
        for run in runs(Array(changes.inserted.indices), { changes.inserted[$0].layout }) {
            let entity = try entity(changes.inserted[run[0]].layout)
            let keys = run.map { result.insertedKeys[$0] }
            history.inserted(keys, of: entity)
            if touched.concerns(entity) { for key in keys { _ = touched.removeMask(of: key, in: entity) } }
        }
        for run in updateRuns() {
            let entity = try entity(run.updates[0].row.layout)
            let mask = history.places(entity).mask(run.key.changed)
            for update in run.updates {
                var mask = mask
                if let more = touched.removeMask(of: update.row.key, in: entity) { mask.formUnion(more) }
                history.updated(CollectionOfOne(update.row.key), of: entity, mask: mask)
            }
        }
        touched.record(in: history)
        try history.finish(connection)
    }

    private func collectTouched(_ history: HistoryRecorder) throws -> TouchedRows {
        var touched = TouchedRows()
        let missing = try missingOwners()
        // The owners of one entity usually have changes in the same relationships.
        var last: (entity: EntityMapping, relationships: [Int], mask: HistoryMask)?
        for owner in changes.touched {
            guard let key = storedKey(owner.owner.key), let entity = mapping.entity(modelNumber: owner.owner.entity),
                owner.owner.key < 0 || missing[entity.layout.rootNumber]?.contains(key) != true
            else { continue }
            if let last, last.entity === entity, last.relationships == owner.relationships {
                touched.touch(key, of: entity, mask: last.mask)
            } else {
                let mask = history.places(entity).mask(toMany: owner.relationships)
                last = (entity, owner.relationships, mask)
                touched.touch(key, of: entity, mask: mask)
            }
        }
        // The row may belong to a sub-entity; the rows that are read again show that.
        var relationships: [Int: [Int64: [String]]] = [:]
        for row in released {
            relationships[row.entity.layout.rootNumber, default: [:]][row.key, default: []].append(row.relationship)
        }
        for row in result.reread {
            let names = relationships[row.layout.rootNumber]?[row.key] ?? []
            guard !names.isEmpty || row.layout.hasDerivedSlots else { continue }
            let entity = try entity(row.layout)
            var mask = history.places(entity).derivedMask
            mask.formUnion(history.places(entity).mask(names: names))
            touched.touch(row.key, of: entity, mask: mask)
        }
        return touched
    }

    // MARK: - Before anything is written

    /// Asks for rows that are to be deleted, if the model keeps values of them.
    func askForKept() throws {
        guard history != nil else { return }
        for run in runs(changes.deleted, \.layout) {
            let entity = try entity(run[0].layout)
            guard HistoryRecorder.keepsValues(of: entity, mapping) else { continue }
            kept[entity.layout.number] = try database.queries.askForRows(run.map(\.key), of: entity, on: connection)
        }
    }

    /// Records that rows of one entity are deleted.
    func recordDeletions(_ keys: [Int64], _ entity: EntityMapping) throws {
        guard let history else { return }
        guard let kept = kept[entity.layout.number] else { return history.deleted(keys, of: entity) }
        for row in try database.queries.rows(try connection.answer(kept), entity) { history.deleted(row) }
    }

    /// Asks which owners of changed to-many relationships exist, except for those that the save locks.
    func askForTouched() throws {
        guard history != nil else { return }
        // The rows that are locked.
        var locked: [Int: KeyMap<Bool>] = targets.mapValues { references in
            var keys = KeyMap<Bool>(minimumCapacity: references.count)
            for reference in references { keys.set(true, for: reference.key) }
            return keys
        }
        for update in changes.updated {
            locked[update.row.layout.rootNumber, default: KeyMap()].set(true, for: update.row.key)
        }
        var owners: [Int: Set<Int64>] = [:]
        for owner in changes.touched where owner.owner.key > 0 {
            guard let root = mapping.entity(modelNumber: owner.owner.entity)?.layout.rootNumber,
                locked[root]?[owner.owner.key] == nil
            else { continue }
            owners[root, default: []].insert(owner.owner.key)
        }
        for (root, keys) in owners where !keys.isEmpty {
            guard let entity = mapping.entity(modelNumber: root) else { continue }
            touched[root] = (keys, try database.queries.askForKeys(keys.sorted(), of: entity, on: connection))
        }
    }

    /// The owners that do not exist, or do not exist any more.
    ///
    /// Removing members from an owner that another context has deleted is no conflict, and no change of the owner
    /// either.
    private func missingOwners() throws -> [Int: Set<Int64>] {
        var missing = try touched.mapValues { keys, asked in
            keys.subtracting(try connection.answer(asked).rows.map { $0.int64(0) })
        }
        for deletion in changes.deleted { missing[deletion.layout.rootNumber, default: []].insert(deletion.key) }
        return missing
    }
}
