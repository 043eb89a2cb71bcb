import CoreDataEssentials
import StrataPredicates

/// One object of a controller's results, and its node in the tree of its section.
///
/// It is confined to the context's queue, like all state of a controller.
final class ResultEntry {
    /// The object; replaced by its successor after the context was reset.
    var object: NSManagedObject
    /// The values that the object is sorted by, as last read; `nil` until a comparison needs them.
    var keys: [PredicateValue]?
    /// The number that decides between entries with equal keys: the smaller number comes first.
    var sequence: Int
    /// The section; `nil` while the entry is in none.
    ///
    /// Sections own their entries.
    unowned(unsafe) var section: ResultSection?

    fileprivate var left: ResultEntry?
    fileprivate var right: ResultEntry?
    /// The parent node.
    ///
    /// The tree keeps its nodes alive, and a node without a tree has no parent.
    fileprivate unowned(unsafe) var parent: ResultEntry?
    /// The number of nodes in the subtree that begins here.
    fileprivate var count = 1

    init(_ object: NSManagedObject, sequence: Int) {
        self.object = object
        self.sequence = sequence
    }

    fileprivate var leftCount: Int { left?.count ?? 0 }
    fileprivate var rightCount: Int { right?.count ?? 0 }

    /// Whether one side is so much heavier that paths have become long.
    fileprivate var isLopsided: Bool { max(leftCount, rightCount) * 4 > count * 3 + 4 }
}

/// A sorted list of entries that finds the place of each entry, and the entry at each place, in logarithmic time.
///
/// It is a binary tree whose nodes are the entries themselves. A part that has become lopsided is rebuilt. This costs
/// O(log n) for each change on average, and keeps every path O(log n) long.
struct RankedEntries {
    private var root: ResultEntry?

    /// Makes the list of entries that are already in order.
    ///
    /// O(n).
    init(sorted entries: [ResultEntry] = []) {
        root = Self.build(entries[...], below: nil)
    }

    var count: Int { root?.count ?? 0 }
    var isEmpty: Bool { root == nil }

    var first: ResultEntry? {
        var node = root
        while let next = node?.left { node = next }
        return node
    }

    var last: ResultEntry? {
        var node = root
        while let next = node?.right { node = next }
        return node
    }

    /// The entry at a place, which must exist.
    ///
    /// O(log n).
    subscript(place: Int) -> ResultEntry {
        precondition(place >= 0 && place < count, "place \(place) of \(count) entries")
        var rest = place
        var node = root
        while let current = node {
            if rest == current.leftCount { return current }
            if rest < current.leftCount {
                node = current.left
            } else {
                rest -= current.leftCount + 1
                node = current.right
            }
        }
        preconditionFailure("the counts of \(count) entries are wrong")
    }

    /// The place of an entry of this list.
    ///
    /// O(log n).
    func place(of entry: ResultEntry) -> Int {
        var place = entry.leftCount
        var node = entry
        while let parent = node.parent {
            if parent.right === node { place += parent.leftCount + 1 }
            node = parent
        }
        return place
    }

    /// Calls `body` with each entry in order.
    func forEach(_ body: (ResultEntry) -> Void) {
        Self.walk(root, body)
    }

    // MARK: - Changing

    /// Inserts an entry that is in no list.
    ///
    /// O(log n) comparisons.
    mutating func insert(_ entry: ResultEntry, by isBefore: (ResultEntry, ResultEntry) -> Bool) {
        guard var node = root else {
            root = entry
            return
        }
        while true {
            if isBefore(entry, node) {
                guard let next = node.left else {
                    node.left = entry
                    break
                }
                node = next
            } else {
                guard let next = node.right else {
                    node.right = entry
                    break
                }
                node = next
            }
        }
        entry.parent = node
        settle(from: node, by: 1)
    }

    /// Removes an entry of this list.
    ///
    /// O(log n), without comparisons.
    mutating func remove(_ entry: ResultEntry) {
        let start: ResultEntry?
        if let left = entry.left, let right = entry.right {
            var successor = right
            while let next = successor.left { successor = next }
            if let parent = successor.parent, successor !== right {
                parent.left = successor.right
                successor.right?.parent = parent
                successor.right = right
                right.parent = successor
                start = parent
            } else {
                start = successor
            }
            successor.left = left
            left.parent = successor
            successor.count = entry.count
            replace(entry, by: successor)
        } else {
            start = entry.parent
            replace(entry, by: entry.left ?? entry.right)
        }
        entry.left = nil
        entry.right = nil
        entry.parent = nil
        entry.count = 1
        settle(from: start, by: -1)
    }

    private mutating func replace(_ entry: ResultEntry, by other: ResultEntry?) {
        let parent = entry.parent
        other?.parent = parent
        guard let parent else {
            root = other
            return
        }
        if parent.left === entry { parent.left = other } else { parent.right = other }
    }

    /// Corrects the counts from a node upwards, and rebuilds the topmost part that is lopsided.
    private mutating func settle(from start: ResultEntry?, by change: Int) {
        var lopsided: ResultEntry?
        var node = start
        while let current = node {
            current.count += change
            if current.isLopsided { lopsided = current }
            node = current.parent
        }
        guard let lopsided else { return }
        var entries: [ResultEntry] = []
        entries.reserveCapacity(lopsided.count)
        Self.walk(lopsided) { entries.append($0) }
        let parent = lopsided.parent
        let wasLeft = parent?.left === lopsided
        let rebuilt = Self.build(entries[...], below: parent)
        if let parent {
            if wasLeft { parent.left = rebuilt } else { parent.right = rebuilt }
        } else {
            root = rebuilt
        }
    }

    private static func build(_ entries: ArraySlice<ResultEntry>, below parent: ResultEntry?) -> ResultEntry? {
        guard !entries.isEmpty else { return nil }
        let middle = entries.startIndex + entries.count / 2
        let node = entries[middle]
        node.parent = parent
        node.count = entries.count
        node.left = build(entries[..<middle], below: node)
        node.right = build(entries[(middle + 1)...], below: node)
        return node
    }

    /// Visits a part of the tree in order.
    ///
    /// The recursion is as deep as the tree, which is O(log n).
    private static func walk(_ node: ResultEntry?, _ body: (ResultEntry) -> Void) {
        guard let node else { return }
        walk(node.left, body)
        body(node)
        walk(node.right, body)
    }
}
