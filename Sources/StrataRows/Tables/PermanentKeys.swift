/// The permanent keys of rows that had temporary ones, by these.
///
/// Temporary keys count down from -1, and the new rows of a save mostly have consecutive ones. Then an entry takes eight
/// bytes, at the distance of its key from the first one. The keys that lie too far apart are in a ``KeyMap``.
public struct PermanentKeys {
    /// The permanent keys of `first` and the temporary keys below it; 0 for none.
    @usableFromInline var run: [Int64] = []
    @usableFromInline var first: Int64 = 0
    /// The number of keys in `run`.
    @usableFromInline var runCount = 0
    @usableFromInline var others = KeyMap<Int64>()

    /// No keys yet, with room for some whose temporary keys are consecutive.
    @inlinable
    public init(minimumCapacity: Int = 0) { run.reserveCapacity(minimumCapacity) }

    /// The number of keys.
    @inlinable
    public var count: Int { runCount &+ others.count }

    /// The permanent key of a temporary one; `nil` if there is none.
    @inlinable
    public subscript(temporary: Int64) -> Int64? {
        let distance = Int(truncatingIfNeeded: first &- temporary)
        if distance >= 0, distance < run.count {
            let key = run[distance]
            if key != 0 { return key }
        }
        return others.count == 0 ? nil : others[temporary]
    }

    /// Sets the permanent key of a temporary one, which may be there already.
    @inlinable
    public mutating func set(_ key: Int64, for temporary: Int64) {
        if count == 0 { first = temporary }
        let distance = Int(truncatingIfNeeded: first &- temporary)
        // At least half of the places are in use, except for a few.
        guard key != 0, distance >= 0, distance < 2 &* runCount &+ 16, others.count == 0 || others[temporary] == nil
        else { return others.set(key, for: temporary) }
        while distance >= run.count { run.append(0) }
        if run[distance] == 0 { runCount &+= 1 }
        run[distance] = key
    }

    /// Calls `body` with each temporary key and the permanent one, in no order.
    @inlinable
    public func forEach(_ body: (Int64, Int64) throws -> Void) rethrows {
        for (distance, key) in run.enumerated() where key != 0 { try body(first &- Int64(distance), key) }
        try others.forEach(body)
    }
}
