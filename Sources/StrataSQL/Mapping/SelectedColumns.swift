import StrataRows

/// The columns that a statement selects for rows of one entity, and which of them each row has.
///
/// They cover an entity alone, or with all of its sub-entities; then the number of each row's entity decides which of the
/// columns it has. Made when the store is opened; immutable.
package final class SelectedColumns: Sendable {
    /// What is selected, of the table `t0`: the key, the number of the entity, the version, and then the values.
    package let list: String
    /// How many columns are selected.
    package let count: Int
    /// By the number of the entity, from ``firstNumber`` on.
    ///
    /// In memory of its own, so that no reference is counted for each row.
    package nonisolated(unsafe) let entities: UnsafeMutableBufferPointer<Entity>
    // `entities` and what it points at are written by the initialiser alone.
    package let firstNumber: Int64

    /// What a row of one entity takes from the columns.
    package struct Entity {
        package let shape: UnsafeRowShape
        package let columns: UnsafeMutableBufferPointer<Column>
    }

    /// One column, and where its value goes.
    package struct Column {
        package let position: Int32
        /// The column with the destination's entity number, or -1.
        package let entityPosition: Int32
        package let kind: SlotKind
        /// Whether a byte before the data says where they are.
        package let isTagged: Bool
        package let slot: Int32
        package let word: Int32
        package let destinationNumber: Int32
    }

    package static let keyPosition = 0
    package static let entityPosition = 1
    package static let versionPosition = 2

    /// Lists the columns of an entity.
    ///
    /// - Parameters:
    ///   - mapping: The mapping of the entity.
    ///   - store: The mapping of the store.
    ///   - isDeep: Whether sub-entities are covered too.
    ///   - wanted: The slots to read; the others are null in the rows. `nil` for all slots.
    package init(_ mapping: EntityMapping, in store: SQLMapping, isDeep: Bool, wanted: SlotSet?) {
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
        let all = numbers.compactMap { store.entity(storeNumber: Int64($0)) }.map { entity in
            let columns = entity.layout.slots.compactMap { slot -> Column? in
                let column = entity.columns[slot.index]
                guard let name = column.name, wanted?.contains(slot.index) ?? true else { return nil }
                let value = position(name)
                return Column(
                    position: Int32(value),
                    entityPosition: Int32(column.entity.map(position) ?? -1),
                    kind: slot.kind,
                    isTagged: column.isTagged,
                    slot: Int32(slot.index),
                    word: Int32(slot.word),
                    destinationNumber: Int32(slot.destinationNumber)
                )
            }
            return Entity(shape: entity.layout.rowShape, columns: Self.allocate(columns))
        }
        entities = Self.allocate(all)
        firstNumber = Int64(mapping.number)
        list = names.joined(separator: ", ")
        count = names.count
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
}
