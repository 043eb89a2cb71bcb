import StrataRows

/// The owners of ordered relationships whose members change in a batch.
///
/// Each order is written once, after all members have left and joined. If it were written for each member, the time
/// would grow with the square of their number.
struct ReorderedOwners {
    private struct Change {
        var left: Set<Int64> = []
        var joined: Set<Int64> = []
    }

    private struct Owners {
        let relationship: Relationship
        /// The changes by the key of the owner.
        var changes: [Int64: Change] = [:]
    }

    private var relationships: [InMemoryContents.RelationshipKey: Owners] = [:]

    /// Notes that a member has left an owner's relationship.
    mutating func remove(_ member: Int64, from owner: Int64, by relationship: Relationship) {
        change(owner, by: relationship) {
            $0.left.insert(member)
            $0.joined.remove(member)
        }
    }

    /// Notes that an owner's relationship has a new member.
    mutating func append(_ member: Int64, to owner: Int64, by relationship: Relationship) {
        change(owner, by: relationship) { $0.joined.insert(member) }
    }

    private mutating func change(
        _ owner: Int64,
        by relationship: Relationship,
        _ body: (inout Change) -> Void
    ) {
        guard relationship.isOrdered else { return }
        body(
            &relationships[
                InMemoryContents.RelationshipKey(relationship),
                default: Owners(relationship: relationship)
            ].changes[owner, default: Change()]
        )
    }

    /// Removes the members that have left from the orders, and puts the new ones at the end, sorted by key.
    ///
    /// A new member goes to the end even if it had a place in the order before.
    func write(to contents: inout InMemoryContents) {
        for (name, owners) in relationships {
            for (owner, change) in owners.changes {
                if let order = contents.orders[name]?[owner], !change.left.isEmpty {
                    contents.orders[name]?.set(order.filter { !change.left.contains($0) }, for: owner)
                }
                guard !change.joined.isEmpty, let layout = contents.rows[name.ownerRoot]?[owner]?.layout,
                    let slot = layout.toMany(named: owners.relationship.name)
                else { continue }
                let members = contents.members(of: slot, ownedBy: owner).map(\.key)
                // Members that are not new may lack a place too, because they came back when their rows were restored.
                let order = members.filter { !change.joined.contains($0) } + members.filter(change.joined.contains)
                contents.orders[name, default: PersistentMap()].set(order, for: owner)
            }
        }
    }
}
