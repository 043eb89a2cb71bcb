/// A set of slot positions, without allocation for entities of up to 64 slots.
package struct SlotSet: Sendable, Hashable {
    @usableFromInline var low: UInt64 = 0
    @usableFromInline var high: Set<Int> = []

    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { low == 0 && high.isEmpty }

    @inlinable
    @inline(__always)
    package func contains(_ slot: Int) -> Bool {
        slot < 64 ? low & (1 << UInt64(slot)) != 0 : high.contains(slot)
    }

    @inlinable
    @inline(__always)
    package mutating func insert(_ slot: Int) {
        if slot < 64 { low |= 1 << UInt64(slot) } else { high.insert(slot) }
    }

    package mutating func remove(_ slot: Int) {
        if slot < 64 { low &= ~(1 << UInt64(slot)) } else { high.remove(slot) }
    }

    package mutating func formUnion(_ other: SlotSet) {
        low |= other.low
        high.formUnion(other.high)
    }
}
