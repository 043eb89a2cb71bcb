import CoreDataEssentials

/// The versions of an incremental store's objects, in the numbers that contexts use.
///
/// Contexts and the row cache require that versions only increase, by one with each save of this coordinator. A store
/// may count differently (by time stamps, or not at all), so each version of a node corresponds to one of these
/// numbers. If the store counts in the same way, then both are equal.
///
/// Only the thread that has the store's turn uses it.
final class NodeVersions: @unchecked Sendable {
    // @unchecked Sendable: guarded by the store's turn.

    fileprivate struct Known {
        /// The version in the numbers of contexts; 0 for an object that was never read or saved.
        var own: Int64 = 0
        /// The version in the store's last answer; `nil` if there was none since this coordinator's last save.
        var node: UInt64?
        var isDeleted = false
        /// The node that was last returned: a store may keep it, and update it during a save.
        weak var given: NSIncrementalStoreNode?
    }

    /// The versions by the number of the root entity, and by key.
    private var tables: [Int: [Int64: Known]] = [:]

    /// The version of an object's newest row for contexts; 0 if it was never read, `nil` if it was deleted.
    func newestVersion(ofKey key: Int64, root: Int) -> Int64? {
        guard let known = tables[root]?[key] else { return 0 }
        return known.isDeleted ? nil : known.own
    }

    /// The version of a node that was just read.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - key: The key of its object.
    ///   - root: The number of the root entity.
    ///   - matches: Whether the node has the values of the last save by this coordinator. It is called only if the
    ///     store's version after that save is not known yet.
    /// - Returns: The version, in the numbers of contexts.
    func read(_ node: NSIncrementalStoreNode, _ key: Int64, root: Int, matches: () -> Bool) -> Int64 {
        var known = tables[root]?[key] ?? Known()
        if known.own == 0 {
            known.own = Self.usable(node.version) ?? 1
        } else if known.isDeleted {
            known.advance(to: node.version)
        } else if let last = known.node {
            if last != node.version { known.advance(to: node.version) }
        } else if !matches() {
            known.advance(to: node.version)
        }
        known.isDeleted = false
        known.node = node.version
        known.given = node
        tables[root, default: [:]][key] = known
        return known.own
    }

    /// Records that a row was saved with this version.
    func saved(_ key: Int64, root: Int, as version: Int64) {
        var known = tables[root]?[key] ?? Known()
        known.own = version
        known.isDeleted = false
        // If the store has updated the node that it returned, then its new version is known; otherwise it is read
        // later.
        if let given = known.given, let last = known.node, given.version != last {
            known.node = given.version
        } else {
            known.node = nil
        }
        tables[root, default: [:]][key] = known
    }

    /// Records that a save contained an object whose row did not change.
    ///
    /// The store may have given it a new version.
    func touched(_ key: Int64, root: Int) {
        guard let known = tables[root]?[key], let given = known.given else { return }
        tables[root]?[key]?.node = given.version
    }

    func deleted(_ key: Int64, root: Int) {
        tables[root, default: [:]][key, default: Known()].isDeleted = true
    }

    /// Advances the version: the store reports that a row is newer, although the version of the node is the same.
    func advance(_ key: Int64, root: Int, past base: Int64) -> Int64 {
        tables[root, default: [:]][key, default: Known()].own = base + 1
        return base + 1
    }

    /// A store's version as a number for contexts, if it is not 0, and far from the end of the range.
    fileprivate static func usable(_ version: UInt64) -> Int64? {
        version >= 1 && version < 1 << 62 ? Int64(version) : nil
    }
}

extension NodeVersions.Known {
    fileprivate mutating func advance(to version: UInt64) {
        let next = own + 1
        own = max(next, NodeVersions.usable(version) ?? next)
    }
}
