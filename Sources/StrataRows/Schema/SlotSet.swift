/// A set of slot positions, without allocation for entities of up to 64 slots.
public struct SlotSet: Sendable, Hashable {
    @usableFromInline var low: UInt64 = 0
    @usableFromInline var high: Set<Int> = []

    /// An empty set.
    @inlinable
    public init() {}

    /// Whether the set is empty.
    @inlinable
    public var isEmpty: Bool { low == 0 && high.isEmpty }

    /// Whether a slot is in the set.
    @inlinable
    @inline(__always)
    public func contains(_ slot: Int) -> Bool {
        slot < 64 ? low & (1 << UInt64(slot)) != 0 : high.contains(slot)
    }

    /// Adds a slot.
    @inlinable
    @inline(__always)
    public mutating func insert(_ slot: Int) {
        if slot < 64 { low |= 1 << UInt64(slot) } else { high.insert(slot) }
    }

    /// Removes a slot.
    public mutating func remove(_ slot: Int) {
        if slot < 64 { low &= ~(1 << UInt64(slot)) } else { high.remove(slot) }
    }

    /// Whether the two sets have no slot in common.
    package func isDisjoint(with other: SlotSet) -> Bool { low & other.low == 0 && high.isDisjoint(with: other.high) }

    /// Adds the slots of another set.
    public mutating func formUnion(_ other: SlotSet) {
        low |= other.low
        high.formUnion(other.high)
    }
}
