import StrataKeys

/// Rows of a batch insert that break uniqueness constraints, under a policy that does not resolve them.
///
/// A store throws it; the context makes a `CocoaError` of it.
package struct BatchClashes: Error {
    /// The most clashes that are reported.
    package static let limit = 100

    package let layout: EntityLayout
    package let clashes: [BatchClash]

    package init(layout: EntityLayout, clashes: [BatchClash]) {
        self.layout = layout
        self.clashes = clashes
    }
}

/// A row of a batch insert whose unique values another row has.
package struct BatchClash {
    /// The place of the row in the order of insertion, from 0.
    package let position: Int
    /// The names of the attributes that must be unique together.
    package let constraint: [String]
    package let row: Row
    /// The stored row that has the values; `nil` if another row of the batch has them.
    package let stored: Row?
    /// The names of the properties whose new values have no place in the stored row's entity.
    package var misfits: [String] = []

    package init(position: Int, constraint: [String], row: Row, stored: Row?, misfits: [String] = []) {
        self.position = position
        self.constraint = constraint
        self.row = row
        self.stored = stored
        self.misfits = misfits
    }
}
