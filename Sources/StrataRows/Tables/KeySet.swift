/// A set of 64-bit keys other than 0, by open addressing, at a few nanoseconds for a member.
///
/// Primary keys begin at 1 and those of unsaved objects at -1, so 0 is never a key.
public struct KeySet: Sendable {
    @usableFromInline var slots: [Int64] = []
    /// The number of keys.
    public var count = 0

    /// An empty set, with room for some keys.
    @inlinable
    public init(count: Int = 0) {
        self.count = count
    }

    /// Whether the set is empty.
    @inlinable
    public var isEmpty: Bool { count == 0 }

    @inlinable
    @inline(__always)
    func home(_ key: Int64) -> Int {
        Int(truncatingIfNeeded: hashedKey(key)) & (slots.count &- 1)
    }

    /// Whether a key is in the set.
    @inlinable
    public func contains(_ key: Int64) -> Bool {
        guard count > 0 else { return false }
        var index = home(key)
        while slots[index] != 0 {
            if slots[index] == key { return true }
            index = (index &+ 1) & (slots.count &- 1)
        }
        return false
    }

    /// Adds a key.
    ///
    /// - Returns: Whether it was new.
    @inlinable
    @discardableResult
    public mutating func insert(_ key: Int64) -> Bool {
        if count &* 2 >= slots.count { grow() }
        var index = home(key)
        while slots[index] != 0 {
            if slots[index] == key { return false }
            index = (index &+ 1) & (slots.count &- 1)
        }
        slots[index] = key
        count &+= 1
        return true
    }

    @inlinable
    mutating func grow() {
        let old = slots
        slots = Array(repeating: 0, count: max(16, old.count * 4))
        for key in old where key != 0 {
            var index = home(key)
            while slots[index] != 0 { index = (index &+ 1) & (slots.count &- 1) }
            slots[index] = key
        }
    }
}
