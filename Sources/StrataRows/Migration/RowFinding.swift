/// Rows of one entity that do not fit a new version of a model, or whose values do not.
package struct RowFinding: Sendable {
    package let entity: String
    /// The property; `nil` if the problem is about the entity as a whole or several properties together.
    package let property: String?
    /// The problem, with the number of rows.
    package let reason: String

    package init(entity: String, property: String?, reason: String) {
        self.entity = entity
        self.property = property
        self.reason = reason
    }
}
