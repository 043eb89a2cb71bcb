/// The rows that a cache has, for the store that answers a fetch: it need not make a row that is here already.
///
///     key and version of a row in the store → the cached row of that version, or nil: the store makes the row
///
/// An engine may use it only if a row with the same key and version has the same values, unless
/// ``RowStore/commitsOfOthers`` has grown meanwhile: the caller checks that after the read. Entities with derived
/// attributes are left out, because derived values change without a new version.
///
/// It belongs to one read. If the cache has few of its rows, it stops looking for them.
public struct KnownRows {
    private let cache: RowCache
    /// The rows of the hierarchy, guarded by the lock of the cache.
    private let table: ObjectTable<RowBuffer>
    /// The number of tables that the cache had removed when it had this one.
    private let removedTables: Int
    /// The number of rows that may still be missing in the cache.
    private var patience = KnownRows.mostMisses
    private let use = Use()

    /// The part that all copies of a value share: the store gets a copy in the plan of the fetch.
    private final class Use {
        var isMade = false
    }

    /// Whether the store has taken a row; if not, then all rows are as the store has read them.
    package var wasUsed: Bool { use.isMade }

    private static let mostMisses = 64

    /// The rows of a hierarchy; `nil` if there are none.
    package init?(_ cache: RowCache, root: Int) {
        guard let (table, removedTables) = cache.table(root: root) else { return nil }
        self.cache = cache
        self.table = table
        self.removedTables = removedTables
    }

    /// The row of a version; `nil` if the store has to make it.
    ///
    /// - Parameters:
    ///   - key: The key of the row.
    ///   - version: The version that the store has, with its offset.
    ///   - layout: The layout of the row's entity.
    ///   - stamp: The time of reading: the row counts as read then.
    /// - Returns: The cached row.
    /// - Complexity: O(1), under the lock of the cache.
    public mutating func row(_ key: Int64, version: Int64, _ layout: Unmanaged<EntityLayout>, stamp: UInt32) -> Row? {
        guard patience > 0 else { return nil }
        let (table, removedTables) = (table, removedTables)
        let found = cache.state.withLock { state -> Row? in
            guard state.removedTables == removedTables, let known = table[key] else { return nil }
            let row = UnsafeRow(known)
            let header = row.header
            guard header.pointee.version == version, header.pointee.layout.toOpaque() == layout.toOpaque(),
                !layout._withUnsafeGuaranteedRef({ $0.hasDerivedSlots })
            else { return nil }
            // As long as the difference is not noticed, the memory of the row need not be written to.
            if stamp >= row.stamp &+ UnsafeRow.noticedSteps { row.stamp = stamp }
            return Row(shared: known)
        }
        guard let found else {
            patience -= 1
            return nil
        }
        if patience < Self.mostMisses { patience += 1 }
        use.isMade = true
        return found
    }
}

extension RowCache {
    /// The table of a hierarchy, and the number of tables that were removed before; `nil` if it has no rows.
    fileprivate func table(root: Int) -> (ObjectTable<RowBuffer>, Int)? {
        state.withLock { state in
            guard let table = state.tables[root], table.count > 0 else { return nil }
            return (table, state.removedTables)
        }
    }
}
