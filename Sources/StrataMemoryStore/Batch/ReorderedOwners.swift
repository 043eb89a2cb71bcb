import StrataRows

/// The owners of ordered relationships whose members change in a batch.
///
/// Each order is written once, when all have left and joined: to write it for each member would take time that grows with the
/// square of their number.
struct ReorderedOwners {
    private struct Change {
        var left: Set<Int64> = []
        var joined: Set<Int64> = []
    }

    private struct Owners {
        let relationship: Relationship
        /// By the owner's key.
        var changes: [Int64: Change] = [:]
    }

    private var relationships: [InMemoryContents.RelationshipKey: Owners] = [:]

    /// Notes that a member has left an owner's relationship.
    mutating func leave(_ member: Int64, _ owner: Int64, _ relationship: Relationship) {
        change(owner, relationship) {
            $0.left.insert(member)
            $0.joined.remove(member)
        }
    }

    /// Notes that an owner's relationship has a new member.
    mutating func join(_ member: Int64, _ owner: Int64, _ relationship: Relationship) {
        change(owner, relationship) { $0.joined.insert(member) }
    }

    private mutating func change(
        _ owner: Int64,
        _ relationship: Relationship,
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

    /// Takes those who have left out of the orders, and puts those who are new at the end by key, also if they had a place
    /// there before.
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
                // Those that were there may have no place either, as they came back with their rows.
                let order = members.filter { !change.joined.contains($0) } + members.filter(change.joined.contains)
                contents.orders[name, default: PersistentMap()].set(order, for: owner)
            }
        }
    }
}
