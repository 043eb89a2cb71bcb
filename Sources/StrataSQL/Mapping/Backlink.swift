import StrataRows

/// A to-one relationship by which rows may lead to one that is deleted.
package struct Backlink {
    package let member: EntityMapping
    package let column: SQLName
    /// What makes it lead nowhere, in an UPDATE.
    package let assignments: String
    package let name: String

    /// `nil` if the store keeps no column for it.
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
