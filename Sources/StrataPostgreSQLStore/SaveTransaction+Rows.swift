import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Columns of rows that are written by one statement: an array for each.
struct ColumnArrays {
    private(set) var names: [SQLName] = []
    private(set) var arrays: [PostgreSQLArray] = []
    private(set) var rowCount = 0
    /// The most rows, and the most bytes, of one statement.
    private static let mostRows = 10_000
    private static let mostBytes = 64 << 20

    mutating func add(_ name: SQLName, _ type: PostgreSQLType) -> Int {
        names.append(name)
        arrays.append(PostgreSQLArray(type))
        return arrays.count - 1
    }

    mutating func append(_ value: PostgreSQLValue, to column: Int) { arrays[column].append(value) }

    /// Ends a row.
    ///
    /// - Returns: Whether the arrays are full.
    mutating func endRow() -> Bool {
        rowCount += 1
        return rowCount >= Self.mostRows || arrays.reduce(0) { $0 + $1.byteCount } >= Self.mostBytes
    }

    /// Takes all rows out.
    mutating func take() -> [PostgreSQLValue] {
        defer {
            arrays = arrays.map { PostgreSQLArray($0.element) }
            rowCount = 0
        }
        return arrays.map { .array($0) }
    }

    /// The rows as a table with the columns `c0`, `c1` and so on.
    var table: String {
        let columns = names.indices.map { "c\($0)" }.joined(separator: ", ")
        return "\(unnested(arrays.map(\.element), from: 1)) AS u (\(columns))"
    }
}

extension SaveTransaction {
    /// A slot that a statement writes, and where its values go.
    private struct Written {
        let slot: Slot
        let value: Int
        let entity: Int?
        /// The position in the ordered relationship at the other end, which is settled later.
        let order: SQLName?
    }

    private func columns(_ entity: EntityMapping, _ arrays: inout ColumnArrays, _ isWritten: (Int) -> Bool) -> [Written]
    {
        entity.layout.slots.compactMap { slot in
            let column = entity.columns[slot.index]
            guard let name = column.name, !column.isDerived, isWritten(slot.index) else { return nil }
            let value = arrays.add(name, slot.columnType)
            return Written(
                slot: slot,
                value: value,
                entity: column.entity.map { arrays.add($0, .int8) },
                order: column.order
            )
        }
    }

    private func append(
        _ row: Row,
        _ key: Int64,
        _ columns: [Written],
        _ entity: EntityMapping,
        to arrays: inout ColumnArrays
    ) {
        for column in columns {
            let slot = column.slot
            guard slot.kind == .reference else {
                let value = PostgreSQLValue(row, slot)
                if value.isNull, !row.isNull(slot.index) { noteInexact(key, row.layout) }
                arrays.append(value, to: column.value)
                continue
            }
            let reference = row.reference(slot)
            let target = reference.flatMap { storedKey($0.key) }
            if reference != nil, target == nil { noteInexact(key, row.layout) }
            arrays.append(target.map { .int8($0) } ?? .null(.int8), to: column.value)
            if let place = column.entity {
                let number = target == nil ? nil : reference.flatMap { mapping.entity(modelNumber: $0.entity)?.number }
                arrays.append(number.map { .int8(Int64($0)) } ?? .null(.int8), to: place)
            }
            if let order = column.order, let target, let owner = entity.columns[slot.index].name {
                unplaced.insert(
                    UnplacedOwner(table: entity.table, owner: owner, member: naming.key, order: order, key: target)
                )
            }
        }
    }

    // MARK: - Deleting

    func delete(_ run: [RowDeletion]) throws {
        let entity = try entity(run[0].layout)
        let keys = run.map(\.key)
        try history?.willDelete(keys, entity, connection)
        let parameter: [PostgreSQLValue] = [.array(PostgreSQLArray(keys))]
        try connection.query("DELETE FROM \(entity.table) WHERE \(naming.key) = ANY($1)", parameter)
        // What other tables know of the rows.
        for relationship in entity.toMany {
            switch relationship {
            case .join(let side):
                try connection.query("DELETE FROM \(side.table) WHERE \(side.owner) = ANY($1)", parameter)
                if side.isSymmetric {
                    try connection.query("DELETE FROM \(side.table) WHERE \(side.member) = ANY($1)", parameter)
                }
            case .key(let key) where key.isWithoutInverse:
                let order = key.order.map { ", \($0) = NULL" } ?? ""
                try connection.query(
                    "UPDATE \(key.table) SET \(key.column) = NULL\(order) WHERE \(key.column) = ANY($1)",
                    parameter
                )
            case .key, .absent: break
            }
        }
    }

    // MARK: - Updating

