import StrataRows

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
        let layout = model.layouts[owner.entity - 1]
        try willRead(StoreRead(.members, layout, relationship: slot.name, key: owner.key))
        // The read enters the context's scope, so that a custom store knows which context asks.
        return try measuredRead(of: slot, rows: { $0.count }) {
            try store.reading { try $0.members(of: slot, ownedBy: owner) }
        }
    }
}
