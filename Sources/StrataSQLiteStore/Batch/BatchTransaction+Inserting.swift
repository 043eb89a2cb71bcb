import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

extension BatchTransaction {
    /// Inserts the rows of a batch one by one, with one statement.
    func insert(_ insertion: BatchInsertion, _ entity: EntityMapping) throws {
        let insert = BatchRowInsert(insertion, into: entity, during: self)
        try insert.run()
    }
}

/// The insertion of a batch's rows.
///
/// It is used once, by the thread that executes the request.
private final class BatchRowInsert {
    private let insertion: BatchInsertion
    private let entity: EntityMapping
    private let transaction: BatchTransaction
    private let shape: WriteShape
    private let constraints: [SQLConstraint]
    private var connection: Connection { transaction.connection }
    private var layout: EntityLayout { insertion.layout }

    /// The key of the next row.
    private var nextKey: Int64 = 0
    private var firstKey: Int64 = 0
    /// Rows that existed before and were changed instead, each once.
    private var changed: [BatchRows] = []
    /// The places of these rows by their keys.
    private var places: [Int64: Int] = [:]
    private var clashes: [BatchClash] = []
    /// The known destinations of each to-one relationship.
    private var targets: [Targets]
    /// The place of the row in the order of insertion.
    private var position = 0
    /// The files that were written for the row, by slot.
    private var files: [Int: String] = [:]

    /// Destinations of one relationship that are known to exist.
    private struct Targets {
        let slot: Slot
        let query: SQL
        /// The destination of the last row: rows mostly come in runs with the same one.
        var last: Int64 = 0
        var known = KeySet()
        var keys: [Int64] = []
    }

    init(_ insertion: BatchInsertion, into entity: EntityMapping, during transaction: BatchTransaction) {
        self.insertion = insertion
        self.entity = entity
        self.transaction = transaction
        shape = transaction.file.shapes.insert(entity)
        constraints =
            transaction.mapping.table(of: entity)?.constraints.filter { $0.applies(to: entity.layout) } ?? []
        targets = entity.layout.referenceSlots.compactMap { slot in
            guard let owners = transaction.mapping.entity(modelNumber: slot.destinationNumber) else { return nil }
            return Targets(slot: slot, query: SQL("SELECT 1 FROM \(owners.table) WHERE Z_PK = ?"))
        }
    }

    func run() throws {
        let root = layout.rootNumber
        firstKey = try KeyAllocation(transaction.mapping).reserve([root: 1], connection)[root]?.lowerBound ?? 1
        nextKey = firstKey
        try insertAll()
        guard clashes.isEmpty else { throw BatchClashes(layout: layout, clashes: clashes) }
        try transaction.run(
            "UPDATE Z_PRIMARYKEY SET Z_MAX = MAX(Z_MAX, ?) WHERE Z_ENT = ?",
            [.integer(nextKey - 1), .integer(Int64(entity.rootNumber))]
        )
        for target in targets where !target.keys.isEmpty {
            try transaction.join(target.keys, by: target.slot, of: entity)
        }
        if transaction.listsRows, nextKey > firstKey {
            transaction.changes.inserted.append(BatchRows(layout: layout, keys: Array(firstKey..<nextKey)))
        }
        // There are few of them, and their cached rows have to be removed in any case.
        for row in changed {
            for key in row.keys { transaction.changes.changed.add(key, row.layout, properties: row.properties) }
        }
    }

