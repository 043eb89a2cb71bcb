import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Relationships that are not in the rows of objects: join tables, keys without an inverse, and positions.
extension SaveTransaction {
    /// The storage of a changed relationship, and the key of its owner; `nil` if it is not stored, or its owner is not.
    private func place(_ change: ToManyChange) -> (mapping: ToManyMapping, owner: Int64)? {
        guard let entity = mapping.entity(modelNumber: change.owner.entity),
            let owner = storedKey(change.owner.key)
        else { return nil }
        return (entity.toMany[change.relationship.index], owner)
    }

    // MARK: - Membership

    func apply(_ change: ToManyChange) throws {
        guard let (mapping, owner) = place(change) else { return }
        switch mapping {
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
            if let order = side.order {
                unplaced.insert(UnplacedOwner(table: side.table, owner: side.owner, order: order, key: owner))
            }
            if let order = side.inverseOrder {
                unplaced.insert(UnplacedOwner(table: side.table, owner: side.member, order: order, key: member))
            }
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
        let order = key.order.map { ", \($0) = NULL" } ?? ""
        let statement = try connection.statement(
            SQL("UPDATE \(key.table) SET \(key.column) = ?\(order) WHERE Z_PK = ?")
        )
        for member in members.compactMap({ storedKey($0.key) }) {
            try statement.bind(owner, at: 1)
            try statement.bind(member, at: 2)
            try statement.run()
        }
        if let order = key.order {
            unplaced.insert(UnplacedOwner(table: key.table, owner: key.column, order: order, key: owner))
        }
    }

    private func release(_ members: [ObjectReference], from owner: Int64, _ key: ToManyMapping.KeyColumn) throws {
        guard !members.isEmpty else { return }
        let order = key.order.map { ", \($0) = NULL" } ?? ""
        let statement = try connection.statement(
            SQL("UPDATE \(key.table) SET \(key.column) = NULL\(order) WHERE Z_PK = ? AND \(key.column) = ?")
        )
        for member in members.compactMap({ storedKey($0.key) }) {
            try statement.bind(member, at: 1)
            try statement.bind(owner, at: 2)
            try statement.run()
        }
    }

    // MARK: - Positions

    /// The place of positions: the columns of the owner, the member and the position.
    private struct Positions {
        let table: SQLName
        let owner: SQLName
        let member: SQLName
        let order: SQLName
    }

    private func positions(_ mapping: ToManyMapping) -> Positions? {
        switch mapping {
        case .key(let key):
            key.order.map { Positions(table: key.table, owner: key.column, member: .key, order: $0) }
        case .join(let side):
            side.order.map { Positions(table: side.table, owner: side.owner, member: side.member, order: $0) }
        case .absent: nil
        }
    }

    /// Gives the members of an ordered relationship the positions of their new order, with as few changes as possible.
    func order(_ change: ToManyChange) throws {
        guard let wanted = change.order, let (mapping, owner) = place(change), let positions = positions(mapping) else {
            return
        }
        let current = try currentPositions(positions, owner)
        let members = wanted.compactMap { storedKey($0.key) }.filter { current[$0] != nil }
        let assigned = OrderKeys.assign(members) { current[$0] ?? nil }
        try write(assigned, in: positions, of: owner)
    }

    private func currentPositions(_ positions: Positions, _ owner: Int64) throws -> [Int64: Int64?] {
        let statement = try connection.statement(
            SQL("SELECT \(positions.member), \(positions.order) FROM \(positions.table) WHERE \(positions.owner) = ?")
        )
        try statement.bind(owner, at: 1)
        var current: [Int64: Int64?] = [:]
        while try statement.step() { current[statement[0].int64] = .some(statement[1].optionalInt64) }
        return current
    }

    private func write(_ assigned: [(member: Int64, position: Int64)], in positions: Positions, of owner: Int64) throws
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
        for entry in unplaced {
            var rows: [Int64] = []
            do {
                let statement = try connection.statement(
                    SQL(
                        "SELECT rowid FROM \(entry.table) WHERE \(entry.owner) = ? AND \(entry.order) IS NULL ORDER BY rowid"
                    )
                )
                try statement.bind(entry.key, at: 1)
                while try statement.step() { rows.append(statement[0].int64) }
            }
            guard !rows.isEmpty else { continue }
            var position = try lastPosition(entry).map { $0 + OrderKeys.step } ?? OrderKeys.first
            let statement = try connection.statement(
                SQL("UPDATE \(entry.table) SET \(entry.order) = ? WHERE rowid = ?")
            )
            for row in rows {
                try statement.bind(position, at: 1)
                try statement.bind(row, at: 2)
                try statement.run()
                position += OrderKeys.step
            }
        }
    }

    private func lastPosition(_ entry: UnplacedOwner) throws -> Int64? {
        let statement = try connection.statement(
            SQL("SELECT MAX(\(entry.order)) FROM \(entry.table) WHERE \(entry.owner) = ?")
        )
        try statement.bind(entry.key, at: 1)
        return try statement.step() ? statement[0].optionalInt64 : nil
    }
}
