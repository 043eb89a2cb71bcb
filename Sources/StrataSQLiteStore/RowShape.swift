import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The statements that read rows of one entity by their keys, and how the selected columns become a row.
final class RowShape: Sendable {
    let plan: ColumnPlan
    /// Selects all rows of the hierarchy.
    let selectAll: SQL
    /// Selects one row by its key.
    let selectByKey: SQL
    /// Selects the rows with keys in a range.
    let selectRange: SQL
    /// Selects the rows whose keys are in a list.
    let selectByKeys: SQL
    /// The most slots of a row, if rows can be packed; otherwise `nil`.
    let packedSlotCount: Int?

    init(_ mapping: EntityMapping, in store: SQLMapping, isDeep: Bool, wanted: SlotSet? = nil) {
        plan = ColumnPlan(mapping, in: store, isDeep: isDeep, wanted: wanted)
        let (columns, table) = (plan.columns, mapping.table)
        let layouts = plan.layouts
        packedSlotCount = RowPacker.canPack(layouts) ? layouts.map(\.slots.count).max() : nil
        selectAll = SQL("SELECT \(columns) FROM \(table) AS t0")
        selectByKey = SQL("SELECT \(columns) FROM \(table) AS t0 WHERE t0.Z_PK = ?")
        selectByKeys = SQL(
            "SELECT \(columns) FROM \(ValueList.tableFunction)(?) AS k CROSS JOIN \(table) AS t0 ON t0.Z_PK = k.value"
        )
        selectRange = SQL("SELECT \(columns) FROM \(table) AS t0 WHERE t0.Z_PK BETWEEN ? AND ?")
    }

    /// Makes a row from the current row of a statement.
    ///
    /// Values of the wrong type are converted by SQLite's rules. If these give no value, it is null.
    ///
    /// - Parameters:
    ///   - statement: A statement that selects the columns of the plan first.
    ///   - stamp: The time of reading.
    ///   - offset: The number that is added to the version, see ``RowVersion``.
    ///   - queries: The means to read values that are not in the columns.
    /// - Returns: The row; `nil` if its entity is not one that the plan covers.
    /// - Throws: The reason why the file of a value cannot be read.
    @inline(__always)
    func row(
        _ statement: borrowing Statement,
        stamp: UInt32,
        offset: Int64,
        _ queries: RowQueries
    ) throws -> Row? {
        let columns = statement.columns
        guard let entity = plan.entity(columns[ColumnPlan.entityPosition].int64) else { return nil }
        let row = Row(
            shape: entity.shape,
            key: columns[ColumnPlan.keyPosition].int64,
            version: columns[ColumnPlan.versionPosition].int64 &+ offset,
            stamp: stamp
        )
        let target = row.unsafe
        // The null bits of the first slots are collected here, and written once.
        var nulls = UInt32.max
        for column in entity.columns {
            let value = columns[Int(column.position)]
            let word = Int(column.word)
            // Only a value that reads as zero may be null, so most values need no check for null.
            switch column.kind {
            case .int:
                let integer = value.int64
                if integer == 0, value.isNull { continue }
                target.words[word] = UInt64(bitPattern: integer)
            case .double:
                let double = value.double
                if double == 0, value.isNull { continue }
                target.words[word] = double.bitPattern
            case .string:
                guard let string = value.optionalString else { continue }
                target.pointer(String.self, word).initialize(to: string)
            case .reference:
                let key = value.int64
                if key == 0, value.isNull { continue }
                target.words[word] = UInt64(bitPattern: key)
                var number = Int(column.destinationNumber)
                if column.entityPosition >= 0 {
                    number = queries.modelNumber(columns[Int(column.entityPosition)].int64, number)
                }
                target.words[word + 1] = UInt64(truncatingIfNeeded: number)
            case .data, .uuid, .decimal:
                guard !value.isNull, try Self.readBytes(value, of: column, into: target, queries: queries) else {
                    continue
                }
            }
            column.markPresent(&nulls, in: target)
        }
        target.header.pointee.nulls = nulls
        return row
    }

    /// The row that need not be made from the current row of a statement, because there is one of the same version.
    ///
    /// - Parameters:
    ///   - statement: A statement that selects the columns of the plan first.
    ///   - stamp: The time of reading.
    ///   - offset: The number that is added to the version, see ``RowVersion``.
    ///   - known: The rows that there are.
    /// - Returns: The row; `nil` if it has to be made.
    @inline(__always)
    func knownRow(
        _ statement: borrowing Statement,
        stamp: UInt32,
        offset: Int64,
        _ known: inout KnownRows?
    ) -> Row? {
        let columns = statement.columns
        guard let entity = plan.entity(columns[ColumnPlan.entityPosition].int64) else { return nil }
        return known?.row(
            columns[ColumnPlan.keyPosition].int64,
            version: columns[ColumnPlan.versionPosition].int64 &+ offset,
            entity.shape.layout,
            stamp: stamp
        )
    }

    /// Reads a value of the rarer kinds; returns `false` if it is missing.
    @inline(never)
    private static func readBytes(
        _ value: Value,
        of column: ColumnPlan.Column,
        into target: UnsafeRow,
        queries: RowQueries
    ) throws -> Bool {
        let word = Int(column.word)
        switch column.kind {
        case .uuid:
            guard let uuid = uuid(value) else { return false }
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

    static func uuid(_ value: Value) -> UUID? { value.uuid ?? UUID(uuidString: value.string) }
}