    private func insertAll() throws {
        let statement = try connection.statement(shape.sql)
        let hasReferences = !targets.isEmpty
        let control = insertion.control
        if let count = insertion.rows.count { control?.expect(count) }
        var counter = RowCounter(control)
        while let given = try insertion.nextRow() {
            try FaultPoint.batchRow.reach()
            try control?.cancellation.check()
            if hasReferences { try requireTargets(given.row) }
            files.removeAll(keepingCapacity: true)
            do {
                try bind(given.row, statement)
                try statement.bind(nextKey, at: shape.keyParameter)
                try statement.bind(1, at: shape.versionParameter)
                try statement.run()
                nextKey += 1
                transaction.changes.count += 1
            } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
                statement.reset()
                try resolve(given, error)
                // These are the files that the stored row has not taken over.
                for name in files.values { transaction.files.removeUnused(name) }
            }
            position += 1
            counter.count()
        }
        counter.finish()
    }

    // MARK: - Values

    /// Binds the values of a row.
    ///
    /// Null values stay unbound, which is NULL.
    private func bind(_ row: Row, _ statement: borrowing Statement) throws {
        let source = row.unsafe
        for column in shape.columns where !source.isNull(column.slot) {
            switch column.kind {
            case .int: try statement.bind(row.int(column.word), at: column.parameter)
            case .double: try statement.bind(row.double(column.word), at: column.parameter)
            case .string: try statement.bind(row.string(column.word), at: column.parameter)
            case .uuid: try statement.bind(row.uuid(column.word), at: column.parameter)
            case .decimal:
                try statement.bind(StoredDecimal.stored(row.decimal(column.word)).value, at: column.parameter)
            case .data:
                let data = row.data(column.word)
                try statement.bind(column.isTagged ? try tagged(data, column.slot) : data, at: column.parameter)
            case .reference:
                try statement.bind(row.int(column.word), at: column.parameter)
                guard column.entityParameter > 0 else { continue }
                let number = transaction.mapping.entity(modelNumber: Int(row.int(column.word + 1)))?.number
                try statement.bind(number.map { .integer(Int64($0)) } ?? .null, at: column.entityParameter)
            }
        }
    }

    private func tagged(_ data: Data, _ slot: Int) throws -> Data {
        let (value, file) = try transaction.files.tagged(data)
        files[slot] = file
        return value
    }

    /// The value of a refused row, for the stored row that takes it over, with its file.
    private func taggedAgain(_ data: Data, _ slot: Int) throws -> Data {
        guard let name = files.removeValue(forKey: slot) else { return try transaction.files.tagged(data).value }
        return ExternalData.tagged(file: name)
    }

    // MARK: - Relationships

    /// Refuses a row with a relationship to a missing row.
    private func requireTargets(_ row: Row) throws {
        for index in targets.indices {
            guard let key = row.reference(targets[index].slot)?.key, key != targets[index].last else { continue }
            targets[index].last = key
            guard !targets[index].known.contains(key) else { continue }
            let statement = try connection.statement(targets[index].query)
            try statement.bind(key, at: 1)
            guard try statement.step() else {
                throw CocoaError.missingBatchTarget(of: targets[index].slot, key: key, in: layout)
            }
            targets[index].known.insert(key)
            targets[index].keys.append(key)
        }
    }

    // MARK: - Uniqueness

    /// Handles a row whose unique values another row has.
    private func resolve(_ given: GivenRow, _ error: SQLiteError) throws {
        let upsert = insertion.upsert
        let found = try constraints.compactMap { constraint in
            try holder(of: given.row, constraint).map { (constraint, $0.key, $0.entity) }
        }
        // The unique index was made by another program, and is not in the model.
        guard let (constraint, key, number) = found.first else { throw error }
        let isOne = found.allSatisfy { $0.1 == key }
        guard upsert != .skip else { return }
        guard upsert != .fail, isOne else {
            return try addClash(of: given.row, over: constraint, withKey: key, entityNumber: number)
        }
        guard let stored = transaction.mapping.entity(storeNumber: number) else {
            return try addClash(of: given.row, over: constraint, withKey: key, entityNumber: number)
        }
        let slots = given.slots(upsert)
        let misfits = given.misfits(slots, in: stored.layout)
        guard misfits.isEmpty else {
            return try addClash(of: given.row, over: constraint, withKey: key, entityNumber: number, misfits)
        }
        do {
            try update(key, of: stored, from: given.row, slots: slots.filter { stored.layout.shares([$0]) })
        } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
            try addClash(of: given.row, over: constraint, withKey: key, entityNumber: number)
        }
    }

    private func holder(of row: Row, _ constraint: SQLConstraint) throws -> (key: Int64, entity: Int64)? {
        guard constraint.slots.allSatisfy({ !row.isNull($0.index) }) else { return nil }
        let condition = constraint.columns.map { "\($0) = ?" }.joined(separator: " AND ")
        let statement = try connection.statement(SQL("SELECT Z_PK, Z_ENT FROM \(entity.table) WHERE \(condition)"))
        try statement.bind(constraint.slots.map { SQLBinding(row, $0) })
        return try statement.step() ? (statement.int64(0), statement.int64(1)) : nil
    }

    /// Notes a clash, and ends the insertion if there are too many.
    private func addClash(
        of row: Row,
        over constraint: SQLConstraint,
        withKey key: Int64,
        entityNumber number: Int64,
        _ misfits: [String] = []
    ) throws {
        let stored = key < firstKey ? transaction.mapping.entity(storeNumber: number) : nil
        clashes.append(
            BatchClash(
                position: position,
                constraint: constraint.attributes,
                row: row,
                stored: try stored.flatMap {
                    try transaction.file.queries.row(key, of: $0, on: connection, stamp: CoarseClock.now)
                },
                misfits: misfits
            )
        )
        if clashes.count == BatchClashes.limit { throw BatchClashes(layout: layout, clashes: clashes) }
    }

    /// Copies values of a row that cannot be inserted into the stored row, in the slots that both have.
    private func update(_ key: Int64, of stored: EntityMapping, from row: Row, slots: [Slot]) throws {
        var assignments: [String] = []
        var bindings: [SQLBinding] = []
        var files: [String] = []
        for slot in slots {
            let place = stored.columns[slot.index]
            guard let name = place.name, !place.isDerived else { continue }
            assignments.append("\(name) = ?")
            if place.isTagged {
                files.append("\(name)")
                bindings.append(
                    row.isNull(slot.index) ? .null : .blob(try taggedAgain(row.data(slot.word), slot.index))
                )
            } else {
                bindings.append(SQLBinding(row, slot))
            }
            if let column = place.entity {
                assignments.append("\(column) = ?")
                let number = row.reference(slot).flatMap { transaction.mapping.entity(modelNumber: $0.entity)?.number }
                bindings.append(number.map { .integer(Int64($0)) } ?? .null)
            }
            guard slot.kind == .reference else { continue }
            try transaction.leave(slot, of: stored, from: RowSelection(key: key, stored))
            if let order = place.order {
                assignments.append("\(order) = CASE WHEN \(name) IS ? THEN \(order) END")
                bindings.append(SQLBinding(row, slot))
            }
        }
        if !files.isEmpty {
            try transaction.listObsoleteFiles(
                "SELECT \(files.joined(separator: ", ")) FROM \(stored.table) WHERE Z_PK = ?",
                [.integer(key)]
            )
        }
        // A row of this batch keeps its version, because no other context has seen it with other values.
        assignments.append(key < firstKey ? "Z_OPT = Z_OPT + 1" : "Z_OPT = Z_OPT")
        try transaction.run(
            "UPDATE \(stored.table) SET \(assignments.joined(separator: ", ")) WHERE Z_PK = ?",
            bindings + [.integer(key)]
        )
        guard key < firstKey else { return }
        noteChange(of: key, stored.layout, slots.propertyNames)
    }

    /// Lists a row that was changed, or the other properties of one that is listed.
    private func noteChange(of key: Int64, _ layout: EntityLayout, _ properties: [String]) {
        guard let place = places[key] else {
            places[key] = changed.count
            changed.append(BatchRows(layout: layout, keys: [key], properties: properties))
            transaction.changes.count += 1
            return
        }
        let known = changed[place].properties
        changed[place].properties += properties.filter { !known.contains($0) }
    }
}
