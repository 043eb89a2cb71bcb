/// A map from 64-bit keys to small trivial values, by open addressing.
///
/// Swift's `Dictionary` hashes with SipHash, which costs more than the row that it finds; this map multiplies. Keys
/// come from our own counters and from primary keys. An attacker gains nothing by choosing their order.
///
/// An entry of an `Int` takes 16 bytes, and between a third and two thirds of the places are in use.
public struct KeyMap<Value: BitwiseCopyable> {
    @usableFromInline struct Entry: BitwiseCopyable {
        /// The key; 0 for an empty place, whose value means nothing.
        @usableFromInline var key: Int64
        @usableFromInline var value: Value

        @inlinable
        init(key: Int64, value: Value) {
            self.key = key
            self.value = value
        }
    }

    /// A power of two of places, and one more behind them for the key 0, which is marked by the key 1.
    @usableFromInline var entries: [Entry]
    /// The number of entries.
    ///
    /// Only the map itself writes it.
    public var count = 0

    /// An empty map, with room for some entries.
    @inlinable
    public init(minimumCapacity: Int = 0) {
        entries = minimumCapacity == 0 ? [] : Self.emptyEntries(Self.tableSize(minimumCapacity))
    }

    /// The smallest number of places for some entries.
    @inlinable
    static func tableSize(_ count: Int) -> Int {
        var size = 16
        while size &* 2 < count &* 3 { size <<= 1 }
        return size
    }

    @inlinable
    static func emptyEntries(_ size: Int) -> [Entry] {
        Array(unsafeUninitializedCapacity: size + 1) { buffer, count in
            // Trivial values may have any bytes as long as they are not read.
            UnsafeMutableRawBufferPointer(buffer).initializeMemory(as: UInt8.self, repeating: 0)
            count = size + 1
        }
    }

    /// The bits of the places.
    @inlinable
    @inline(__always)
    var mask: Int { entries.count &- 2 }

    @inlinable
    @inline(__always)
    func start(_ key: Int64) -> Int {
        Int(truncatingIfNeeded: hashedKey(key)) & mask
    }

    /// The place of a key, or the empty place where it would be; the map has places.
    @inlinable
    @inline(__always)
    func place(of key: Int64) -> Int {
        guard key != 0 else { return entries.count &- 1 }
        var index = start(key)
        while entries[index].key != key, entries[index].key != 0 { index = (index &+ 1) & mask }
        return index
    }

    /// The value of a key; `nil` if there is none.
    @inlinable
    public subscript(key: Int64) -> Value? {
        guard !entries.isEmpty else { return nil }
        let entry = entries[place(of: key)]
        return entry.key == 0 ? nil : entry.value
    }

    /// Sets the value of `key`, which may be there already.
    @inlinable
    public mutating func set(_ value: Value, for key: Int64) {
        if (count &+ 1) &* 3 > (entries.count &- 1) &* 2 { grow() }
        let place = place(of: key)
        if entries[place].key == 0 { count &+= 1 }
        entries[place] = Entry(key: key == 0 ? 1 : key, value: value)
    }

    @inlinable
    mutating func grow() {
        let old = entries
        entries = Self.emptyEntries(Self.tableSize(max(8, count &+ count / 2)))
        guard let zero = old.last else { return }
        entries[entries.count &- 1] = zero
        for entry in old.dropLast() where entry.key != 0 { entries[place(of: entry.key)] = entry }
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
        var gap = place(of: key)
        let removed = entries[gap]
        guard removed.key != 0 else { return nil }
        count &-= 1
        guard key != 0 else {
            entries[gap].key = 0
            return removed.value
        }
        var index = (gap &+ 1) & mask
        while entries[index].key != 0 {
            let entry = entries[index]
            // The entry may move into the gap unless its own place lies between the gap and its index.
            if (index &- start(entry.key)) & mask >= (index &- gap) & mask {
                entries[gap] = entry
                gap = index
            }
            index = (index &+ 1) & mask
        }
        entries[gap].key = 0
        return removed.value
    }

    /// The first key and value at or behind a place in memory, for loops over all in no order.
    ///
    /// - Parameter place: The place, 0 at first. It is moved behind the entry that is returned.
    /// - Returns: The key and its value; `nil` if there are no more.
    @inlinable
    public func entry(from place: inout Int) -> (key: Int64, value: Value)? {
        while place < entries.count {
            defer { place += 1 }
            let entry = entries[place]
            if entry.key != 0 { return (place == entries.count &- 1 ? 0 : entry.key, entry.value) }
        }
        return nil
    }

    /// Calls `body` with each key and value, in no order.
    @inlinable
    public func forEach(_ body: (Int64, Value) throws -> Void) rethrows {
        var place = 0
        while let (key, value) = entry(from: &place) { try body(key, value) }
    }
}

/// Spreads a key over all bits (a multiplication by the golden ratio, upper half folded down).
@inlinable
@inline(__always)
public func hashedKey(_ key: Int64) -> UInt64 {
    let product = UInt64(bitPattern: key) &* 0x9E37_79B9_7F4A_7C15
    return product ^ (product >> 32)
}
