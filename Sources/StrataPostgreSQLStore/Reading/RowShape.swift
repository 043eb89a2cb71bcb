import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// What a statement selects for rows of one entity, and how a row is made of that.
final class RowShape: Sendable {
    let mapping: EntityMapping
    /// What is selected, of the table `t0`.
    let columns: String
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
        columnCount = selected.count
    }

    /// Makes a row.
    ///
    /// - Returns: The row; `nil` if its entity is not one that the shape covers.
    /// - Throws: `fileReadCorruptFile` (259) for a number that a `Decimal` cannot hold.
    func row(_ result: ResultRow, stamp: UInt32, _ queries: RowQueries) throws -> Row? {
        let number = result.int64(Self.entityPosition) &- selected.firstNumber
        guard number >= 0, number < selected.entities.count else { return nil }
        let entity = selected.entities[Int(number)]
        let row = Row(
            shape: entity.shape,
            key: result.int64(Self.keyPosition),
            version: result.int64(Self.versionPosition),
            stamp: stamp
        )
        let target = row.unsafe
        // The null bits of the first slots are gathered here, and written once.
        var nulls = UInt32.max
        for column in entity.columns {
            let position = Int(column.position)
            let bytes = result.bytes(position)
            // Only what has no bytes may be null, so most values need not be asked.
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
                    // What is written so far counts, so that it is released.
                    target.header.pointee.nulls = nulls
                    throw PostgreSQLBoundary.damaged(
                        queries.place,
                        "\"\(row.layout.slots[Int(column.slot)].name)\" of row \(row.key) of \(mapping.table.raw) is no number that a Decimal can hold."
                    )
                }
                target.pointer(Decimal.self, word).initialize(to: decimal)
            }
            if column.slot < 32 { nulls &= ~(1 << UInt32(column.slot)) } else { target.markPresent(Int(column.slot)) }
        }
        target.header.pointee.nulls = nulls
        return row
    }
}
