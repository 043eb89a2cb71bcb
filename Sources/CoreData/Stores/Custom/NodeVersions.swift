/// The versions of an incremental store's objects, as contexts count them.
///
/// Contexts and the row cache rely on versions that only ever rise, by one with a save of ours. A store may count
/// otherwise (by time stamps, or not at all), so each version of a node stands for one of ours; where a store counts as
/// we do they are the same.
///
/// Used only by who has the store's turn.
final class NodeVersions: @unchecked Sendable {
    // @unchecked Sendable: guarded by the store's turn.

    fileprivate struct Known {
        /// As contexts count; 0 for an object that was never read or saved.
        var own: Int64 = 0
        /// As the store counted when it was last asked; `nil` if it has not been asked since a save of ours.
        var node: UInt64?
        var isDeleted = false
        /// The node that was last given: a store may keep it, and update it as it saves.
        weak var given: NSIncrementalStoreNode?
    }

    /// By the number of the root entity, and by key.
    private var tables: [Int: [Int64: Known]] = [:]

    /// The version that contexts know an object's newest row by; 0 if it was never read, `nil` if it was deleted.
    func current(_ key: Int64, root: Int) -> Int64? {
        guard let known = tables[root]?[key] else { return 0 }
        return known.isDeleted ? nil : known.own
    }

    /// The version of a node that was just read.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - key: The key of its object.
    ///   - root: The number of the root entity.
    ///   - matches: Whether the node has the values that our last save wrote. Asked only if the version of the node does not
    ///     count that save yet.
    /// - Returns: The version, as contexts count.
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

    /// Notes that a row was saved, as this version.
    func saved(_ key: Int64, root: Int, as version: Int64) {
        var known = tables[root]?[key] ?? Known()
        known.own = version
        known.isDeleted = false
        // A store that updated the node it gave has told its new version; another one is asked.
        if let given = known.given, let last = known.node, given.version != last {
            known.node = given.version
        } else {
            known.node = nil
        }
        tables[root, default: [:]][key] = known
    }

    /// Notes that a save named an object whose row did not change.
    ///
    /// The store may have given it a new version.
    func touched(_ key: Int64, root: Int) {
        guard let known = tables[root]?[key], let given = known.given else { return }
        tables[root]?[key]?.node = given.version
    }

    func deleted(_ key: Int64, root: Int) {
        tables[root, default: [:]][key, default: Known()].isDeleted = true
    }

    /// Advances the version: the store says that a row is newer, though the version of the node is the same.
    func advance(_ key: Int64, root: Int, past base: Int64) -> Int64 {
        tables[root, default: [:]][key, default: Known()].own = base + 1
        return base + 1
    }

    /// A store's version as one of ours: not 0, and far from the end of the range.
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
