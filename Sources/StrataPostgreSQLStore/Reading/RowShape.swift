import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The statements that read rows of one entity by their keys, and how the selected columns become a row.
final class RowShape: Sendable {
    let plan: ColumnPlan
    /// The statement that reads one row by its key.
    let selectByKey: String
    /// The statement that reads the rows with given keys.
    let selectByKeys: String

    init(_ mapping: EntityMapping, in store: SQLMapping, isDeep: Bool, wanted: SlotSet? = nil) {
        plan = ColumnPlan(mapping, in: store, isDeep: isDeep, wanted: wanted)
        let select = "SELECT \(plan.columns) FROM \(mapping.table) AS t0 WHERE t0.\(store.dialect.naming.key)"
        selectByKey = "\(select) = $1"
        selectByKeys = "\(select) = ANY($1)"
    }

    /// Makes a row.
    ///
    /// - Returns: The row; `nil` if the plan does not cover its entity.
    /// - Throws: `fileReadCorruptFile` (259) for a number that a `Decimal` cannot hold.
    func row(_ result: ResultRow, stamp: UInt32, _ queries: RowQueries) throws -> Row? {
        guard let entity = plan.entity(result.int64(ColumnPlan.entityPosition)) else { return nil }
        let row = Row(
            shape: entity.shape,
            key: result.int64(ColumnPlan.keyPosition),
            version: result.int64(ColumnPlan.versionPosition),
            stamp: stamp
        )
        let target = row.unsafe
        // The null bits of the first slots are collected here, and written once.
        var nulls = UInt32.max
        for column in entity.columns {
            let position = Int(column.position)
            let bytes = result.bytes(position)
            // A null has no bytes, so only values without bytes have to be checked.
            if bytes.count == 0, result.isNull(position) { continue }
            let word = Int(column.word)
            switch column.kind {
            case .int: target.words[word] = UInt64(bitPattern: ResultRow.int64(bytes))
            case .double: target.words[word] = ResultRow.double(bytes).bitPattern
            case .string: target.pointer(String.self, word).initialize(to: String(decoding: bytes, as: UTF8.self))
            case .reference:
                target.words[word] = UInt64(bitPattern: ResultRow.int64(bytes))
                var number = Int(column.destinationNumber)
                if column.entityPosition >= 0 {
                    number = queries.modelNumber(result.int64(Int(column.entityPosition)), number)
                }
                target.words[word + 1] = UInt64(truncatingIfNeeded: number)
            case .data: target.pointer(Data.self, word).initialize(to: Data(bytes))
            case .uuid:
                guard let uuid = result.uuid(position) else { continue }
                target.pointer(UUID.self, word).initialize(to: uuid)
            case .decimal:
                guard let decimal = result.decimal(position) else {
                    // The null bits of the values so far are set, so that these values are released.
                    target.header.pointee.nulls = nulls
                    throw PostgreSQLBoundary.damaged(
                        queries.place,
                        "\"\(row.layout.slots[Int(column.slot)].name)\" of row \(row.key) of \(plan.mapping.table.raw) is no number that a Decimal can hold."
                    )
                }
                target.pointer(Decimal.self, word).initialize(to: decimal)
            }
            column.markPresent(&nulls, in: target)
        }
        target.header.pointee.nulls = nulls
        return row
    }
}
