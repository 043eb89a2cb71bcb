import StrataRows

/// The columns that keep the order of the members of an ordered to-many relationship.
package struct MemberPositions: Hashable, Sendable {
    package let table: SQLName
    /// The column with the key of the owner.
    package let owner: SQLName
    /// The column with the key of the member.
    package let member: SQLName
    package let order: SQLName

    package init(table: SQLName, owner: SQLName, member: SQLName, order: SQLName) {
        self.table = table
        self.owner = owner
        self.member = member
        self.order = order
    }

    /// The columns of a relationship; `nil` if its members have no order, or if it is not stored.
    package init?(_ mapping: ToManyMapping, _ naming: SQLNaming) {
        let positions: MemberPositions? =
            switch mapping {
            case .key(let key): key.positions(naming)
            case .join(let side): side.positions
            case .absent: nil
            }
        guard let positions else { return nil }
        self = positions
    }
}

extension ToManyMapping.KeyColumn {
    /// The columns of the members' order; `nil` if they have none.
    package func positions(_ naming: SQLNaming) -> MemberPositions? {
        order.map { MemberPositions(table: table, owner: column, member: naming.key, order: $0) }
    }

    /// The assignment by which a row loses its position, after another assignment; empty without positions.
    package var clearedOrder: String { order.map { ", \($0) = NULL" } ?? "" }
}

extension ToManyMapping.JoinSide {
    /// The columns of the members' order; `nil` if they have none.
    package var positions: MemberPositions? {
        order.map { MemberPositions(table: table, owner: owner, member: member, order: $0) }
    }

    /// The columns of the owners' order among those of a member; `nil` if they have none.
    package var inversePositions: MemberPositions? {
        inverseOrder.map { MemberPositions(table: table, owner: member, member: owner, order: $0) }
    }
}

/// Owners in ordered relationships with members that may have no position yet, by their relationship.
package struct UnplacedOwners {
    /// The owners, with the number of members that they have got.
    private var counts: [MemberPositions: [Int64: Int]] = [:]

    package init() {}

    package var owners: [MemberPositions: [Int64]] { counts.mapValues { Array($0.keys) } }

    /// Adds an owner that has got a member; without positions there is nothing to do.
    package mutating func add(_ owner: Int64, _ positions: MemberPositions?) {
        if let positions { counts[positions, default: [:]][owner, default: 0] += 1 }
    }

    /// Notes that new members of an owner have positions; if these are all that it has got, then the owner is left out.
    package mutating func placed(_ count: Int, of owner: Int64, _ positions: MemberPositions) {
        if counts[positions]?[owner] == count { counts[positions]?[owner] = nil }
    }
}

extension OrderKeys {
    /// The positions that have to be written so that `wanted` are in their order.
    ///
    /// - Parameters:
    ///   - wanted: The members in the wanted order.
    ///   - current: The present members with their positions. Others are left out.
    /// - Returns: The members whose position changes, with the new one.
    package static func assign(_ wanted: [Int64], among current: [Int64: Int64?]) -> [(member: Int64, position: Int64)]
    {
        assign(wanted.filter { current[$0] != nil }) { current[$0] ?? nil }
    }
}

extension SQLMapping {
    /// The storage of a changed relationship, and the key of its owner; `nil` if it is not stored, or its owner is not.
    ///
    /// - Parameters:
    ///   - change: The change.
    ///   - storedKey: Returns the permanent key of an object; `nil` if it is not stored.
    /// - Returns: The storage and the key.
    package func place(_ change: ToManyChange, _ storedKey: (Int64) -> Int64?)
        -> (mapping: ToManyMapping, owner: Int64)?
    {
        guard let entity = entity(modelNumber: change.owner.entity), let owner = storedKey(change.owner.key) else {
            return nil
        }
        return (entity.toMany[change.relationship.index], owner)
    }
}
