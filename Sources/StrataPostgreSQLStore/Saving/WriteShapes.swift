import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Columns of rows that one statement writes: an array for each.
struct ColumnArrays {
    private var arrays: [PostgreSQLArray]
    private(set) var rowCount = 0
    /// The bytes of the values that may be large.
    private var byteCount = 0
    /// The most rows, and the most bytes, that are sent at a time.
    private let most: (rows: Int, bytes: Int)

    /// The limits of one statement.
    static let statement = (rows: 10_000, bytes: 64 << 20)
    /// The limits of one piece for COPY; the server works on it while the next one is made.
    static let copiedPiece = (rows: 1000, bytes: 1 << 20)

    let types: [PostgreSQLType]

    init(_ types: [PostgreSQLType], most: (rows: Int, bytes: Int) = statement) {
        self.types = types
        self.most = most
        arrays = types.map { PostgreSQLArray($0) }
    }

    /// Makes room for a number of rows, but not for more than are sent at a time.
    mutating func reserve(_ count: Int) {
        for index in arrays.indices { arrays[index].reserve(min(count, most.rows)) }
    }

    mutating func append(_ value: Int64, to column: Int) { arrays[column].append(value) }

    mutating func append(_ value: Int64?, to column: Int) {
        if let value { arrays[column].append(value) } else { arrays[column].appendNull() }
    }

    mutating func append(_ value: PostgreSQLValue, to column: Int) {
        byteCount += value.writtenCount
        arrays[column].append(value)
    }

    mutating func appendNull(to column: Int) { arrays[column].appendNull() }

    /// Appends the value of a column that is no reference.
    ///
    /// - Returns: Whether it is stored unchanged; NaN becomes null.
    @inline(__always)
    mutating func append(_ row: Row, _ column: UnsafePointer<WriteShape.Column>) -> Bool {
        let (place, word) = (column.pointee.value, column.pointee.word)
        guard !row.isNull(column.pointee.slotIndex) else {
            arrays[place].appendNull()
            if column.pointee.form == .foldedString {
                for folded in column.pointee.folded { arrays[folded.value].appendNull() }
            }
            return true
        }
        switch column.pointee.form {
        case .truth: arrays[place].append(row.int(word) != 0)
        case .integer, .reference: arrays[place].append(row.int(word))
        case .double:
            let value = row.double(word)
            if value.isNaN {
                arrays[place].appendNull()
                return false
            }
            arrays[place].append(value)
        case .string:
            let text = row.string(word)
            byteCount += text.utf8.count
            arrays[place].append(text)
        case .foldedString:
            let text = row.string(word)
            byteCount += text.utf8.count * (1 + column.pointee.folded.count)
            arrays[place].append(text)
            for folded in column.pointee.folded { arrays[folded.value].append(folded.folding.fold(text)) }
        case .other:
            let value = PostgreSQLValue(row, column.pointee.slot)
            byteCount += value.writtenCount
            arrays[place].append(value)
            return !value.isNull
        }
        return true
    }

    /// Ends a row.
    ///
    /// - Returns: Whether the arrays are full.
    mutating func endRow() -> Bool {
        rowCount += 1
        return rowCount >= most.rows || byteCount >= most.bytes
    }

    /// Removes all rows, and returns their values, an array for each column.
    mutating func removeRows() -> [PostgreSQLValue] { removeColumns().map { .array($0) } }

    /// Removes all rows, and returns the arrays of the columns.
    mutating func removeColumns() -> [PostgreSQLArray] {
        defer {
            arrays = arrays.map { PostgreSQLArray($0.element, like: $0) }
            (rowCount, byteCount) = (0, 0)
        }
        return arrays
    }
}

/// The statement that writes rows of one entity, and the places of their values in the parameters.
///
/// It is made once for a store, and is immutable.
final class WriteShape: Sendable {
    let entity: EntityMapping
    let sql: String
    /// The columns, in manually allocated memory, so that no reference is counted for each value.
    nonisolated(unsafe) let columns: UnsafeBufferPointer<Column>
    // Only the initialisers write `columns` and the memory that it points at.
    /// Empty arrays for the rows.
    let arrays: ColumnArrays
    /// Whether the statement waits for others that write the same values of a constraint.
    let mayWait: Bool
    /// The columns that the arrays are for.
    let names: [SQLName]

    /// The arrays for the keys and the versions of all rows.
    static let key = 0
    static let version = 1

    /// A slot that a statement writes, and the arrays for its values.
    struct Column {
        let slot: Slot
        let form: Form
        let slotIndex: Int
        let word: Int
        let value: Int
        let entity: Int?
        /// The column of the position in the ordered relationship at the other end, which is written later.
        let order: SQLName?
        /// The arrays for the folded text.
        let folded: [(folding: StringFolding, value: Int)]

        /// The way in which a value is read from a row.
        enum Form {
            case truth
            case integer
            case double
            case string
            /// A text that is also written in folded form.
            case foldedString
            case reference
            /// A value that is read through ``PostgreSQLValue``.
            case other
        }

        init(
            _ slot: Slot,
            value: Int,
            entity: Int?,
            order: SQLName?,
            folded: [(folding: StringFolding, value: Int)]
        ) {
            self.slot = slot
            self.folded = folded
            (slotIndex, word) = (slot.index, slot.word)
            (self.value, self.entity, self.order) = (value, entity, order)
            form =
                switch slot.kind {
                case .int: slot.type == .boolean ? .truth : .integer
                case .double: .double
                case .string: folded.isEmpty ? .string : .foldedString
                case .reference: .reference
                case .data, .uuid, .decimal: .other
                }
        }
    }

