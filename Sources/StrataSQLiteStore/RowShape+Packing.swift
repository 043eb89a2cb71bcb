import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

extension RowShape {
    /// Packs the current row of a statement, by the same rules as ``row(_:stamp:offset:_:)``.
    ///
    /// - Returns: `false` if the row's entity is not one that the plan covers.
    @inline(__always)
    func pack(_ statement: borrowing Statement, into packer: inout RowPacker, _ queries: RowQueries) throws -> Bool {
        let columns = statement.columns
        guard let entity = plan.entity(columns[ColumnPlan.entityPosition].int64) else { return false }
        packer.begin(entity.shape.layout, key: columns[ColumnPlan.keyPosition].int64)
        for column in entity.columns {
            let value = columns[Int(column.position)]
            switch column.kind {
            case .int:
                let integer = value.int64
                if integer != 0 || !value.isNull { packer.set(UInt64(bitPattern: integer), column.slot) }
            case .double:
                let double = value.double
                if double != 0 || !value.isNull { packer.set(double.bitPattern, column.slot) }
            case .string:
                let text = value.utf8
                if text.baseAddress != nil { packer.set(text: text, column.slot) }
            case .reference:
                let key = value.int64
                if key == 0, value.isNull { continue }
                var number = Int(column.destinationNumber)
                if column.entityPosition >= 0 {
                    number = queries.modelNumber(columns[Int(column.entityPosition)].int64, number)
                }
                packer.set(reference: ObjectReference(key: key, entity: number), column.slot)
            case .uuid:
                if !value.isNull, let uuid = Self.uuid(value) { packer.set(uuid: uuid, column.slot) }
            case .decimal:
                if !value.isNull, let decimal = StoredDecimal.read(value) { packer.set(decimal: decimal, column.slot) }
            // The caller packs only rows without such values.
            case .data: break
            }
        }
        return true
    }
}
