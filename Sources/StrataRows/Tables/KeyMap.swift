/// A map from 64-bit keys to small trivial values, by open addressing.
///
/// Swift's `Dictionary` hashes with SipHash, which costs more than the row it stands for; this map multiplies. Keys come
/// from our own counters and from primary keys, whose order an attacker does not gain by choosing.
package struct KeyMap<Value: BitwiseCopyable> {
    private struct Entry: BitwiseCopyable {
        var key: Int64
        var value: Value
    }

    private var entries: [Entry?]
    package private(set) var count = 0

    package init(minimumCapacity: Int = 0) {
        entries = minimumCapacity == 0 ? [] : Array(repeating: nil, count: Self.tableSize(minimumCapacity))
    }

    private static func tableSize(_ count: Int) -> Int {
        var size = 16
        while size < count * 2 { size <<= 1 }
        return size
    }

    @inline(__always)
    private func start(_ key: Int64) -> Int {
        Int(truncatingIfNeeded: hashedKey(key)) & (entries.count - 1)
    }

    package subscript(key: Int64) -> Value? {
        guard !entries.isEmpty else { return nil }
        var index = start(key)
        while let entry = entries[index] {
            if entry.key == key { return entry.value }
            index = (index + 1) & (entries.count - 1)
        }
        return nil
    }

    /// Sets the value of `key`, which may be there already.
    package mutating func set(_ value: Value, for key: Int64) {
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

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: nil, count: Self.tableSize(max(8, count * 2)))
        for case let entry? in old {
            var index = start(entry.key)
            while entries[index] != nil { index = (index + 1) & (entries.count - 1) }
            entries[index] = entry
        }
    }

    /// Calls `body` with each key and value, in no order.
    package func forEach(_ body: (Int64, Value) throws -> Void) rethrows {
        for case let entry? in entries { try body(entry.key, entry.value) }
    }
}

/// Spreads a key over all bits (a multiplication by the golden ratio, upper half folded down).
@inline(__always)
package func hashedKey(_ key: Int64) -> UInt64 {
    let product = UInt64(bitPattern: key) &* 0x9E37_79B9_7F4A_7C15
    return product ^ (product >> 32)
}
