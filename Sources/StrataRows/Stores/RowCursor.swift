/// The answer to a fetch, taken piece by piece.
///
/// One thread at a time uses it, which need not always be the same one.
package protocol RowCursor: AnyObject {
    /// Up to `count` more rows, in the order asked for; none at the end.
    func next(_ count: Int) throws -> [Row]

    /// The same rows in pages, if the cursor can pack them; otherwise `nil`, and nothing was read.
    ///
    /// A cursor that cannot pack rows uses the default.
    ///
    /// - Parameters:
    ///   - count: The most rows.
    ///   - owner: An object that the caller needs with the rows; each page holds it.
    /// - Returns: The pages, none at the end.
    /// - Throws: As ``next(_:)``.
    func nextPages(_ count: Int, for owner: (AnyObject & Sendable)?) throws -> [RowPage]?
}

extension RowCursor {
    package func nextPages(_ count: Int, for owner: (AnyObject & Sendable)?) throws -> [RowPage]? { nil }
}

/// A cursor over rows that are already in memory.
package final class ListCursor: RowCursor {
    private let rows: [Row]
    private var position = 0

    package init(_ rows: [Row]) { self.rows = rows }

    package func next(_ count: Int) -> [Row] {
        let piece = Array(rows[position...].prefix(count))
        position += piece.count
        return piece
    }
}

extension RowSource {
    package func cursor(for plan: FetchPlan) throws -> any RowCursor { ListCursor(try rows(for: plan)) }
}
