import StrataRows

/// A to-one relationship that may lead from rows to a deleted one.
package struct Backlink {
    package let member: EntityMapping
    package let column: SQLName
    /// The assignments that clear it, in an UPDATE.
    package let assignments: String
    package let name: String

    /// Returns `nil` if the store has no column for it.
    package init?(_ inverse: Relationship, _ mapping: SQLMapping) {
        guard let member = mapping.entity(modelNumber: inverse.entity.number),
            let place = member.column(named: inverse.name), let column = place.name
        else { return nil }
        self.member = member
        self.column = column
        name = inverse.name
        assignments = [column, place.entity, place.order].compactMap { $0.map { "\($0) = NULL" } }
            .joined(separator: ", ")
    }
}
