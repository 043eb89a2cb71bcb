import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// A value that is kept in a file.
struct ExternalValue: Hashable {
    let row: RowName
    let slot: Int
}

extension SaveTransaction {
    // MARK: - Updating

    func update(_ run: [RowUpdate]) throws {
        let entity = try entity(run[0].row.layout)
        let shape = file.shapes.update(entity, run[0].changed)
        let keepsFiles = shape.columns.contains(where: \.isTagged)
        let statement = try connection.statement(shape.sql)
        for update in run {
            if keepsFiles { try rememberFiles(of: entity, key: update.row.key) { update.changed.contains($0) } }
            do {
                try write(update, of: entity, shape: shape, by: statement)
            } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
                statement.reset()
                putOff.append(PutOffWrite(kind: .update(update), entity: entity, key: update.row.key, error: error))
            }
        }
    }

    /// Writes one update, or reports that its row has another version.
    func write(
        _ update: RowUpdate,
        of entity: EntityMapping,
        shape: WriteShape,
        by statement: borrowing Statement
    ) throws {
        let row = update.row
        try bind(row, of: entity, key: row.key, shape: shape, to: statement)
        let base = update.baseVersion &- offset
        try statement.bind(try version(after: base, entity, row.key), at: shape.versionParameter)
        try statement.bind(row.key, at: shape.keyParameter)
        try statement.bind(base, at: shape.baseParameter)
        try statement.run()
        if connection.changeCount == 0 {
            try reportVersion(of: entity, key: row.key, baseVersion: update.baseVersion)
            outdated.append(PutOffWrite(kind: .update(update), entity: entity, key: row.key))
        } else if !shape.orderedColumns.isEmpty {
            listUnplaced(row, of: entity, shape: shape)
        }
    }

    /// - Throws: `fileReadCorruptFile` (259) for the highest number, which only a file that was tampered with can have.
    private func version(after version: Int64, _ entity: EntityMapping, _ key: Int64) throws -> Int64 {
        guard version < .max else {
            throw SQLiteBoundary.damaged(file.url, "row \(key) of \(entity.table) has version \(version), the last.")
        }
        return version + 1
    }

    // MARK: - Inserting

    func insertAll() throws {
        var runs: [(layout: EntityLayout, indices: [Int])] = []
        var positions: [Int: Int] = [:]
        var last = -1
        for index in changes.inserted.indices {
            let layout = changes.inserted[index].layout
            if last < 0 || runs[last].layout !== layout {
                if let known = positions[layout.number] {
                    last = known
                } else {
                    last = runs.count
                    positions[layout.number] = last
                    runs.append((layout, []))
                }
            }
            runs[last].indices.append(index)
        }
        for run in runs { try insert(run.indices, try entity(run.layout)) }
    }

    private func insert(_ indices: [Int], _ entity: EntityMapping) throws {
        let shape = file.shapes.insert(entity)
        let statement = try connection.statement(shape.sql)
        for index in indices {
            let row = changes.inserted[index]
            let key = result.insertedKeys[index]
            do {
                try write(row, as: key, of: entity, shape: shape, by: statement)
            } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
                statement.reset()
                putOff.append(PutOffWrite(kind: .insert(row), entity: entity, key: key, error: error))
            } catch let error as SQLiteError
                where error.extendedCode == .constraintPrimaryKey && StoreChanges.isRevived(row)
            {
                // Another context has brought the row back first.
                statement.reset()
                if FaultGuard.revivalCheck.isOff { throw error }
                try reportVersion(of: entity, key: key, baseVersion: row.version)
                outdated.append(PutOffWrite(kind: .insert(row), entity: entity, key: key))
            } catch let error as SQLiteError where error.extendedCode == .constraintPrimaryKey && row.key > 0 {
                statement.reset()
                throw givenKey(row, entity)
            }
        }
    }

    /// The error for a new row whose reserved key was given to another row, after a backup was put back.
    private func givenKey(_ row: Row, _ entity: EntityMapping) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(file.url.path) has a row with the key \(row.key) of a new object of entity \(entity.layout.name): the key was obtained before a backup was put back, and another object has got it since. Delete the new object, and insert one in its place."
            ]
        )
    }

    /// Writes one new row.
    func write(
        _ row: Row,
        as key: Int64,
        of entity: EntityMapping,
        shape: WriteShape,
        by statement: borrowing Statement
    ) throws {
        try bind(row, of: entity, key: key, shape: shape, to: statement)
        try statement.bind(key, at: shape.keyParameter)
        let before = offset == 0 ? row.version : RowVersion.count(row.version)
        try statement.bind(try version(after: before, entity, key), at: shape.versionParameter)
        try statement.run()
        if !shape.orderedColumns.isEmpty { listUnplaced(row, of: entity, shape: shape) }
    }

    private func listUnplaced(_ row: Row, of entity: EntityMapping, shape: WriteShape) {
        for slot in shape.orderedColumns {
            let column = entity.columns[slot.index]
            guard let reference = row.reference(slot), let owner = storedKey(reference.key), let name = column.name,
                let order = column.order
            else { continue }
            unplaced.add(owner, MemberPositions(table: entity.table, owner: name, member: .key, order: order))
        }
    }

    // MARK: - Values

    /// Binds the values of a row.
    ///
    /// Null values stay unbound, which is NULL.
    private func bind(
        _ row: Row,
        of entity: EntityMapping,
        key: Int64,
        shape: WriteShape,
        to statement: borrowing Statement
    ) throws {
        let source = row.unsafe
        for column in shape.columns where !source.isNull(column.slot) {
            switch column.kind {
            case .int:
                try statement.bind(row.int(column.word), at: column.parameter)
            case .double:
                let value = row.double(column.word)
                // SQLite has no NaN and stores NULL.
                if value.isNaN { markInexact(entity, key) }
                try statement.bind(value, at: column.parameter)
            case .string:
                try statement.bind(row.string(column.word), at: column.parameter)
            case .reference:
                guard let target = storedKey(row.int(column.word)) else {
                    markInexact(entity, key)
                    continue
                }
                try statement.bind(target, at: column.parameter)
                guard column.entityParameter > 0 else { continue }
                let number = mapping.entity(modelNumber: Int(row.int(column.word + 1)))?.number
                try statement.bind(number.map { .integer(Int64($0)) } ?? .null, at: column.entityParameter)
            case .uuid:
                try statement.bind(row.uuid(column.word), at: column.parameter)
            case .decimal:
                let stored = StoredDecimal.stored(row.decimal(column.word))
                if !stored.isExact { markInexact(entity, key) }
                try statement.bind(stored.value, at: column.parameter)
            case .data:
                let data = row.data(column.word)
                guard column.isTagged else {
                    try statement.bind(data, at: column.parameter)
                    continue
                }
                let value = ExternalValue(row: RowName(root: entity.rootNumber, key: key), slot: column.slot)
                try statement.bind(try tagged(data, value), at: column.parameter)
            }
        }
    }

    private func tagged(_ data: Data, _ value: ExternalValue) throws -> Data {
        // If a row is written a second time, it keeps the file of the first.
        if let known = writtenFiles[value] { return ExternalData.tagged(file: known) }
        let (stored, file) = try files.tagged(data)
        if let file { writtenFiles[value] = file }
        return stored
    }

    private func markInexact(_ entity: EntityMapping, _ key: Int64) {
        inexact.insert(TriggerReports.Entry(entity: Int64(entity.number), key: key))
    }
}
