/// Rows that may have changed, by the number of their root entity.
package struct ChangedRows: Sendable {
    package private(set) var keys: [Int: Set<Int64>] = [:]
    /// The number of keys.
    ///
    /// Each key counts once in its hierarchy.
    package var count: Int { keys.values.reduce(0) { $0 + $1.count } }

    package init() {}

    package mutating func add(_ keys: some Sequence<Int64>, root: Int) {
        self.keys[root, default: []].formUnion(keys)
    }

    package mutating func formUnion(_ other: ChangedRows) {
        keys.merge(other.keys) { $0.union($1) }
    }
}
