import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Relationships that are not in the rows of objects: join tables, keys without an inverse, and positions.
extension SaveTransaction {
    // MARK: - Membership

    func apply(_ change: ToManyChange) throws {
        guard let (relationship, owner) = mapping.place(change, storedKey) else { return }
        switch relationship {
        case .join(let side):
            try unlink(change.removed, from: owner, side)
            try link(change.added, to: owner, side)
        case .key(let key) where key.isWithoutInverse:
            try release(change.removed, from: owner, key)
            try claim(change.added, for: owner, key)
        case .key, .absent:
            break
        }
    }

    private func link(_ members: [ObjectReference], to owner: Int64, _ side: ToManyMapping.JoinSide) throws {
        guard !members.isEmpty else { return }
        // The save has the pair from one side only, but earlier saves may have stored it from both.
        let statement = try connection.statement(
            SQL("INSERT OR IGNORE INTO \(side.table) (\(side.owner), \(side.member)) VALUES (?, ?)")
        )
        func insert(_ owner: Int64, _ member: Int64) throws {
            try statement.bind(owner, at: 1)
            try statement.bind(member, at: 2)
            try statement.run()
            unplaced.add(owner, side.positions)
            unplaced.add(member, side.inversePositions)
        }
        for member in members.compactMap({ storedKey($0.key) }) {
            try insert(owner, member)
            if side.isSymmetric { try insert(member, owner) }
        }
    }

    private func unlink(_ members: [ObjectReference], from owner: Int64, _ side: ToManyMapping.JoinSide) throws {
        guard !members.isEmpty else { return }
        let statement = try connection.statement(
            SQL("DELETE FROM \(side.table) WHERE \(side.owner) = ? AND \(side.member) = ?")
        )
        func delete(_ owner: Int64, _ member: Int64) throws {
            try statement.bind(owner, at: 1)
            try statement.bind(member, at: 2)
            try statement.run()
        }
        for member in members.compactMap({ storedKey($0.key) }) {
            try delete(owner, member)
            if side.isSymmetric { try delete(member, owner) }
        }
    }

    private func claim(_ members: [ObjectReference], for owner: Int64, _ key: ToManyMapping.KeyColumn) throws {
        guard !members.isEmpty else { return }
        let statement = try connection.statement(
            SQL("UPDATE \(key.table) SET \(key.column) = ?\(key.clearedOrder) WHERE Z_PK = ?")
        )
        for member in members.compactMap({ storedKey($0.key) }) {
            try statement.bind(owner, at: 1)
            try statement.bind(member, at: 2)
            try statement.run()
        }
        unplaced.add(owner, key.positions(mapping.dialect.naming))
    }

    private func release(_ members: [ObjectReference], from owner: Int64, _ key: ToManyMapping.KeyColumn) throws {
        guard !members.isEmpty else { return }
        let statement = try connection.statement(
            SQL("UPDATE \(key.table) SET \(key.column) = NULL\(key.clearedOrder) WHERE Z_PK = ? AND \(key.column) = ?")
        )
        for member in members.compactMap({ storedKey($0.key) }) {
            try statement.bind(member, at: 1)
            try statement.bind(owner, at: 2)
            try statement.run()
        }
    }

    // MARK: - Positions

    /// Gives the members of an ordered relationship the positions of their new order, with as few changes as possible.
    func order(_ change: ToManyChange) throws {
        guard let wanted = change.order, let (relationship, owner) = mapping.place(change, storedKey),
            let positions = MemberPositions(relationship, mapping.dialect.naming)
        else { return }
        if change.isUnread {
            return try append(wanted.compactMap { storedKey($0.key) }, to: change.owner, owner, positions)
        }
        // Most lists only grow. Then the other members, which may be many, are not looked at.
        if let (members, last) = change.appended, let lastKey = storedKey(last.key),
            let place = try position(of: lastKey, positions, owner)
        {
            let keys = members.compactMap { storedKey($0.key) }
            try write(OrderKeys.append(keys, after: place), in: positions, of: owner)
            return unplaced.placed(keys.count, of: owner, positions)
        }
        let current = try currentPositions(positions, owner)
        let assigned = OrderKeys.assign(wanted.compactMap { storedKey($0.key) }, among: current)
        try write(assigned, in: positions, of: owner)
    }

