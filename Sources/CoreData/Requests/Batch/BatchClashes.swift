/// Rows of a batch insert that break uniqueness constraints, under a policy that does not resolve them.
///
/// A store throws it; the context makes a `CocoaError` of it.
struct BatchClashes: Error {
    /// How many are told at most.
    static let limit = 100

    let layout: EntityLayout
    let clashes: [BatchClash]
}

/// A row of a batch insert whose unique values another one has.
struct BatchClash {
    /// The place of the row in the order of insertion, from 0.
    let position: Int
    /// The names of the attributes that must be unique together.
    let constraint: [String]
    let row: Row
    /// The stored row that has the values; `nil` if it is another one of the batch.
    let stored: Row?
    /// The names of the properties whose new values the stored row's entity has no place for.
    var misfits: [String] = []
}
