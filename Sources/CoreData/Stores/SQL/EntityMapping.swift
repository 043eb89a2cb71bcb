/// Where the rows of one entity lie in a SQL store, and their properties in those rows.
///
/// This is what statements are made from: readers, writers and the compiler of predicates all ask here for names.
final class EntityMapping: Sendable {
    let layout: EntityLayout
    /// The entity's number in this store, which `Z_ENT` holds.
    ///
    /// It differs from the model's own number when the store has one configuration of the model only.
    let number: Int
    /// The number, in this store, of the root of the hierarchy, which has the row of `Z_PRIMARYKEY` that counts keys.
    let rootNumber: Int
    /// The table that the whole hierarchy shares.
    let table: SQLName
    /// The numbers, in this store, of the entity and of all that inherit from it.
    let subtree: ClosedRange<Int>
    /// Whether the hierarchy has other entities, whose rows `Z_ENT` tells apart.
    let isShared: Bool
    /// The columns of the layout's slots, in the same order.
    let columns: [SlotColumn]
    /// How each to-many relationship of the layout is stored, in the same order.
    let toMany: [ToManyMapping]

    init(
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
    }

    /// The column of an attribute, of a composite attribute's leaf, or of a to-one relationship.
    func column(named name: String) -> SlotColumn? {
        layout.slot(named: name).map { columns[$0.index] }
    }
}

/// The columns that hold one slot.
struct SlotColumn: Sendable {
    /// The value, or the destination's key.
    ///
    /// `nil` for a relationship to an entity that the store does not hold: it is null.
    let name: SQLName?
    /// The number of the concrete destination entity, where the declared one has sub-entities.
    var entity: SQLName?
    /// The position in the ordered to-many relationship at the other end.
    var order: SQLName?
    /// Whether the store computes the value, by triggers.
    var isDerived = false
    /// Whether a tag in front of the bytes tells if they are here or in a file.
    var isTagged = false
}

/// How the members of a to-many relationship are found.
enum ToManyMapping: Sendable {
    /// Each member's row has the owner's key: the to-one relationship at the other end, or a column that is there only
    /// for a relationship without an inverse.
    case key(KeyColumn)
    /// A table has a row for each pair.
    case join(JoinSide)
    /// It is not stored: a transient relationship, or one to an entity that the store does not hold.
    case absent

    /// A column of the members' table with the key of their owner.
    struct KeyColumn: Sendable {
        /// The table of the members.
        let table: SQLName
        let column: SQLName
        /// The position among the owner's members, for an ordered relationship.
        let order: SQLName?
        /// Whether the column is no member's property, since the relationship has no inverse.
        let isWithoutInverse: Bool
    }

    /// A join table as seen from one of its ends.
    struct JoinSide: Sendable {
        let table: SQLName
        /// The column with this side's key.
        let owner: SQLName
        /// The column with the key of the other side.
        let member: SQLName
        /// The position of the member among the owner's members, for an ordered relationship.
        let order: SQLName?
        /// The position of the owner among the member's own members, when the inverse is ordered.
        let inverseOrder: SQLName?
        /// The table of the members.
        let memberTable: SQLName
        /// Whether the relationship is its own inverse, so that each pair is there in both directions.
        let isSymmetric: Bool
    }
}
