import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The columns that a statement selects for rows of one entity, and the way to make rows from them.
///
/// A shape covers an entity alone, or with all of its sub-entities. In the second case the number of each row's entity
/// decides which of the columns it has. It is made when the store is opened, and is immutable.
final class RowShape: Sendable {
    let mapping: EntityMapping
    /// The selected columns of the table `t0`.
    let columns: String
    /// The statement that reads one row by its key.
    let selectByKey: String
    /// The statement that reads the rows with given keys.
    let selectByKeys: String
    /// The number of selected columns.
    let columnCount: Int
    /// The entities by their numbers, beginning with that of `mapping`.
    ///
    /// They are in manually allocated memory, so that no reference is counted for each row.
    private nonisolated(unsafe) let entities: UnsafeMutableBufferPointer<Entity>
    // Only the initialiser writes `entities` and the memory that it points at.
    private let firstNumber: Int64

    /// The columns from which a row of one entity is made.
    private struct Entity {
        let shape: UnsafeRowShape
        let columns: UnsafeMutableBufferPointer<Column>
    }

    /// One column, and the place of its value in the row.
    private struct Column {
        let position: Int32
        /// The column with the destination's entity number, or -1.
        let entityPosition: Int32
        let kind: SlotKind
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
        let readers = numbers.compactMap { store.entity(storeNumber: Int64($0)) }.map { entity in
            let columns = entity.layout.slots.compactMap { slot -> Column? in
                let column = entity.columns[slot.index]
                guard let name = column.name, wanted?.contains(slot.index) ?? true else { return nil }
                let value = position(name)
                return Column(
                    position: Int32(value),
                    entityPosition: Int32(column.entity.map(position) ?? -1),
                    kind: slot.kind,
                    slot: Int32(slot.index),
                    word: Int32(slot.word),
                    destinationNumber: Int32(slot.destinationNumber)
                )
            }
            return Entity(shape: entity.layout.rowShape, columns: Self.allocate(columns))
        }
        entities = Self.allocate(readers)
        firstNumber = Int64(mapping.number)
        columns = names.joined(separator: ", ")
        columnCount = names.count
        selectByKey = "SELECT \(columns) FROM \(mapping.table) AS t0 WHERE t0.\(naming.key) = $1"
        selectByKeys = "SELECT \(columns) FROM \(mapping.table) AS t0 WHERE t0.\(naming.key) = ANY($1)"
    }

    deinit {
        for entity in entities { entity.columns.deallocate() }
        entities.deallocate()
    }

    private static func allocate<Element>(_ elements: [Element]) -> UnsafeMutableBufferPointer<Element> {
        let buffer = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = buffer.initialize(from: elements)
        return buffer
    }

    /// Makes a row.
    ///
    /// - Returns: The row; `nil` if the shape does not cover its entity.
    /// - Throws: `fileReadCorruptFile` (259) for a number that a `Decimal` cannot hold.
    func row(_ result: ResultRow, stamp: UInt32, _ queries: RowQueries) throws -> Row? {
        let number = result.int64(Self.entityPosition) &- firstNumber
        guard number >= 0, number < entities.count else { return nil }
        let entity = entities[Int(number)]
        let row = Row(
            shape: entity.shape,
            key: result.int64(Self.keyPosition),
            version: result.int64(Self.versionPosition),
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
