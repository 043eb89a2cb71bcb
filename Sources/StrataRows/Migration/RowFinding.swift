/// Rows of one entity that do not fit a new version of a model, or have values that do not.
package struct RowFinding: Sendable {
    package let entity: String
    /// `nil` if the entity as a whole, or several properties together, are the matter.
    package let property: String?
    /// The problem, with the number of rows.
    package let reason: String

    package init(entity: String, property: String?, reason: String) {
        self.entity = entity
        self.property = property
        self.reason = reason
    }
}
