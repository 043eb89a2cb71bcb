import StrataLocks

/// The rows that a commit is about to replace in a store.
///
///     begins → the store commits → the cache gets the new rows, and the pending commit ends
///
/// Right after the commit, readers of the store see the new rows, but the cache still has the old ones. A program that
/// has seen a new value must not get the old one from its next look-up. So the cache does not answer for rows of a
/// commit that has begun and has not ended, and they are read from the store. With a write-ahead log no reader waits for
/// the commit.
///
/// One thread fills it. Then it belongs to one ``RowCache``, and the lock of that cache guards it.
package final class PendingCommit: @unchecked Sendable {
    private struct Keys {
        let root: Int
        var list: [Int64] = []
        /// The keys of a long list; `nil` until the first reader asks, because most commits end before that.
        var set: Set<Int64>?

        mutating func contains(_ key: Int64) -> Bool {
            if list.count <= 8 { return list.contains(key) }
            if set == nil { set = Set(list) }
            return set?.contains(key) ?? false
        }
    }

    private var keys: [Keys] = []
    /// The numbers of the root entities any row of which may be replaced, which are few.
    private var roots: [Int] = []
    /// The position of the last key in `keys`: rows mostly come in runs of one hierarchy.
    private var latest = 0

    package init() {}

    package var isEmpty: Bool { keys.isEmpty && roots.isEmpty }

    /// Adds a row.
    ///
    /// If a hierarchy has very many of them, then all of its rows count, so that the lock of the cache is never held for long.
    package func add(_ key: Int64, root: Int) {
        if latest >= keys.count || keys[latest].root != root {
            guard !roots.contains(root) else { return }
            latest = keys.firstIndex { $0.root == root } ?? keys.count
            if latest == keys.count { keys.append(Keys(root: root)) }
        }
        keys[latest].list.append(key)
        if keys[latest].list.count > WorkSize.pendingRows { addAll(root: root) }
    }

    /// Adds all rows of a hierarchy.
    package func addAll(root: Int) {
        if !roots.contains(root) { roots.append(root) }
        keys.removeAll { $0.root == root }
    }

    /// Whether the commit may replace a row.
    fileprivate func replaces(_ key: Int64, _ root: Int) -> Bool {
        if roots.contains(root) { return true }
        for index in keys.indices where keys[index].root == root { return keys[index].contains(key) }
        return false
    }
}

extension RowCache {
    /// Lets readers of the rows of a commit read the store, from now on until the commit ends.
    ///
    /// - Parameters:
    ///   - commit: The rows, which the caller no longer changes.
    ///   - former: The commit of an earlier attempt, which ends.
    /// - Returns: The commit, for ``end(_:)``; `nil` if it replaces no row.
    package func begin(_ commit: PendingCommit, insteadOf former: PendingCommit? = nil) -> PendingCommit? {
        guard !commit.isEmpty || former != nil else { return nil }
        state.withLock { state in
            if let former { state.pending.removeAll { $0 === former } }
            if !commit.isEmpty { state.pending.append(commit) }
            noteCommits(state)
        }
        return commit.isEmpty ? nil : commit
    }

    /// Ends a commit, whose rows were published or forgotten, or which has failed.
    ///
    /// It has no effect if the commit has ended.
    package func end(_ commit: PendingCommit) {
        state.withLock { state in
            state.pending.removeAll { $0 === commit }
            noteCommits(state)
        }
    }
}

extension RowCache.State {
    /// Whether a commit that has begun and has not ended may replace a row.
    @inline(__always)
    func isBeingReplaced(_ key: Int64, _ root: Int) -> Bool {
        !pending.isEmpty && pending.contains { $0.replaces(key, root) }
    }
}
