import StrataPredicates
import StrataRows

/// The place of the rows of one entity in a SQL store, and of their properties.
///
/// Statements are made from this: readers, writers and the compiler of predicates take all names from here.
package final class EntityMapping: Sendable {
    package let layout: EntityLayout
    /// The entity's number in this store, which `Z_ENT` holds.
    ///
    /// It differs from the model's own number when the store has one configuration of the model only.
    package let number: Int
    /// The number, in this store, of the root of the hierarchy, which has the row of `Z_PRIMARYKEY` that counts keys.
    package let rootNumber: Int
    /// The table that the whole hierarchy shares.
    package let table: SQLName
    /// The numbers, in this store, of the entity and of all that inherit from it.
    package let subtree: ClosedRange<Int>
    /// Whether the hierarchy has other entities, whose rows `Z_ENT` distinguishes.
    package let isShared: Bool
    /// The columns of the layout's slots, in the same order.
    package let columns: [SlotColumn]
    /// How each to-many relationship of the layout is stored, in the same order.
    package let toMany: [ToManyMapping]

    package init(
        layout: EntityLayout,
        number: Int,
        rootNumber: Int,
        table: SQLName,
        subtree: ClosedRange<Int>,
        isShared: Bool,
        columns: [SlotColumn],
        toMany: [ToManyMapping]
    ) {
        self.layout = layout
        self.number = number
        self.rootNumber = rootNumber
        self.table = table
        self.subtree = subtree
        self.isShared = isShared
        self.columns = columns
        self.toMany = toMany
        foldedColumns = columns.enumerated().flatMap { slot, column in
            column.folded.map { FoldedColumn(slot: slot, folding: $0.folding, name: $0.name) }
        }
    }

    /// Columns without a slot: the folded texts of attributes.
    ///
    /// Predicates that were rewritten for the database name them by positions after those of the slots.
    package let foldedColumns: [FoldedColumn]

    /// A column with the text of an attribute in the form for comparisons that ignore case or accents.
    package struct FoldedColumn: Sendable {
        /// The attribute's slot.
        package let slot: Int
        package let folding: StringFolding
        package let name: SQLName
    }

    /// The column at a position that a predicate names.
    package func column(at position: Int) -> SlotColumn {
        position < columns.count ? columns[position] : SlotColumn(name: foldedColumns[position - columns.count].name)
    }

    /// The position of the column with the folded text of an attribute; `nil` if there is none.
    package func position(ofSlot slot: Int, foldedBy folding: StringFolding) -> Int? {
        foldedColumns.firstIndex { $0.slot == slot && $0.folding == folding }.map { columns.count + $0 }
    }

    /// The column of an attribute, of a composite attribute's leaf, or of a to-one relationship.
    package func column(named name: String) -> SlotColumn? {
        layout.slot(named: name).map { columns[$0.index] }
    }

    /// The columns of a property: several of a composite attribute; `nil` if the table lacks one of them.
    package func columns(named name: String) -> [SQLName]? {
        let slots = layout.slots(named: name)
        let names = slots.compactMap { columns[$0.index].name }
        return names.isEmpty || names.count < slots.count ? nil : names
    }

    /// The condition that a row lacks a value that the model requires; `nil` if it requires none.
    ///
    /// An element of an optional composite attribute is required only if another element has a value.
    package func lack(of slot: Slot) -> String? {
        guard slot.kind != .reference, !slot.isOptional, !slot.isDerived, let column = columns[slot.index].name else {
            return nil
        }
        guard let elements = layout.optionalElements[slot.index] else { return "\(column) IS NULL" }
        return "\(column) IS NULL AND " + MigratedValue.hasAny(elements.compactMap { columns[$0].name })
    }
}

/// The columns of one slot.
package struct SlotColumn: Sendable {
    /// The column with the value, or with the destination's key.
    ///
    /// It is `nil` for a relationship to an entity that the store does not hold. The value is then null.
    package let name: SQLName?
    /// The column with the number of the concrete destination entity, if the declared one has sub-entities.
    package var entity: SQLName?
    /// The column with the position in the ordered to-many relationship at the other end.
    package var order: SQLName?
    /// Whether the store computes the value, by triggers.
    package var isDerived = false
    /// Whether a tag in front of the bytes says whether they are here or in a file.
    package var isTagged = false
    /// The columns with the folded text.
    package var folded: [(folding: StringFolding, name: SQLName)] = []

    package init(
        name: SQLName?,
        entity: SQLName? = nil,
        order: SQLName? = nil,
        isDerived: Bool = false,
        isTagged: Bool = false
    ) {
        self.name = name
        self.entity = entity
        self.order = order
        self.isDerived = isDerived
        self.isTagged = isTagged
    }
}

/// How the members of a to-many relationship are found.
package enum ToManyMapping: Sendable {
    /// Each member's row has the owner's key.
    ///
    /// It is in the column of the to-one relationship at the other end, or in a column for a relationship without an
    /// inverse.
    case key(KeyColumn)
    /// A table has a row for each pair.
    case join(JoinSide)
    /// It is not stored: a transient relationship, or one to an entity that the store does not hold.
    case absent

    /// A column of the members' table with the key of their owner.
    package struct KeyColumn: Sendable {
        /// The table of the members.
        package let table: SQLName
        package let column: SQLName
        /// The position among the owner's members, for an ordered relationship.
        package let order: SQLName?
        /// Whether the column is not a member's property, because the relationship has no inverse.
        package let isWithoutInverse: Bool

        package init(table: SQLName, column: SQLName, order: SQLName?, isWithoutInverse: Bool) {
            self.table = table
            self.column = column
            self.order = order
            self.isWithoutInverse = isWithoutInverse
        }
    }

    /// A join table as seen from one of its ends.
    package struct JoinSide: Sendable {
        package let table: SQLName
        /// The column with this side's key.
        package let owner: SQLName
        /// The column with the key of the other side.
        package let member: SQLName
        /// The position of the member among the owner's members, for an ordered relationship.
        package let order: SQLName?
        /// The position of the owner among the member's own members, if the inverse is ordered.
        package let inverseOrder: SQLName?
        /// The table of the members.
        package let memberTable: SQLName
        /// Whether the relationship is its own inverse, so that each pair is there in both directions.
        package let isSymmetric: Bool

        package init(
            table: SQLName,
            owner: SQLName,
            member: SQLName,
            order: SQLName?,
            inverseOrder: SQLName?,
            memberTable: SQLName,
            isSymmetric: Bool
        ) {
            self.table = table
            self.owner = owner
            self.member = member
            self.order = order
            self.inverseOrder = inverseOrder
            self.memberTable = memberTable
            self.isSymmetric = isSymmetric
        }
    }
}
