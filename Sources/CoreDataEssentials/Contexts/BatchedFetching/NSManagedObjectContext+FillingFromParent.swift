import Foundation
import StrataRows

// How a child fills many faults. Only the context at the top of the tree asks stores. With one query it reads the
// rows that the child is going to ask for. Then the child asks its parent as it does for a single fault. So changes
// of the contexts in between count, and none of these contexts gets an object for this.

/// The members of a to-many relationship that the root of a tree has just read for children.
struct ForeseenMembers {
    let relationship: Relationship
    let store: OpenStore
    let members: [Int64: [ObjectReference]]
}

extension NSManagedObjectContext {
    /// Runs `body` inside the scopes of all contexts above.
    final func holdingChain<T>(_ body: () throws -> T) rethrows -> T {
        guard let upward else { return try body() }
        return try visitParent(upward) { try $0.holdingChain(body) }
    }

    /// Gives faults the rows that the parent has for them.
    ///
    /// - Returns: The rows of objects that are not faults, if these are to be read too.
    final func fillFromParent(
        _ faults: [NSManagedObject],
        of layout: EntityLayout,
        in store: OpenStore,
        _ upward: ParentLink,
        rereads: Bool
    ) throws -> [Row] {
        let wanted = faults.filter { object in
            guard !object.flags.contains(.gone), isStored(object) else { return false }
            return object.flags.contains(.fault) ? rereads || object.current == nil : rereads
        }
        guard !wanted.isEmpty else { return [] }
        return try holdingChain {
            let read = try upward.root.readAhead(wanted.map(\.key), of: layout, in: store)
            recordPrefetch(through: upward, count: wanted.count)
            var others: [Row] = []
            for object in wanted {
                guard let row = try parentRow(of: object) else { continue }
                if object.flags.contains(.fault) { object.current = row } else { others.append(row) }
            }
            // Until here, the row cache may be the only other holder of these rows.
            withExtendedLifetime(read) {}
            return others
        }
    }

    /// Makes the row cache keep the rows of some keys, for as long as the caller holds the result.
    private func readAhead(_ keys: [Int64], of layout: EntityLayout, in store: OpenStore) throws -> [Row] {
        var rows: [Row] = []
        var cold: [Int64] = []
        for key in keys where key > 0 {
            if let row = try freshRow(key, root: layout.rootNumber, store) {
                rows.append(row)
            } else {
                cold.append(key)
            }
        }
        guard !cold.isEmpty else { return rows }
        return rows + (try storedRows(forKeys: cold, in: layout, store))
    }

    /// Reads the members that the parent has for a to-many relationship, owner by owner, and the rows of the members.
    ///
    /// - Parameters:
    ///   - slot: The relationship.
    ///   - owners: The objects that have it.
    ///   - memberRoot: The root of the members' hierarchy.
    ///   - store: The store of all of them.
    ///   - upward: The link to the parent.
    ///   - body: Receives an owner's members, inside the scopes of all contexts above.
    /// - Throws: Errors of the store, and errors of `body`.
    final func foreseeMembers(
        of slot: ToManySlot,
        ownedBy owners: [NSManagedObject],
        memberRoot: Int,
        in store: OpenStore,
        through upward: ParentLink,
        body: (NSManagedObject, [ObjectReference]) throws -> Void
    ) throws {
        try holdingChain {
            let stored = owners.lazy.filter { $0.key > 0 }.map(\.reference)
            let found = try upward.root.storedMemberships(
                of: slot,
                ownedBy: Array(stored),
                memberRoot: memberRoot,
                store
            )
            var members: [Int64: [ObjectReference]] = [:]
            for owner in stored { members[owner.key] = [] }
            for group in found.groups { members[group.owner] = group.members }
            upward.root.rowsInAdvance.foreseen = ForeseenMembers(
                relationship: slot.relationship,
                store: store.base,
                members: members
            )
            defer { upward.root.rowsInAdvance.foreseen = nil }
            for owner in owners { try body(owner, parentMembers(of: slot, ownedBy: owner)) }
            withExtendedLifetime(found) {}
        }
    }

    /// The stored members of a to-many relationship of one owner.
    final func members(
        of slot: ToManySlot,
        ownedBy owner: ObjectReference,
        in store: OpenStore
    ) throws -> [ObjectReference] {
        let store = try seen(store)
        if let foreseen = rowsInAdvance.foreseen, foreseen.relationship === slot.relationship,
            foreseen.store === store.base,
            let members = foreseen.members[owner.key]
        {
            return members
        }
        // The read enters the context's scope, so that a custom store knows which context asks.
        return try measuredRead(of: slot, rows: \.count) {
            try store.reading { try $0.members(of: slot, ownedBy: owner) }
        }
    }
}
