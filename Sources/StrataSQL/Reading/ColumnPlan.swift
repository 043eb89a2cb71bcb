import StrataRows

/// The columns that a statement selects for rows of one entity, and the place of each value in a row.
///
/// A plan covers an entity alone, or with all of its sub-entities. In the second case, the entity number of each row
/// shows which of the columns it has. A plan is made when the store is opened, and is immutable.
///
/// An engine runs through the columns of a row itself, because it knows how its database returns values. So `Entity` and
/// `Column` are public and contain no references, as in `StrataRows`.
public struct ColumnPlan: ~Copyable, Sendable {
    /// The columns from which a row of one entity is made.
    public struct Entity {
        /// The data from which the row is made.
        public let shape: UnsafeRowShape
        /// The columns, in the order of the entity's slots.
        public let columns: UnsafeBufferPointer<Column>
    }

    /// One column, and the place for its value.
    public struct Column {
        /// The position among the selected columns.
        public let position: Int32
        /// The column with the destination's entity number, or -1.
        public let entityPosition: Int32
        /// The kind of the value.
        public let kind: SlotKind
        /// Whether a tag in front of the bytes says whether they are here or in a file.
        public let isTagged: Bool
        /// The index of the slot.
        public let slot: Int32
        /// The first word of the value in the row.
        public let word: Int32
        /// The number in the model of the declared destination, for a to-one relationship.
        public let destinationNumber: Int32
    }

    package let mapping: EntityMapping
    /// The selected columns of the table `t0`.
    package let columns: String
    /// The number of selected columns.
    package let columnCount: Int
    /// The entities by their numbers, starting with that of `mapping`.
    ///
    /// They are in separate memory, so that no reference is counted for each row.
    // Only the initialiser writes `entities` and the memory that it points at.
    @usableFromInline nonisolated(unsafe) let entities: UnsafeBufferPointer<Entity>
    @usableFromInline let firstNumber: Int64

    /// The layouts of the entities that the plan covers.
    package var layouts: [EntityLayout] { entities.map { $0.shape.layout.takeUnretainedValue() } }

    /// The position of the primary key.
    @inlinable public static var keyPosition: Int { 0 }
    /// The position of the entity's number in the store.
    @inlinable public static var entityPosition: Int { 1 }
    /// The position of the version.
    @inlinable public static var versionPosition: Int { 2 }

    /// Makes the plan of an entity.
    ///
    /// - Parameters:
    ///   - mapping: The mapping of the entity.
    ///   - store: The mapping of the store.
    ///   - isDeep: Whether the plan covers sub-entities too.
    ///   - wanted: The slots to read; the others are null in the rows. `nil` for all slots.
    package init(_ mapping: EntityMapping, in store: SQLMapping, isDeep: Bool, wanted: SlotSet? = nil) {
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
        let entities = numbers.compactMap { store.entity(storeNumber: Int64($0)) }.map { entity in
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
        self.mapping = mapping
        self.entities = Self.allocate(entities)
        firstNumber = Int64(mapping.number)
        columns = names.joined(separator: ", ")
        columnCount = names.count
    }

    deinit {
        for entity in entities { entity.columns.deallocate() }
        entities.deallocate()
    }

    private static func allocate<Element>(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
        let buffer = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = buffer.initialize(from: elements)
        return UnsafeBufferPointer(buffer)
    }

    /// The columns of the entity with a number in the store; `nil` if the plan does not cover it.
    @inlinable
    @inline(__always)
    public func entity(_ storeNumber: Int64) -> Entity? {
        let index = storeNumber &- firstNumber
        guard index >= 0, index < entities.count else { return nil }
        return entities[Int(index)]
    }
}

extension ColumnPlan.Column {
    /// Records that the row has a value for the column.
    ///
    /// The null bits of the first slots are collected in `nulls`, and the engine writes them once. Those of the others
    /// are in the row.
    @inlinable
    @inline(__always)
    public func markPresent(_ nulls: inout UInt32, in row: UnsafeRow) {
        if slot < 32 { nulls &= ~(1 << UInt32(slot)) } else { row.markPresent(Int(slot)) }
    }
}