    /// The parameters of a statement.
    private struct Parameters {
        var names: [SQLName]
        var types: [PostgreSQLType] = [.int8, .int8]
        var columns: [Column] = []

        /// The parameters for slots of an entity.
        init(of entity: EntityMapping, naming: SQLNaming, _ isWritten: (Int) -> Bool) {
            names = [naming.key, naming.version]
            for slot in entity.layout.slots {
                let column = entity.columns[slot.index]
                guard let name = column.name, !column.isDerived, isWritten(slot.index) else { continue }
                let value = add(name, slot.columnType)
                let number = column.entity.map { add($0, .int8) }
                let folded = column.folded.map { (folding: $0.folding, value: add($0.name, slot.columnType)) }
                columns.append(Column(slot, value: value, entity: number, order: column.order, folded: folded))
            }
        }

        private mutating func add(_ name: SQLName, _ type: PostgreSQLType) -> Int {
            names.append(name)
            types.append(type)
            return names.count - 1
        }

        /// The rows as a table with the columns `c0`, `c1` and so on.
        var table: String {
            let columns = names.indices.map { "c\($0)" }.joined(separator: ", ")
            return "\(unnested(types, from: 1)) AS u (\(columns))"
        }
    }

    deinit {
        UnsafeMutableBufferPointer(mutating: columns).deinitialize()
        columns.deallocate()
    }

    private static func allocate(_ columns: [Column]) -> UnsafeBufferPointer<Column> {
        let buffer = UnsafeMutableBufferPointer<Column>.allocate(capacity: columns.count)
        _ = buffer.initialize(from: columns)
        return UnsafeBufferPointer(buffer)
    }

    /// The shape for new rows.
    init(inserting entity: EntityMapping, isConstrained: Bool, _ naming: SQLNaming) {
        let parameters = Parameters(of: entity, naming: naming) { _ in true }
        let list = parameters.names.map(\.description).joined(separator: ", ")
        let values = unnestedColumns(parameters.types, from: 1)
        sql = "INSERT INTO \(entity.table) (\(naming.entity), \(list)) SELECT \(entity.number), \(values)"
        names = parameters.names
        self.entity = entity
        mayWait = isConstrained
        columns = Self.allocate(parameters.columns)
        arrays = ColumnArrays(parameters.types)
    }

    /// The shape for rows of which some slots change.
    ///
    /// A row that leaves an ordered relationship loses its position there, and gets another one in the next.
    ///
    /// The last parameter is the mark of the new versions, and the one before it is the number of rows. If the
    /// statement finds fewer rows, then it fails with 22012, a division by zero. The rows are locked, so none can have
    /// changed. Only code of others in the database, such as a trigger, can keep them from being written.
    init(updating entity: EntityMapping, _ key: UpdateKey, isConstrained: Bool, _ naming: SQLNaming) {
        let parameters = Parameters(of: entity, naming: naming) { key.changed.contains($0) }
        let assignments = parameters.names.enumerated().dropFirst(2).map { "\($1) = u.c\($0)" }
        let orders = parameters.columns.compactMap { column in
            key.moved.contains(column.slotIndex) ? column.order.map { "\($0) = NULL" } : nil
        }
        let isCurrent = FaultGuard.versionCheck.isOff ? "" : " AND t.\(naming.version) = u.c\(Self.version)"
        let next = naming.nextVersion(of: "u.c\(Self.version)", mark: parameters.types.count + 2)
        let sets = (["\(naming.version) = \(next)"] + assignments + orders).joined(separator: ", ")
        sql = """
            WITH written AS (UPDATE \(entity.table) AS t SET \(sets) FROM \(parameters.table)
            WHERE t.\(naming.key) = u.c\(Self.key)\(isCurrent) RETURNING 1)
            SELECT 1 / CASE WHEN pg_catalog.count(*) = $\(parameters.types.count + 1) THEN 1 ELSE 0 END FROM written
            """
        names = parameters.names
        self.entity = entity
        mayWait = isConstrained
        columns = Self.allocate(parameters.columns)
        arrays = ColumnArrays(parameters.types)
    }
}

/// The statements that write rows of a store, each made at its first use.
final class WriteShapes: Sendable {
    private let mapping: SQLMapping
    private let inserts: [WriteShape]
    private let updates = Locked<[UpdateKey: WriteShape]>([:])

    init(_ mapping: SQLMapping) {
        self.mapping = mapping
        inserts = mapping.entities.map {
            WriteShape(inserting: $0, isConstrained: Self.isConstrained($0, mapping), mapping.dialect.naming)
        }
    }

    private static func isConstrained(_ entity: EntityMapping, _ mapping: SQLMapping) -> Bool {
        mapping.table(of: entity)?.constraints.isEmpty == false
    }

    func insert(_ entity: EntityMapping) -> WriteShape { inserts[entity.number - 1] }

    func update(_ entity: EntityMapping, _ key: UpdateKey) -> WriteShape {
        updates.withLock { updates in
            if let known = updates[key] { return known }
            if updates.count >= WorkSize.updateStatements { updates.removeAll() }
            let isConstrained = Self.isConstrained(entity, mapping)
            let shape = WriteShape(updating: entity, key, isConstrained: isConstrained, mapping.dialect.naming)
            updates[key] = shape
            return shape
        }
    }
}

/// The key of updates that one statement can write together.
struct UpdateKey: Hashable {
    /// The number of the entity in the model.
    let entity: Int
    let changed: SlotSet
    /// The written to-one relationships that have a new destination.
    let moved: SlotSet
}
