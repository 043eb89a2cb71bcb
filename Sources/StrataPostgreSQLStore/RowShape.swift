import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The columns that a statement selects for rows of one entity, and how a row is made of them.
///
/// A shape covers an entity alone, or with all of its sub-entities; then the number of each row's entity decides which of the
/// columns it has. Made when the store is opened; immutable.
final class RowShape: Sendable {
    let mapping: EntityMapping
    /// What is selected, of the table `t0`.
    let columns: String
    /// How many columns are selected.
    let columnCount: Int
    // Written by the initialiser alone.
    private nonisolated(unsafe) let entities: [Entity]

    /// What a row of one entity takes from the columns.
    private struct Entity {
        let shape: UnsafeRowShape
        let columns: [Column]
    }

    /// One column, and where its value goes.
    private struct Column {
        let position: Int
        /// The column with the destination's entity number, or -1.
        let entityPosition: Int
        let slot: Slot
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
        let naming = store.dialect.naming
        var names = ["t0.\(naming.key)", "t0.\(naming.entity)", "t0.\(naming.version)"]
        var positions: [SQLName: Int] = [:]
        func position(_ name: SQLName) -> Int {
            if let known = positions[name] { return known }
            names.append("t0.\(name)")
            positions[name] = names.count - 1
            return names.count - 1
        }
        let numbers = isDeep ? Array(mapping.subtree) : [mapping.number]
        entities = numbers.compactMap { store.entity(storeNumber: Int64($0)) }.map { entity in
            let columns = entity.layout.slots.compactMap { slot -> Column? in
                let column = entity.columns[slot.index]
                guard let name = column.name, wanted?.contains(slot.index) ?? true else { return nil }
                let value = position(name)
                return Column(position: value, entityPosition: column.entity.map(position) ?? -1, slot: slot)
            }
            return Entity(shape: entity.layout.rowShape, columns: columns)
        }
        columns = names.joined(separator: ", ")
        columnCount = names.count
    }

    /// Makes a row.
    ///
    /// - Returns: The row; `nil` if its entity is not one that the shape covers.
    /// - Throws: `fileReadCorruptFile` (259) for a number that a `Decimal` cannot hold.
    func row(_ result: ResultRow, stamp: UInt32, _ queries: RowQueries) throws -> Row? {
        let index = Int(result.int64(Self.entityPosition)) - mapping.number
        guard entities.indices.contains(index) else { return nil }
        let entity = entities[index]
        let row = Row(
            shape: entity.shape,
            key: result.int64(Self.keyPosition),
            version: result.int64(Self.versionPosition),
            stamp: stamp
        )
        for column in entity.columns where !result.isNull(column.position) {
            let (slot, position) = (column.slot, column.position)
            switch slot.kind {
            case .int: row.setInt(result.int64(position), slot)
            case .double: row.setDouble(result.double(position), slot)
            case .string: row.setString(result.string(position), slot)
            case .data: row.setData(result.data(position), slot)
            case .uuid: if let uuid = result.uuid(position) { row.setUUID(uuid, slot) }
            case .decimal:
                guard let decimal = result.decimal(position) else {
                    throw PostgreSQLBoundary.damaged(
                        queries.place,
                        "\"\(slot.name)\" of row \(row.key) of \(mapping.table.raw) is no number of up to 38 digits."
                    )
                }
                row.setDecimal(decimal, slot)
            case .reference:
                var number = slot.destinationNumber
                if column.entityPosition >= 0 {
                    number = queries.modelNumber(result.int64(column.entityPosition), number)
                }
                row.setReference(ObjectReference(key: result.int64(position), entity: number), slot)
            }
        }
        return row
    }
}