    /// Gives new members positions after those of all others, which the context has not read.
    ///
    /// If this process knows the last of the others, then the others, which may be many, are not looked at.
    private func append(
        _ new: [Int64],
        to reference: ObjectReference,
        _ owner: Int64,
        _ positions: MemberPositions
    ) throws {
        guard let newest = new.last else { return }
        let place = LastMembers.Place(owner: owner, positions: positions)
        // The version of an owner advances with each change of its members.
        let version = baseVersion(of: reference)
        let last = version.flatMap { file.lastMembers.last(at: place, ownerVersion: $0, epoch) }
        if let last, let position = try position(of: last, positions, owner) {
            try write(OrderKeys.append(new, after: position), in: positions, of: owner)
        } else {
            let current = try currentPositions(positions, owner)
            let isNew = Set(new)
            let others = current.filter { !isNew.contains($0.key) }.sorted { first, second in
                (first.value ?? .max, first.key) < (second.value ?? .max, second.key)
            }
            try write(OrderKeys.assign(others.map(\.key) + new, among: current), in: positions, of: owner)
        }
        unplaced.placed(new.count, of: owner, positions)
        guard let version else { return }
        lastMembers[place] = LastMembers.Entry(member: newest, ownerVersion: version + 1, epoch: epoch)
    }

    /// The version that the save expects the row of an owner to have; `nil` if the save does not change the row.
    private func baseVersion(of owner: ObjectReference) -> Int64? {
        if updatedVersions.isEmpty {
            for update in changes.updated {
                let name = RowName(root: update.row.layout.rootNumber, key: update.row.key)
                updatedVersions[name] = update.baseVersion &- offset
            }
        }
        return updatedVersions[RowName(root: mapping.schema.entities[owner.entity - 1].rootNumber, key: owner.key)]
    }

    /// The position of a member; `nil` if it has none, or is no member any more.
    private func position(of member: Int64, _ positions: MemberPositions, _ owner: Int64) throws -> Int64? {
        let statement = try connection.statement(
            SQL(
                "SELECT \(positions.order) FROM \(positions.table) WHERE \(positions.member) = ? AND \(positions.owner) = ?"
            )
        )
        try statement.bind(member, at: 1)
        try statement.bind(owner, at: 2)
        return try statement.step() ? statement[0].optionalInt64 : nil
    }

    private func currentPositions(_ positions: MemberPositions, _ owner: Int64) throws -> [Int64: Int64?] {
        let statement = try connection.statement(
            SQL("SELECT \(positions.member), \(positions.order) FROM \(positions.table) WHERE \(positions.owner) = ?")
        )
        try statement.bind(owner, at: 1)
        var current: [Int64: Int64?] = [:]
        while try statement.step() { current[statement[0].int64] = .some(statement[1].optionalInt64) }
        return current
    }

    private func write(_ assigned: [(member: Int64, position: Int64)], in positions: MemberPositions, of owner: Int64)
        throws
    {
        guard !assigned.isEmpty else { return }
        let statement = try connection.statement(
            SQL(
                "UPDATE \(positions.table) SET \(positions.order) = ? WHERE \(positions.member) = ? AND \(positions.owner) = ?"
            )
        )
        for (member, position) in assigned {
            try statement.bind(position, at: 1)
            try statement.bind(member, at: 2)
            try statement.bind(owner, at: 3)
            try statement.run()
        }
    }

    /// Gives members without a position positions after the others.
    func placeUnplaced() throws {
        for (positions, owners) in unplaced.owners { for owner in owners { try placeMembers(of: owner, positions) } }
    }

    private func placeMembers(of owner: Int64, _ positions: MemberPositions) throws {
        let (table, order) = (positions.table, positions.order)
        var rows: [Int64] = []
        do {
            let statement = try connection.statement(
                SQL("SELECT rowid FROM \(table) WHERE \(positions.owner) = ? AND \(order) IS NULL ORDER BY rowid")
            )
            try statement.bind(owner, at: 1)
            while try statement.step() { rows.append(statement[0].int64) }
        }
        guard !rows.isEmpty else { return }
        // The version of the owner need not advance for these members.
        lastMembers[LastMembers.Place(owner: owner, positions: positions)] = .some(nil)
        var position = try lastPosition(positions, of: owner).map { $0 + OrderKeys.step } ?? OrderKeys.first
        let statement = try connection.statement(SQL("UPDATE \(table) SET \(order) = ? WHERE rowid = ?"))
        for row in rows {
            try statement.bind(position, at: 1)
            try statement.bind(row, at: 2)
            try statement.run()
            position += OrderKeys.step
        }
    }

    private func lastPosition(_ positions: MemberPositions, of owner: Int64) throws -> Int64? {
        let statement = try connection.statement(
            SQL("SELECT MAX(\(positions.order)) FROM \(positions.table) WHERE \(positions.owner) = ?")
        )
        try statement.bind(owner, at: 1)
        return try statement.step() ? statement[0].optionalInt64 : nil
    }
}
