import Foundation
import StrataLocks
import StrataRows

/// The rows and memberships of an in-memory store.
///
/// This is a value, so a reader keeps the contents that it began with, and a failed save discards its copy. The cost of
/// a copy does not grow with the number of rows.
package struct InMemoryContents: Sendable {
    /// Rows by the number of the root entity and by key.
    package private(set) var rows: [Int: PersistentMap<Row>] = [:]
    private var lastKeys: [Int: Int64] = [:]
    /// For each to-one relationship that has an inverse: the keys of the rows that point at a key.
    package private(set) var pointing: [RelationshipKey: PersistentMap<PersistentMap<Void>>] = [:]
    /// For each relationship whose members are not given by a column of a row (many-to-many, or without an inverse):
    /// the members by owner, each with the number of its entity.
    private var memberships: [RelationshipKey: PersistentMap<PersistentMap<Int>>] = [:]
    /// For each to-many relationship without an inverse: the owner by member.
    ///
    /// A member has one owner at most, as in a table whose rows hold the owner's key.
    private var owners: [RelationshipKey: PersistentMap<Int64>] = [:]
    /// For each ordered relationship: the keys of the members by owner, in order.
    package var orders: [RelationshipKey: PersistentMap<[Int64]>] = [:]
    /// The rows that hold each value of the constrained attributes.
    package private(set) var uniques: UniqueIndexes
    /// The derived attributes; `nil` if the model has none.
    package let derived: DerivedPlan?
    /// The rows whose derived attributes ``updateDerived(_:versions:)`` has not examined yet.
    package var outdated = OutdatedRows()

    /// A relationship by the number of the entity that declares it, and its name.
    package struct RelationshipKey: Hashable {
        package let entity: Int
        package let name: String
        /// The number of the root entity of the members.
        package let destinationRoot: Int
        /// The number of the root entity of the owners.
        package let ownerRoot: Int

        package init(_ relationship: Relationship) {
            ownerRoot = relationship.entity.rootNumber
            destinationRoot = relationship.destination?.rootNumber ?? 0
            entity = relationship.entity.number
            name = relationship.name
        }
    }

    /// The empty contents of a store with these entities.
    package init(_ schema: Schema?) {
        uniques = UniqueIndexes(schema)
        derived = DerivedPlan(schema)
    }

    package mutating func reserve(_ count: Int, _ root: Int) -> Range<Int64> {
        let first = lastKeys[root, default: 0] + 1
        lastKeys[root] = first + Int64(count) - 1
        return first..<(first + Int64(count))
    }

    /// The highest key that was assigned in a hierarchy; 0 if none was.
    package func lastKey(_ root: Int) -> Int64 { lastKeys[root, default: 0] }

    // MARK: - Relationships

    /// The members of a to-many relationship: by key, or in their order if it is ordered.
    package func members(of slot: ToManySlot, ownedBy owner: Int64) -> [ObjectReference] {
        let relationship = slot.relationship
        guard slot.isOrdered, let order = orders[RelationshipKey(relationship)]?[owner] else {
            return unorderedMembers(of: relationship, ownedBy: owner)
        }
        // The list of members comes from elsewhere; the order decides only their places.
        var places = Dictionary(order.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        let members = unorderedMembers(of: relationship, ownedBy: owner)
        for member in members where places[member.key] == nil { places[member.key] = places.count + order.count }
        return members.sorted { places[$0.key, default: 0] < places[$1.key, default: 0] }
    }

    /// How many members a to-many relationship has.
    package func memberCount(of relationship: Relationship, ownedBy owner: Int64) -> Int {
        if let inverse = relationship.inverse, !inverse.isToMany {
            return pointing[RelationshipKey(inverse)]?[owner]?.count ?? 0
        }
        return memberships[RelationshipKey(relationship)]?[owner]?.count ?? 0
    }

    /// The owner of a member of a relationship without an inverse.
    package func owner(of member: Int64, in relationship: RelationshipKey) -> Int64? { owners[relationship]?[member] }

    private func unorderedMembers(
        of relationship: Relationship,
        ownedBy owner: Int64
    ) -> [ObjectReference] {
        if let inverse = relationship.inverse, !inverse.isToMany {
            let root = relationship.destination?.rootNumber ?? 0
            guard let keys = pointing[RelationshipKey(inverse)]?[owner], let table = rows[root] else { return [] }
            return keys.sortedKeys.compactMap { key in
                table[key].map { ObjectReference(key: key, entity: $0.layout.number) }
            }
        }
        guard let members = memberships[RelationshipKey(relationship)]?[owner] else { return [] }
        return members.sortedKeys.compactMap { key in
            members[key].map { ObjectReference(key: key, entity: $0) }
        }
    }

    private mutating func setReferences(of row: Row, key: Int64, isThere: Bool, permanent: PermanentKeys) {
        for slot in row.layout.referenceSlots {
            guard let relationship = slot.relationship, let reference = row.reference(slot) else { continue }
            let name = RelationshipKey(relationship)
            guard relationship.inverse != nil || derived?.looseCopies.contains(name) == true else {
                continue
            }
            let target = reference.key < 0 ? permanent[reference.key] ?? reference.key : reference.key
            // The map is taken out while it is changed, so that it is not copied without need.
            var map = pointing.removeValue(forKey: name) ?? PersistentMap()
            var keys = map.remove(target) ?? PersistentMap()
            if isThere { keys.insert(key) } else { keys.remove(key) }
            if !keys.isEmpty { map.set(keys, for: target) }
            pointing[name] = map
        }
    }

    /// Enters a row.
    ///
    /// It replaces an earlier row with the same key.
    package mutating func put(_ row: Row, key: Int64, permanent: PermanentKeys) {
        enter(row, key: key, permanent: permanent)
        if derived != nil { outdated.add(key, root: row.layout.rootNumber, isWritten: true) }
    }

    /// Enters a row whose derived attributes do not change.
    package mutating func enter(_ row: Row, key: Int64, permanent: PermanentKeys) {
        let root = row.layout.rootNumber
        var table = rows.removeValue(forKey: root) ?? PersistentMap()
        let old = table[key]
        table.set(row, for: key)
        rows[root] = table
        if let old {
            setReferences(of: old, key: key, isThere: false, permanent: permanent)
            uniques.remove(old, key)
        }
        setReferences(of: row, key: key, isThere: true, permanent: permanent)
        uniques.insert(row, key)
        if derived != nil { outdateDependants(of: old, new: row, key: key, permanent: permanent) }
    }

    private mutating func apply(
        _ change: ToManyChange,
        to owner: Int64,
        resolved: (ObjectReference) -> ObjectReference
    ) {
        let relationship = change.relationship.relationship
        let inverse = relationship.inverse
        if inverse == nil || inverse?.isToMany == true {
            let ownerReference = ObjectReference(key: owner, entity: change.owner.entity)
            for member in change.removed.map(resolved) {
                link(relationship, of: owner, to: member, isThere: false)
                if let inverse { link(inverse, of: member.key, to: ownerReference, isThere: false) }
            }
            for member in change.added.map(resolved) {
                link(relationship, of: owner, to: member, isThere: true)
                if let inverse { link(inverse, of: member.key, to: ownerReference, isThere: true) }
            }
        }
        guard let order = change.order else { return }
        let name = RelationshipKey(relationship)
        var map = orders.removeValue(forKey: name) ?? PersistentMap()
        map.set(order.map { resolved($0).key }, for: owner)
        orders[name] = map
    }

    private mutating func link(
        _ relationship: Relationship,
        of owner: Int64,
        to member: ObjectReference,
        isThere: Bool
    ) {
        let name = RelationshipKey(relationship)
        // The context does not remove a deleted member from a relationship without an inverse, so it is left out here.
        if isThere, relationship.inverse == nil, rows[name.destinationRoot]?[member.key] == nil { return }
        var map = memberships.removeValue(forKey: name) ?? PersistentMap()
        var members = map.remove(owner) ?? PersistentMap()
        members[member.key] = isThere ? member.entity : nil
        if !members.isEmpty { map.set(members, for: owner) }
        memberships[name] = map
        if derived != nil { outdated.add(owner, root: name.ownerRoot) }
        if relationship.inverse == nil { setOwner(by: name, owner: owner, of: member.key, isThere: isThere) }
    }

    /// Notes the owner of a member of a relationship without an inverse.
    ///
    /// The last owner that took the member has it.
    private mutating func setOwner(by name: RelationshipKey, owner: Int64, of member: Int64, isThere: Bool) {
        var map = owners.removeValue(forKey: name) ?? PersistentMap()
        let known = map[member]
        if isThere {
            if let known, known != owner {
                memberships[name]?[known]?.remove(member)
                if derived != nil { outdated.add(known, root: name.ownerRoot) }
            }
            map.set(owner, for: member)
        } else if known == owner {
            map.remove(member)
        }
        owners[name] = map
    }

    /// Removes a row, and all entries about it.
    package mutating func removeRow(_ key: Int64, _ layout: EntityLayout) {
        guard let old = rows[layout.rootNumber]?[key] else { return }
        rows[layout.rootNumber]?.remove(key)
        setReferences(of: old, key: key, isThere: false, permanent: PermanentKeys())
        uniques.remove(old, key)
        if derived != nil { outdateDependants(of: old, new: nil, key: key, permanent: PermanentKeys()) }
        for name in owners.keys where name.destinationRoot == layout.rootNumber {
            guard let owner = owners[name]?.remove(key) else { continue }
            memberships[name]?[owner]?.remove(key)
            if derived != nil { outdated.add(owner, root: name.ownerRoot) }
        }
        for slot in old.layout.toMany {
            let relationship = slot.relationship
            let name = RelationshipKey(relationship)
            orders[name]?.remove(key)
            guard let members = memberships[name]?.remove(key) else { continue }
            guard let inverse = relationship.inverse else {
                members.forEach { member, _ in owners[name]?.remove(member) }
                continue
            }
            let owner = ObjectReference(key: key, entity: old.layout.number)
            members.forEach { member, _ in link(inverse, of: member, to: owner, isThere: false) }
        }
    }

    // MARK: - Saving

    /// The rows that another context has changed or deleted, including those that relationships lead to.
    package func findVersionConflicts(_ changes: StoreChanges) -> [StoreConflict] {
        var conflicts: [StoreConflict] = []
        func check(_ layout: EntityLayout, key: Int64, version: Int64) {
            let stored = rows[layout.rootNumber]?[key]
            guard stored?.version != version else { return }
            conflicts.append(.version(layout: layout, key: key, baseVersion: version, persisted: stored))
        }
        for update in changes.updated { check(update.row.layout, key: update.row.key, version: update.baseVersion) }
        for deletion in changes.deleted { check(deletion.layout, key: deletion.key, version: deletion.baseVersion) }
        for lock in changes.locked { check(lock.layout, key: lock.key, version: lock.baseVersion) }
        for row in changes.inserted where StoreChanges.isRevived(row) {
            guard let stored = rows[row.layout.rootNumber]?[row.key] else { continue }
            if FaultGuard.revivalCheck.isOff { continue }
            let version = row.version
            conflicts.append(.version(layout: row.layout, key: row.key, baseVersion: version, persisted: stored))
        }
        for (root, targets) in changes.foreignTargets() {
            for target in targets where rows[root]?[target.key] == nil {
                conflicts.append(.missing(target, root: root))
            }
        }
        return conflicts
    }

    /// Makes all changes, with the same rows that were handed over.
    ///
    /// Their keys, versions and references are still those of the context. ``StoreChanges/settle(_:)`` sets them once
    /// the save is accepted.
    ///
    /// - Parameters:
    ///   - changes: The changes.
    ///   - derives: Whether derived attributes are computed; otherwise they are taken as they are.
    /// - Returns: The result of the save.
    package mutating func apply(_ changes: StoreChanges, derives: Bool = true) -> StoreSaveResult {
        var result = StoreSaveResult()
        var permanent = PermanentKeys()
        for (root, key) in changes.keptKeys ?? [:] { lastKeys[root] = max(lastKeys[root, default: 0], key) }
        for row in changes.inserted {
            let key = row.key > 0 ? row.key : reserve(1, row.layout.rootNumber).lowerBound
            if row.key < 0 { permanent.set(key, for: row.key) }
            result.insertedKeys.append(key)
        }
        for deletion in changes.deleted { removeRow(deletion.key, deletion.layout) }
        for update in changes.updated { put(update.row, key: update.row.key, permanent: permanent) }
        for (row, key) in zip(changes.inserted, result.insertedKeys) { put(row, key: key, permanent: permanent) }
        func resolved(_ reference: ObjectReference) -> ObjectReference {
            ObjectReference(key: permanent[reference.key] ?? reference.key, entity: reference.entity)
        }
        for change in changes.toMany { apply(change, to: resolved(change.owner).key, resolved: resolved) }
        for deletion in changes.deleted {
            result.replaceReread(releaseLateReferences(of: deletion, in: changes, result: result, permanent: permanent))
        }
        if derived != nil, derives {
            let isCopy = changes.keptKeys != nil
            result.replaceReread(updateDerived(permanent, versions: changes.versions(result), keepsTimes: isCopy))
        }
        outdated = OutdatedRows()
        return result
    }

    /// Clears the to-one relationships of rows that another context has meanwhile related to a deleted row.
    ///
    /// The context that deletes the row has not seen these rows, and an addition to an unordered relationship is no
    /// conflict.
    ///
    /// - Returns: The rows as they are now.
    private mutating func releaseLateReferences(
        of deletion: ExpectedRow,
        in changes: StoreChanges,
        result: StoreSaveResult,
        permanent: PermanentKeys
    ) -> [Row] {
        var released: [Row] = []
        var versions: [Int: [Int64: Int64]]?
        for backlink in deletion.layout.backlinks {
            let root = backlink.entity.rootNumber
            guard let keys = pointing[RelationshipKey(backlink)]?[deletion.key]?.sortedKeys, !keys.isEmpty else {
                continue
            }
            // If the save itself relates a row to a row that it deletes, then that row is left as it is.
            let own = changes.keys(relating: backlink.name, of: root, result.insertedKeys)
            for key in keys where !own.contains(key) {
                guard let old = rows[root]?[key], let slot = old.layout.slot(named: backlink.name) else { continue }
                let row = old.copy()
                row.setReference(nil, slot)
                // If the save writes the row as well, then the row gets the version of the save, which covers both
                // changes.
                let known = versions ?? changes.versions(result)
                versions = known
                row.setStored(key: key, version: known[root]?[key] ?? old.version + 1, permanent: permanent)
                put(row, key: key, permanent: permanent)
                released.append(row)
            }
        }
        return released
    }

    /// The uniqueness constraints that the saved rows break, after the changes were applied.
    package func findConstraintConflicts(_ changes: StoreChanges, _ insertedKeys: [Int64]) -> [StoreConflict] {
        // By hierarchy: the keys of the saved rows, and the keys that they had when they were handed over.
        var handedOver: [Int: [Int64: Int64]] = [:]
        for (row, key) in zip(changes.inserted, insertedKeys) where uniques.cover(row.layout) {
            handedOver[row.layout.rootNumber, default: [:]][key] = row.key
        }
        for row in changes.updated.map(\.row) where uniques.cover(row.layout) {
            handedOver[row.layout.rootNumber, default: [:]][row.key] = row.key
        }
        return handedOver.flatMap { root, keys in uniques.conflicts(in: rows[root] ?? PersistentMap(), keys) }
    }
}
