import StrataRows

/// The table of one hierarchy of entities.
package struct SQLTable: Sendable {
    package let name: SQLName
    /// The mappings of the hierarchy, the root first.
    package let entities: [EntityMapping]
    /// The columns after `Z_PK`, `Z_ENT` and `Z_OPT`, in the order of creation.
    package let columns: [SQLColumn]
    /// The columns with the keys of owners in relationships that have no inverse.
    package let inverselessKeys: [SQLName]
    package let constraints: [SQLConstraint]

    package init(
        name: SQLName,
        entities: [EntityMapping],
        columns: [SQLColumn],
        inverselessKeys: [SQLName],
        constraints: [SQLConstraint]
    ) {
        self.name = name
        self.entities = entities
        self.columns = columns
        self.inverselessKeys = inverselessKeys
        self.constraints = constraints
    }
}

/// A column in its declared form.
package struct SQLColumn: Sendable {
    package let name: SQLName
    package let type: String

    package init(name: SQLName, type: String) {
        self.name = name
        self.type = type
    }
}

/// A uniqueness constraint: values that no two rows of the table may share.
package struct SQLConstraint: Sendable {
    /// The entity that declares the constraint.
    package let layout: EntityLayout
    /// The names of the attributes, as the model declares them.
    package let attributes: [String]
    /// The slots of the attributes: several of a composite attribute.
    package let slots: [Slot]
    /// The column of each slot.
    package let columns: [SQLName]
    package let index: SQLName

    package init(layout: EntityLayout, attributes: [String], slots: [Slot], columns: [SQLName], index: SQLName) {
        self.layout = layout
        self.attributes = attributes
        self.slots = slots
        self.columns = columns
        self.index = index
    }

    /// Whether rows with this layout have all of the columns.
    package func applies(to layout: EntityLayout) -> Bool {
        layout.shares(slots)
    }
}

/// The table of a many-to-many relationship.
package struct SQLJoinTable: Sendable {
    package let name: SQLName
    /// The entity that declares the relationship which gives the table its name.
    package let ownerNumber: Int
    /// The entity at the other end of that relationship.
    package let memberNumber: Int
    /// The two key columns.
    ///
    /// The columns of positions follow.
    package let first: SQLName
    package let second: SQLName
    package let orders: [SQLName]
    /// The tables that the two columns refer to.
    package let firstTable: SQLName
    package let secondTable: SQLName
    package let isSymmetric: Bool

    package init(
        name: SQLName,
        ownerNumber: Int,
        memberNumber: Int,
        first: SQLName,
        second: SQLName,
        orders: [SQLName],
        firstTable: SQLName,
        secondTable: SQLName,
        isSymmetric: Bool
    ) {
        self.name = name
        self.ownerNumber = ownerNumber
        self.memberNumber = memberNumber
        self.first = first
        self.second = second
        self.orders = orders
        self.firstTable = firstTable
        self.secondTable = secondTable
        self.isSymmetric = isSymmetric
    }
}
