/// The table of one hierarchy of entities.
struct SQLTable: Sendable {
    let name: SQLName
    /// The mappings of the hierarchy, the root first.
    let entities: [EntityMapping]
    /// The columns behind `Z_PK`, `Z_ENT` and `Z_OPT`, in the order of creation.
    let columns: [SQLColumn]
    /// Keys of owners in relationships that have no inverse.
    let inverselessKeys: [SQLName]
    let constraints: [SQLConstraint]
}

/// A column as it is declared.
struct SQLColumn: Sendable {
    let name: SQLName
    let type: String
}

/// A uniqueness constraint: values that no two rows of the table may share.
struct SQLConstraint: Sendable {
    /// The entity that declares the constraint.
    let layout: EntityLayout
    let slots: [Slot]
    let columns: [SQLName]
    let index: SQLName

    var attributes: [String] { slots.map(\.name) }

    /// Whether rows with this layout have all of the columns.
    func applies(to layout: EntityLayout) -> Bool {
        layout.shares(slots)
    }
}

/// The table of a many-to-many relationship.
struct SQLJoinTable: Sendable {
    let name: SQLName
    /// The entity that declares the relationship which gives the table its name.
    let ownerNumber: Int
    /// The entity at the other end of that relationship.
    let memberNumber: Int
    /// The two key columns, then those of positions.
    let first: SQLName
    let second: SQLName
    let orders: [SQLName]
    /// The tables that the two columns point into.
    let firstTable: SQLName
    let secondTable: SQLName
    let isSymmetric: Bool
}
