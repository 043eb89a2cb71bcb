/// A map from 64-bit keys to small trivial values, by open addressing.
///
/// Swift's `Dictionary` hashes with SipHash, which costs more than the row that it finds; this map multiplies. Keys
/// come from our own counters and from primary keys. An attacker gains nothing by choosing their order.
public struct KeyMap<Value: BitwiseCopyable> {
    @usableFromInline struct Entry: BitwiseCopyable {
        @usableFromInline var key: Int64
        @usableFromInline var value: Value

        @inlinable
        init(key: Int64, value: Value) {
            self.key = key
            self.value = value
        }
    }

    @usableFromInline var entries: [Entry?]
    /// The number of entries.
    ///
    /// Only the map itself writes it.
    public var count = 0

    /// An empty map, with room for some entries.
    @inlinable
    public init(minimumCapacity: Int = 0) {
        entries = minimumCapacity == 0 ? [] : Array(repeating: nil, count: Self.tableSize(minimumCapacity))
    }

    @inlinable
    static func tableSize(_ count: Int) -> Int {
        var size = 16
        while size < count * 2 { size <<= 1 }
        return size
    }

    @inlinable
    @inline(__always)
    func start(_ key: Int64) -> Int {
        Int(truncatingIfNeeded: hashedKey(key)) & (entries.count - 1)
    }

    /// The value of a key; `nil` if there is none.
    @inlinable
    public subscript(key: Int64) -> Value? {
        guard !entries.isEmpty else { return nil }
        var index = start(key)
        while let entry = entries[index] {
            if entry.key == key { return entry.value }
            index = (index + 1) & (entries.count - 1)
        }
        return nil
    }

    /// Sets the value of `key`, which may be there already.
    @inlinable
    public mutating func set(_ value: Value, for key: Int64) {
        if count * 2 >= entries.count { grow() }
        var index = start(key)
        while let entry = entries[index] {
            if entry.key == key {
                entries[index]?.value = value
                return
            }
            index = (index + 1) & (entries.count - 1)
        }
        entries[index] = Entry(key: key, value: value)
        count += 1
    }

    @inlinable
    mutating func grow() {
        let old = entries
        entries = Array(repeating: nil, count: Self.tableSize(max(8, count * 2)))
        for case let entry? in old {
            var index = start(entry.key)
            while entries[index] != nil { index = (index + 1) & (entries.count - 1) }
            entries[index] = entry
        }
    }

    /// Removes a key.
    ///
    /// Later entries move back, so that a map that empties and fills does not slow down.
    ///
    /// - Returns: Its value; `nil` if it was not there.
    @inlinable
    @discardableResult
    public mutating func remove(_ key: Int64) -> Value? {
        guard !entries.isEmpty else { return nil }
        var gap = start(key)
        while let entry = entries[gap], entry.key != key { gap = (gap + 1) & (entries.count - 1) }
        guard let removed = entries[gap]?.value else { return nil }
        var index = (gap + 1) & (entries.count - 1)
        while let entry = entries[index] {
            // The entry may move into the gap unless its own place lies between the gap and its index.
            if (index &- start(entry.key)) & (entries.count - 1) >= (index &- gap) & (entries.count - 1) {
                entries[gap] = entry
                gap = index
            }
            index = (index + 1) & (entries.count - 1)
        }
        entries[gap] = nil
        count -= 1
        return removed
    }

    /// The first key and value at or behind a place in memory, for loops over all in no order.
    ///
    /// - Parameter place: The place, 0 at first. It is moved behind the entry that is returned.
    /// - Returns: The key and its value; `nil` if there are no more.
    @inlinable
    public func entry(from place: inout Int) -> (key: Int64, value: Value)? {
        while place < entries.count {
            defer { place += 1 }
            if let entry = entries[place] { return (entry.key, entry.value) }
        }
        return nil
    }

    /// Calls `body` with each key and value, in no order.
    @inlinable
    public func forEach(_ body: (Int64, Value) throws -> Void) rethrows {
        for case let entry? in entries { try body(entry.key, entry.value) }
    }
}

/// Spreads a key over all bits (a multiplication by the golden ratio, upper half folded down).
@inlinable
@inline(__always)
public func hashedKey(_ key: Int64) -> UInt64 {
    let product = UInt64(bitPattern: key) &* 0x9E37_79B9_7F4A_7C15
    return product ^ (product >> 32)
}
