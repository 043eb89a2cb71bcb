import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The columns that a statement selects for rows of one entity, and how they become a row.
///
/// A shape covers an entity alone, or with all of its sub-entities. In the second case, `Z_ENT` of each row shows which
/// of the columns it has. A shape is made when the store is opened, and is immutable.
final class RowShape: Sendable {
    let mapping: EntityMapping
    /// The selected columns of the table `t0`.
    let columns: String
    /// Selects all rows of the hierarchy.
    let selectAll: SQL
    /// Selects one row by its key.
    let selectByKey: SQL
    /// Selects the rows with keys in a range.
    let selectRange: SQL
    /// Selects the rows whose keys are in a list.
    let selectByKeys: SQL
    /// The number of selected columns.
    let columnCount: Int

    /// The columns by `Z_ENT`, starting with that of `mapping`.
    ///
    /// They are in separate memory, so that no reference is counted for each row.
    private nonisolated(unsafe) let layouts: UnsafeMutableBufferPointer<RowColumns>
    // Only the initialiser writes `layouts` and the memory that it points at.
    private let firstNumber: Int64

    /// The columns that a row of one entity uses.
    private struct RowColumns {
        let shape: UnsafeRowShape
        let columns: UnsafeMutableBufferPointer<ColumnReader>
    }

    /// One column, and the place for its value.
    private struct ColumnReader {
        let position: Int32
        /// The column with the destination's entity number, or -1.
        let entityPosition: Int32
        let kind: SlotKind
        let isTagged: Bool
        let slot: Int32
        let word: Int32
        let destinationNumber: Int32
    }

    static let keyPosition = 0
    static let entityPosition = 1
    static let versionPosition = 2

    /// Makes the shape of an entity.
    ///
    /// - Parameters:
    ///   - mapping: The mapping of the entity.
    ///   - store: The mapping of the store.
    ///   - isDeep: Whether the shape covers sub-entities too.
    ///   - wanted: The slots to read; the others are null in the rows. `nil` for all slots.
    init(_ mapping: EntityMapping, in store: SQLMapping, isDeep: Bool, wanted: SlotSet? = nil) {
        self.mapping = mapping
        var names = ["t0.Z_PK", "t0.Z_ENT", "t0.Z_OPT"]
        var positions: [SQLName: Int] = [:]
        func position(_ name: SQLName) -> Int {
            if let known = positions[name] { return known }
            names.append("t0.\(name)")
            positions[name] = names.count - 1
            return names.count - 1
        }
        let numbers = isDeep ? Array(mapping.subtree) : [mapping.number]
        let readers = numbers.compactMap { store.entity(storeNumber: Int64($0)) }.map { entity in
            let columns = entity.layout.slots.compactMap { slot -> ColumnReader? in
                let column = entity.columns[slot.index]
                guard let name = column.name, wanted?.contains(slot.index) ?? true else { return nil }
                let value = position(name)
                return ColumnReader(
                    position: Int32(value),
                    entityPosition: Int32(column.entity.map(position) ?? -1),
                    kind: slot.kind,
                    isTagged: column.isTagged,
                    slot: Int32(slot.index),
                    word: Int32(slot.word),
                    destinationNumber: Int32(slot.destinationNumber)
                )
            }
            return RowColumns(shape: entity.layout.rowShape, columns: Self.allocate(columns))
        }
        layouts = Self.allocate(readers)
        firstNumber = Int64(mapping.number)
        columns = names.joined(separator: ", ")
        selectAll = SQL("SELECT \(columns) FROM \(mapping.table) AS t0")
        selectByKey = SQL("SELECT \(columns) FROM \(mapping.table) AS t0 WHERE t0.Z_PK = ?")
        columnCount = names.count
        selectByKeys = SQL(
            "SELECT \(columns) FROM \(ValueList.tableFunction)(?) AS k CROSS JOIN \(mapping.table) AS t0 ON t0.Z_PK = k.value"
        )
        selectRange = SQL("SELECT \(columns) FROM \(mapping.table) AS t0 WHERE t0.Z_PK BETWEEN ? AND ?")
    }

    deinit {
        for entity in layouts { entity.columns.deallocate() }
        layouts.deallocate()
    }

    private static func allocate<Element>(_ elements: [Element]) -> UnsafeMutableBufferPointer<Element> {
        let buffer = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = buffer.initialize(from: elements)
        return buffer
    }

    /// Makes a row from the current row of a statement.
    ///
    /// Values of the wrong type are converted by SQLite's rules. If these give no value, it is null.
    ///
    /// - Parameters:
    ///   - statement: A statement that selects `columns` first.
    ///   - stamp: The time of reading.
    ///   - offset: The number that is added to the version, see ``RowVersion``.
    ///   - queries: The means to read values that are not in the columns.
    /// - Returns: The row; `nil` if its entity is not one that the shape covers.
    /// - Throws: The reason why the file of a value cannot be read.
    @inline(__always)
    func row(
        _ statement: borrowing Statement,
        stamp: UInt32,
        offset: Int64,
        _ queries: RowQueries
    ) throws -> Row? {
        let number = statement.int64(Self.entityPosition) &- firstNumber
        guard number >= 0, number < layouts.count else { return nil }
        let entity = layouts[Int(number)]
        let row = Row(
            shape: entity.shape,
            key: statement.int64(Self.keyPosition),
            version: statement.int64(Self.versionPosition) &+ offset,
            stamp: stamp
        )
        let target = row.unsafe
        // The null bits of the first slots are collected here, and written once.
        var nulls = UInt32.max
        for column in entity.columns {
            let position = Int(column.position)
            let word = Int(column.word)
            // Only a value that reads as zero may be null, so most values need no check for null.
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
                guard !value.isNull, try Self.readBytes(value, of: column, into: target, queries: queries) else {
                    continue
                }
            }
            if column.slot < 32 { nulls &= ~(1 << UInt32(column.slot)) } else { target.markPresent(Int(column.slot)) }
        }
        target.header.pointee.nulls = nulls
        return row
    }

    /// Reads a value of the rarer kinds; returns `false` if it is missing.
    @inline(never)
    private static func readBytes(
        _ value: Value,
        of column: ColumnReader,
        into target: UnsafeRow,
        queries: RowQueries
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