    func update(_ run: [RowUpdate]) throws {
        let entity = try entity(run[0].row.layout)
        var arrays = ColumnArrays()
        let key = arrays.add(naming.key, .int8)
        let version = arrays.add(naming.version, .int8)
        let columns = columns(entity, &arrays) { run[0].changed.contains($0) }
        let assignments = arrays.names.enumerated().dropFirst(2).map { "\($1) = u.c\($0)" }
        // Who leaves an ordered relationship leaves its position too; in the next one it gets another.
        let orders = columns.compactMap { column in column.order.map { "\($0) = NULL" } }
        let sets = (["\(naming.version) = u.c\(version) + 1"] + assignments + orders).joined(separator: ", ")
        let sql =
            "UPDATE \(entity.table) AS t SET \(sets) FROM \(arrays.table) WHERE t.\(naming.key) = u.c\(key) AND t.\(naming.version) = u.c\(version)"
        func flush() throws {
            let count = arrays.rowCount
            guard count > 0 else { return }
            let changed = try connection.query(sql, arrays.take()).changeCount
            guard changed == count else {
                throw PostgreSQLError(.server, sqlState: "40001", "rows that were locked have changed")
            }
        }
        for update in run {
            arrays.append(.int8(update.row.key), to: key)
            arrays.append(.int8(update.baseVersion), to: version)
            append(update.row, update.row.key, columns, entity, to: &arrays)
            if arrays.endRow() { try flush() }
        }
        try flush()
    }

    // MARK: - Inserting

    func insertAll() throws {
        for run in runs(Array(changes.inserted.indices), { changes.inserted[$0].layout }) {
            try insert(run, try entity(changes.inserted[run[0]].layout))
        }
    }

    private func insert(_ indices: [Int], _ entity: EntityMapping) throws {
        var arrays = ColumnArrays()
        let keyColumn = arrays.add(naming.key, .int8)
        let version = arrays.add(naming.version, .int8)
        let columns = columns(entity, &arrays) { _ in true }
        let names = arrays.names.map(\.description).joined(separator: ", ")
        let values = arrays.names.indices.map { "u.c\($0)" }.joined(separator: ", ")
        let sql =
            "INSERT INTO \(entity.table) (\(naming.entity), \(names)) SELECT \(entity.number), \(values) FROM \(arrays.table)"
        for index in indices {
            let row = changes.inserted[index]
            let key = result.insertedKeys[index]
            arrays.append(.int8(key), to: keyColumn)
            arrays.append(.int8(row.version + 1), to: version)
            append(row, key, columns, entity, to: &arrays)
            if arrays.endRow() { try connection.query(sql, arrays.take()) }
        }
        if arrays.rowCount > 0 { try connection.query(sql, arrays.take()) }
    }
}

// MARK: - Rows that lead to deleted ones

extension SaveTransaction {
    /// A to-one relationship that may lead to rows which this save deletes.
    private struct Backlink {
        let member: EntityMapping
        let column: SQLName
        let assignments: String
        let name: String

        init?(_ inverse: Relationship, _ mapping: SQLMapping) {
            guard let member = mapping.entity(modelNumber: inverse.entity.number),
                let place = member.column(named: inverse.name), let column = place.name
            else { return nil }
            self.member = member
            self.column = column
            name = inverse.name
            assignments = [column, place.entity, place.order].compactMap { $0.map { "\($0) = NULL" } }
                .joined(separator: ", ")
        }
    }

    /// Takes deleted rows out of the to-one relationships of rows that somebody else has related to them meanwhile:
    /// their deletion has not seen those, and an addition to an unordered relationship is no conflict.
    func releaseStragglers() throws {
        for run in runs(changes.deleted, \.layout) {
            for backlink in run[0].layout.backlinks.compactMap({ Backlink($0, mapping) }) {
                let found = try connection.query(
                    "SELECT \(naming.key) FROM \(backlink.member.table) WHERE \(backlink.column) = ANY($1) ORDER BY \(naming.key) FOR NO KEY UPDATE",
                    [.array(PostgreSQLArray(run.map(\.key)))]
                )
                guard found.rowCount > 0 else { continue }
                // What the save itself has related to a row that it deletes is left as it is.
                let root = backlink.member.layout.rootNumber
                let own = changes.keys(relating: backlink.name, of: root, result.insertedKeys)
                let keys = found.rows.map { $0.int64(0) }.filter { !own.contains($0) }
                guard !keys.isEmpty else { continue }
                try connection.query(
                    "UPDATE \(backlink.member.table) SET \(backlink.assignments), \(naming.version) = \(naming.version) + 1 WHERE \(naming.key) = ANY($1)",
                    [.array(PostgreSQLArray(keys))]
                )
                for key in keys {
                    noteInexact(key, backlink.member.layout)
                    released.append((key, backlink.name, backlink.member))
                }
            }
        }
    }
}
