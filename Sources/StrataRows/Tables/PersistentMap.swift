/// A map from 64-bit keys that is copied in constant time.
///
/// A copy shares everything with the original until one of them changes. Then it still shares all but the path to the
/// change.
///
/// It is a hash trie of 32 ways over the bits of the key, the low ones first, so that consecutive keys fill it evenly.
/// An in-memory store keeps its rows in such maps: readers take a copy, which saves do not change, and a refused save
/// drops its copy.
///
/// - Complexity: Look-ups and changes are O(log₃₂ n).
public struct PersistentMap<Value> {
    @usableFromInline enum Entry {
        case leaf(Int64, Value)
        case branch(Node)
        /// The place is empty while a branch is taken out to be changed.
        case vacant
    }

    @usableFromInline final class Node {
        /// A bit for each of the 32 ways, set if the way has an entry.
        @usableFromInline var ways: UInt32 = 0
        @usableFromInline var entries: ContiguousArray<Entry> = []

        @inlinable
        init() {}

        @inlinable
        init(_ other: Node) {
            ways = other.ways
            entries = other.entries
        }

        @inlinable
        func place(_ key: Int64, _ shift: UInt64) -> (way: UInt32, index: Int) {
            let way: UInt32 = 1 << UInt32((UInt64(bitPattern: key) >> shift) & 31)
            return (way, (ways & (way - 1)).nonzeroBitCount)
        }
    }

    @usableFromInline var root = Node()
    /// The number of entries.
    public var count = 0

    /// An empty map.
    @inlinable
    public init() {}

    /// Whether the map is empty.
    @inlinable
    public var isEmpty: Bool { count == 0 }

    // MARK: - Reading

    /// The value of a key; `nil` if there is none.
    @inlinable
    public subscript(key: Int64) -> Value? {
        get {
            var node = root
            var shift: UInt64 = 0
            while true {
                let (way, index) = node.place(key, shift)
                guard node.ways & way != 0 else { return nil }
                switch node.entries[index] {
                case .leaf(let known, let value): return known == key ? value : nil
                case .branch(let next): node = next
                case .vacant: return nil
                }
                shift += 5
            }
        }
        set {
            if let newValue { set(newValue, for: key) } else { remove(key) }
        }
    }

    /// Calls `body` with each key and value, in no order.
    @inlinable
    public func forEach(_ body: (Int64, Value) throws -> Void) rethrows {
        try Self.visit(root, body)
    }

    @inlinable
    static func visit(_ node: Node, _ body: (Int64, Value) throws -> Void) rethrows {
        for entry in node.entries {
            switch entry {
            case .leaf(let key, let value): try body(key, value)
            case .branch(let child): try visit(child, body)
            case .vacant: break
            }
        }
    }

    /// The keys, ascending.
    ///
    /// - Complexity: O(n log n).
    @inlinable
    public var sortedKeys: [Int64] {
        var keys: [Int64] = []
        keys.reserveCapacity(count)
        forEach { key, _ in keys.append(key) }
        return keys.sorted()
    }

    // MARK: - Changing

    /// Sets the value of a key.
    @inlinable
    public mutating func set(_ value: Value, for key: Int64) {
        if Self.set(&root, value, key, 0) { count += 1 }
    }

    /// - Returns: Whether the key is new.
    @inlinable
    static func set(_ node: inout Node, _ value: Value, _ key: Int64, _ shift: UInt64) -> Bool {
        if !isKnownUniquelyReferenced(&node) { node = Node(node) }
        let (way, index) = node.place(key, shift)
        guard node.ways & way != 0 else {
            node.ways |= way
            node.entries.insert(.leaf(key, value), at: index)
            return true
        }
        switch node.entries[index] {
        case .leaf(let known, let old):
            guard known != key else {
                node.entries[index] = .leaf(key, value)
                return false
            }
            var child = Node()
            _ = set(&child, old, known, shift + 5)
            _ = set(&child, value, key, shift + 5)
            node.entries[index] = .branch(child)
            return true
        case .branch(var child):
            // It is taken out of the array, so that the local is the only reference to a child that no other map
            // shares.
            node.entries[index] = .vacant
            defer { node.entries[index] = .branch(child) }
            return set(&child, value, key, shift + 5)
        case .vacant:
            node.entries[index] = .leaf(key, value)
            return true
        }
    }

    /// Removes a key.
    ///
    /// - Returns: Its value.
    @inlinable
    @discardableResult
    public mutating func remove(_ key: Int64) -> Value? {
        guard let old = self[key] else { return nil }
        Self.remove(&root, key, 0)
        count -= 1
        return old
    }

    @inlinable
    static func remove(_ node: inout Node, _ key: Int64, _ shift: UInt64) {
        if !isKnownUniquelyReferenced(&node) { node = Node(node) }
        let (way, index) = node.place(key, shift)
        if case .branch(var child) = node.entries[index] {
            node.entries[index] = .vacant
            remove(&child, key, shift + 5)
            if child.ways != 0 {
                node.entries[index] = .branch(child)
                return
            }
        }
        node.ways &= ~way
        node.entries.remove(at: index)
    }
}

extension PersistentMap where Value == Void {
    /// Adds a key to a map that is used as a set.
    @inlinable
    public mutating func insert(_ key: Int64) { set((), for: key) }
}

extension PersistentMap: @unchecked Sendable where Value: Sendable {
    // @unchecked Sendable: a node that two maps share is never changed.
}
