import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension SaveTransaction {
    private func append(_ row: Row, key: Int64, shape: WriteShape, to arrays: inout ColumnArrays) {
        guard var column = shape.columns.baseAddress else { return }
        let end = column + shape.columns.count
        while column < end {
            if column.pointee.form == .reference {
                append(row, key: key, column: column, shape: shape, to: &arrays)
            } else {
                let isKept = arrays.append(row, column)
                if !isKept { markInexact(key, row.layout) }
            }
            column += 1
        }
    }

    /// Appends the destination of a to-one relationship.
    private func append(
        _ row: Row,
        key: Int64,
        column: UnsafePointer<WriteShape.Column>,
        shape: WriteShape,
        to arrays: inout ColumnArrays
    ) {
        guard let reference = row.unsafe.reference(column.pointee.slotIndex, at: column.pointee.word) else {
            arrays.appendNull(to: column.pointee.value)
            if let place = column.pointee.entity { arrays.appendNull(to: place) }
            return
        }
        let target = storedKey(reference.key)
        if target == nil { markInexact(key, row.layout) }
        arrays.append(target, to: column.pointee.value)
        if let place = column.pointee.entity {
            let number = target == nil ? nil : mapping.entity(modelNumber: reference.entity)?.number
            arrays.append(number.map { Int64($0) }, to: place)
        }
        if let order = column.pointee.order, let target,
            let owner = shape.entity.columns[column.pointee.slotIndex].name
        {
            let table = shape.entity.table
            unplaced.add(target, MemberPositions(table: table, owner: owner, member: naming.key, order: order))
        }
    }

    // MARK: - Deleting

    func delete(_ run: [ExpectedRow]) throws {
        let entity = try entity(run[0].layout)
        let keys = run.map(\.key)
        try recordDeletions(keys, entity)
        let parameter: [PostgreSQLValue] = [.array(PostgreSQLArray(keys))]
        // The entries about the rows in other tables. They go first: policies of row-level security show pairs only as long as their ends are there.
        for relationship in entity.toMany {
            switch relationship {
            case .join(let side):
                try connection.post("DELETE FROM \(side.table) WHERE \(side.owner) = ANY($1)", parameter)
                if side.isSymmetric {
                    try connection.post("DELETE FROM \(side.table) WHERE \(side.member) = ANY($1)", parameter)
                }
            case .key(let key) where key.isWithoutInverse:
                try connection.post(
                    "UPDATE \(key.table) SET \(key.column) = NULL\(key.clearedOrder) WHERE \(key.column) = ANY($1)",
                    parameter
                )
            case .key, .absent: break
            }
        }
        try connection.post("DELETE FROM \(entity.table) WHERE \(naming.key) = ANY($1)", parameter)
    }

    // MARK: - Updating

    func update(_ run: UpdateRun) throws {
        let shape = database.shapes.update(try entity(run.updates[0].row.layout), run.key)
        var arrays = shape.arrays
        arrays.reserve(run.updates.count)
        func flush() throws {
            let count = arrays.rowCount
            guard count > 0 else { return }
            try connection.post(
                shape.sql,
                arrays.removeRows() + [.int8(Int64(count)), .int8(mark)],
                mayWait: shape.mayWait
            )
        }
        for update in run.updates {
            arrays.append(update.row.key, to: WriteShape.key)
            arrays.append(update.baseVersion, to: WriteShape.version)
            append(update.row, key: update.row.key, shape: shape, to: &arrays)
            if arrays.endRow() { try flush() }
        }
        try flush()
    }

    // MARK: - Inserting

    func insertAll() throws {
        for run in runs(Array(changes.inserted.indices), { changes.inserted[$0].layout }) {
            try insert(run, database.shapes.insert(try entity(changes.inserted[run[0]].layout)))
        }
    }

    private func insert(_ indices: [Int], _ shape: WriteShape) throws {
        if copiesRows, indices.count >= WorkSize.copiedRows,
            let form = try CopyForm(of: shape, naming: naming, on: connection)
        {
            return try copy(indices, shape: shape, form: form)
        }
        var arrays = shape.arrays
        arrays.reserve(indices.count)
        for index in indices {
            appendInserted(index, shape, to: &arrays)
            if arrays.endRow() { try connection.post(shape.sql, arrays.removeRows(), mayWait: shape.mayWait) }
        }
        if arrays.rowCount > 0 { try connection.post(shape.sql, arrays.removeRows(), mayWait: shape.mayWait) }
    }

    private func copy(_ indices: [Int], shape: WriteShape, form: CopyForm) throws {
        try connection.copy(form.sql) { send in
            var arrays = ColumnArrays(shape.arrays.types, most: ColumnArrays.copiedPiece)
            arrays.reserve(indices.count)
            for index in indices {
                appendInserted(index, shape, to: &arrays)
                if arrays.endRow() { try send(form.rows(&arrays)) }
            }
            if arrays.rowCount > 0 { try send(form.rows(&arrays)) }
        }
    }

    private func appendInserted(_ index: Int, _ shape: WriteShape, to arrays: inout ColumnArrays) {
        let row = changes.inserted[index]
        let key = result.insertedKeys[index]
        arrays.append(key, to: WriteShape.key)
        arrays.append(RowVersion.next(after: row.version, mark: result.versionMark), to: WriteShape.version)
        append(row, key: key, shape: shape, to: &arrays)
    }
}

// MARK: - Rows that lead to deleted ones

extension SaveTransaction {
    /// A relationship, and the query for the rows that lead to deleted rows through it.
    struct LateReferenceLook {
        fileprivate let backlink: Backlink
        fileprivate let found: PostedStatement
    }

    /// Locks the rows that lead to rows which the save deletes.
    ///
    /// The deleted rows are locked already, so no other transaction can relate more rows to them.
    func askForLateReferences() throws {
        for run in runs(changes.deleted, \.layout) {
            for backlink in run[0].layout.backlinks.compactMap({ Backlink($0, mapping) }) {
                let found = try connection.post(
                    "SELECT \(naming.key) FROM \(backlink.member.table) WHERE \(backlink.column) = ANY($1) ORDER BY \(naming.key) FOR NO KEY UPDATE",
                    [.array(PostgreSQLArray(run.map(\.key)))],
                    mayWait: true
                )
                lateReferences.append(LateReferenceLook(backlink: backlink, found: found))
            }
        }
    }

    /// Clears the to-one relationships of rows that another context has meanwhile related to deleted rows.
    ///
    /// The context that deletes the rows has not seen these relations, and an addition to an unordered relationship is
    /// no conflict.
    func releaseLateReferences() throws {
        for look in lateReferences {
            let found = try connection.answer(look.found)
            guard found.rowCount > 0 else { continue }
            let backlink = look.backlink
            // Rows that the save itself relates or deletes are left as they are.
            let root = backlink.member.layout.rootNumber
            var own = changes.keys(relating: backlink.name, of: root, result.insertedKeys)
            for deletion in changes.deleted where deletion.layout.rootNumber == root { own.insert(deletion.key) }
            let keys = found.rows.map { $0.int64(0) }.filter { !own.contains($0) }
            guard !keys.isEmpty else { continue }
            try connection.post(
                "UPDATE \(backlink.member.table) SET \(backlink.assignments), \(naming.version) = \(naming.nextVersion(of: naming.version.description, mark: 2)) WHERE \(naming.key) = ANY($1)",
                [.array(PostgreSQLArray(keys)), .int8(mark)]
            )
            for key in keys {
                markInexact(key, backlink.member.layout)
                released.append((key, backlink.name, backlink.member))
            }
        }
    }
}
