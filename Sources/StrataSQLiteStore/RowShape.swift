import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// What a statement selects for rows of one entity, and how a row is made of that.
final class RowShape: Sendable {
    let mapping: EntityMapping
    /// What is selected, of the table `t0`.
    let columns: String
    /// All rows of the hierarchy.
    let selectAll: SQL
    /// One row by its key.
    let selectByKey: SQL
    /// The rows with keys from one to another.
    let selectRange: SQL
    /// The rows whose keys are in a list.
    let selectByKeys: SQL
    /// How many columns are selected.
    let columnCount: Int
    private let selected: SelectedColumns

    static let keyPosition = SelectedColumns.keyPosition
    static let entityPosition = SelectedColumns.entityPosition
    static let versionPosition = SelectedColumns.versionPosition

    /// Makes the shape of an entity.
    ///
    /// - Parameters:
    ///   - mapping: The mapping of the entity.
    ///   - store: The mapping of the store.
    ///   - isDeep: Whether the shape covers sub-entities too.
    ///   - wanted: The slots to read; the others are null in the rows. `nil` for all slots.
    init(_ mapping: EntityMapping, in store: SQLMapping, isDeep: Bool, wanted: SlotSet? = nil) {
        self.mapping = mapping
        selected = SelectedColumns(mapping, in: store, isDeep: isDeep, wanted: wanted)
        columns = selected.list
        selectAll = SQL("SELECT \(columns) FROM \(mapping.table) AS t0")
        selectByKey = SQL("SELECT \(columns) FROM \(mapping.table) AS t0 WHERE t0.Z_PK = ?")
        columnCount = selected.count
        selectByKeys = SQL(
            "SELECT \(columns) FROM \(ValueList.tableFunction)(?) AS k CROSS JOIN \(mapping.table) AS t0 ON t0.Z_PK = k.value"
        )
        selectRange = SQL("SELECT \(columns) FROM \(mapping.table) AS t0 WHERE t0.Z_PK BETWEEN ? AND ?")
    }

    /// Makes a row of the statement's current one.
    ///
    /// Values of the wrong type are converted by SQLite's rules, or are null where those give none.
    ///
    /// - Parameters:
    ///   - statement: A statement that selects `columns` first.
    ///   - stamp: The time of reading.
    ///   - queries: What a row may need besides its columns.
    /// - Returns: The row; `nil` if its entity is not one that the shape covers.
    /// - Throws: Why the file of a value cannot be read.
    @inline(__always)
    func row(_ statement: borrowing Statement, stamp: UInt32, _ queries: RowQueries) throws -> Row? {
        let number = statement.int64(Self.entityPosition) &- selected.firstNumber
        guard number >= 0, number < selected.entities.count else { return nil }
        let entity = selected.entities[Int(number)]
        let row = Row(
            shape: entity.shape,
            key: statement.int64(Self.keyPosition),
            version: statement.int64(Self.versionPosition),
            stamp: stamp
        )
        let target = row.unsafe
        // The null bits of the first slots are gathered here, and written once.
        var nulls = UInt32.max
        for column in entity.columns {
            let position = Int(column.position)
            let word = Int(column.word)
            // Only what reads as zero may be null, so most values need not be asked.
            switch column.kind {
            case .int:
                let integer = statement.int64(position)
                if integer == 0, statement[position].isNull { continue }
                target.words[word] = UInt64(bitPattern: integer)
            case .double:
                let double = statement.double(position)
                if double == 0, statement[position].isNull { continue }
                target.words[word] = double.bitPattern
            case .string:
                guard let string = statement[position].optionalString else { continue }
                target.pointer(String.self, word).initialize(to: string)
            case .reference:
                let key = statement.int64(position)
                if key == 0, statement[position].isNull { continue }
                target.words[word] = UInt64(bitPattern: key)
                var number = Int(column.destinationNumber)
                if column.entityPosition >= 0 {
                    number = queries.modelNumber(statement.int64(Int(column.entityPosition)), number)
                }
                target.words[word + 1] = UInt64(truncatingIfNeeded: number)
            case .data, .uuid, .decimal:
                let value = statement[position]
                guard !value.isNull, try Self.readBytes(value, column, target, queries) else { continue }
            }
            if column.slot < 32 { nulls &= ~(1 << UInt32(column.slot)) } else { target.markPresent(Int(column.slot)) }
        }
        target.header.pointee.nulls = nulls
        return row
    }

    /// Reads a value of the rarer kinds; `false` if it is none.
    @inline(never)
    private static func readBytes(
        _ value: Value,
        _ column: SelectedColumns.Column,
        _ target: UnsafeRow,
        _ queries: RowQueries
    ) throws -> Bool {
        let word = Int(column.word)
        switch column.kind {
        case .uuid:
            guard let uuid = value.uuid ?? UUID(uuidString: value.string) else { return false }
            target.pointer(UUID.self, word).initialize(to: uuid)
        case .decimal:
            guard let decimal = StoredDecimal.read(value) else { return false }
            target.pointer(Decimal.self, word).initialize(to: decimal)
        default:
            guard let data = column.isTagged ? try queries.tagged(value) : value.data else { return false }
            target.pointer(Data.self, word).initialize(to: data)
        }
        return true
    }
}
