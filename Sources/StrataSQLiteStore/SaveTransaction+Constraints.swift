import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// A write that is put off, because it met a unique value of another row or another version of its row.
///
/// The former is tried again after all others.
struct PutOffWrite {
    enum Kind {
        case update(RowUpdate)
        case insert(Row)
    }

    let kind: Kind
    let entity: EntityMapping
    /// The stored key, or the key that will be stored.
    let key: Int64
    /// The error of SQLite; `nil` for a write that met another version of its row.
    var error: SQLiteError?

    var row: Row {
        switch kind {
        case .update(let update): update.row
        case .insert(let row): row
        }
    }
}

extension SaveTransaction {
    /// Tries the writes again that were put off, and clears the unique values of their rows first.
    ///
    /// So rows can pass values on to one another, or swap them. Then only a row that keeps a value has it, so a write
    /// that still fails is a conflict. This takes two writes a row.
    func retryPutOff() throws {
        guard !putOff.isEmpty || !outdated.isEmpty else { return }
        for write in putOff { try clearUniqueValues(write) }
        var left: [PutOffWrite] = []
        for var write in putOff {
            do {
                try retry(write)
            } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
                write.error = error
                left.append(write)
            }
        }
        putOff = left
        try reportConstraints()
    }

    private func retry(_ write: PutOffWrite) throws {
        switch write.kind {
        case .update(let update):
            let shape = file.shapes.update(write.entity, update.changed)
            try self.write(update, of: write.entity, shape: shape, by: try connection.statement(shape.sql))
        case .insert(let row):
            let shape = file.shapes.insert(write.entity)
            try self.write(row, as: write.key, of: write.entity, shape: shape, by: try connection.statement(shape.sql))
        }
    }

    /// The constraints of a row's table that may apply to it.
    private func constraints(of write: PutOffWrite) -> [SQLConstraint] {
        mapping.table(of: write.entity)?.constraints.filter { $0.applies(to: write.row.layout) } ?? []
    }

    /// The constraints that a write can break, because it changes one of their values.
    private func touchedConstraints(of write: PutOffWrite) -> [SQLConstraint] {
        let all = constraints(of: write)
        guard case .update(let update) = write.kind else { return all }
        return all.filter { constraint in constraint.slots.contains { update.changed.contains($0.index) } }
    }

    /// Clears the unique values of a stored row that will be changed.
    ///
    /// The columns that the update does not change must stay, because it would not set them again. One changed column
    /// of a constraint is enough.
    private func clearUniqueValues(_ write: PutOffWrite) throws {
        guard case .update(let update) = write.kind else { return }
        let columns = constraints(of: write).flatMap { constraint in
            zip(constraint.slots, constraint.columns).filter { update.changed.contains($0.0.index) }.map(\.1)
        }
        guard !columns.isEmpty else { return }
        let assignments = Set(columns).map { "\($0) = NULL" }.sorted().joined(separator: ", ")
        let statement = try connection.statement(
            SQL("UPDATE \(write.entity.table) SET \(assignments) WHERE Z_PK = ? AND Z_OPT = ?")
        )
        try statement.bind(write.key, at: 1)
        try statement.bind(update.baseVersion &- offset, at: 2)
        try statement.run()
    }

    // MARK: - Conflicts

    /// The rows that collide with one other row in one constraint.
    private struct Collision {
        struct Place: Hashable {
            let table: SQLName
            let constraint: SQLName
            let other: Int64
        }

        let constraint: SQLConstraint
        let entity: EntityMapping
        let other: Int64
        var rows: [PutOffWrite]
    }

    private func reportConstraints() throws {
        var collisions: [Collision] = []
        var positions: [Collision.Place: Int] = [:]
        for write in putOff + outdated {
            var isExplained = false
            for constraint in write.error == nil ? touchedConstraints(of: write) : constraints(of: write) {
                guard let other = try collidingKey(write, constraint) else { continue }
                isExplained = true
                let place = Collision.Place(table: write.entity.table, constraint: constraint.index, other: other)
                if let position = positions[place] {
                    collisions[position].rows.append(write)
                } else {
                    positions[place] = collisions.count
                    collisions.append(
                        Collision(constraint: constraint, entity: write.entity, other: other, rows: [write])
                    )
                }
            }
            // The unique index was made by another program, and is not in the model.
            if !isExplained, let error = write.error { throw error }
        }
        var handedOver: [Int: [Int64: Int64]] = [:]
        for collision in collisions {
            let root = collision.entity.layout.rootNumber
            if handedOver[root] == nil { handedOver[root] = handedOverKeys(root) }
            try report(collision, handedOver[root] ?? [:])
        }
    }

    private func collidingKey(_ write: PutOffWrite, _ constraint: SQLConstraint) throws -> Int64? {
        let row = write.row
        guard constraint.slots.allSatisfy({ !row.isNull($0.index) }) else { return nil }
        let condition = constraint.columns.map { "\($0) = ?" }.joined(separator: " AND ")
        let statement = try connection.statement(
            SQL("SELECT Z_PK FROM \(write.entity.table) WHERE \(condition) AND Z_PK <> ?")
        )
        for (index, slot) in constraint.slots.enumerated() {
            try statement.bind(uniqueValue(row, slot), at: index + 1)
        }
        try statement.bind(write.key, at: constraint.slots.count + 1)
        return try statement.step() ? statement[0].int64 : nil
    }

    private func uniqueValue(_ row: Row, _ slot: Slot) -> SQLBinding {
        switch slot.kind {
        case .int: .integer(row.int(slot.word))
        case .double: .double(row.double(slot.word))
        case .string: .text(row.string(slot.word))
        case .data: .blob(row.data(slot.word))
        case .uuid: .blob(withUnsafeBytes(of: row.uuid(slot.word).uuid) { Data($0) })
        case .decimal: StoredDecimal.stored(row.decimal(slot.word)).value
        case .reference: storedKey(row.int(slot.word)).map { .integer($0) } ?? .null
        }
    }

    private func report(_ collision: Collision, _ own: [Int64: Int64]) throws {
        var keys = collision.rows.map { own[$0.key] ?? $0.key }
        var persisted: Row?
        if let key = own[collision.other] {
            keys.insert(key, at: 0)
        } else {
            persisted = try file.queries.row(
                collision.other,
                of: collision.entity,
                on: connection,
                stamp: CoarseClock.now
            )
        }
        report(
            .constraint(
                entity: collision.constraint.layout,
                attributes: collision.constraint.attributes,
                keys: keys,
                persisted: persisted
            )
        )
    }

    /// The keys with which the save's own rows of a hierarchy were handed over, by their stored keys.
    private func handedOverKeys(_ root: Int) -> [Int64: Int64] {
        var keys: [Int64: Int64] = [:]
        for (row, key) in zip(changes.inserted, result.insertedKeys) where row.layout.rootNumber == root {
            keys[key] = row.key
        }
        for update in changes.updated where update.row.layout.rootNumber == root {
            keys[update.row.key] = update.row.key
        }
        return keys
    }
}
