/// The members of a to-many relationship, for many owners at once.
package struct Memberships {
    /// An owner's key and its members, in their order if the relationship is ordered.
    ///
    /// Owners without members may be missing.
    package var groups: [(owner: Int64, members: [ObjectReference])] = []
    /// The members' rows, each once, if the store gets them with the same query.
    package var rows: [Row] = []

    @inlinable
    package init(groups: [(owner: Int64, members: [ObjectReference])] = [], rows: [Row] = []) {
        self.groups = groups
        self.rows = rows
    }

    /// Adds a member to the last owner.
    ///
    /// If that is not `owner`, adds `owner` first.
    package mutating func append(_ member: ObjectReference, to owner: Int64) {
        if let last = groups.indices.last, groups[last].owner == owner {
            groups[last].members.append(member)
        } else {
            groups.append((owner, [member]))
        }
    }
}

extension RowSource {
    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?)
        throws
        -> Memberships
    {
        var result = Memberships()
        var keys: Set<Int64> = []
        for owner in owners {
            let members = try members(of: relationship, ownedBy: owner)
            result.groups.append((owner.key, members))
            keys.formUnion(members.lazy.map(\.key))
        }
        guard !keys.isEmpty, let layout = relationship.relationship.destination else { return result }
        result.rows = try rows(forKeys: Array(keys), in: layout, control: control)
        return result
    }
}
