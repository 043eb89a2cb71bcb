/// An object that knows the key it is filed under in an ``ObjectTable``.
protocol TableElement: AnyObject {
    var tableKey: Int64 { get }
}

/// A hash table of strongly held objects that carry their own 64-bit key.
///
/// A slot is one pointer; the key is read through it. An insertion costs a few nanoseconds where a `Dictionary` of IDs
/// costs hundreds, and an entry takes 8 bytes at a load of at most one half. Removal shifts later entries back, so there
/// are no tombstones and a table that empties and fills does not slow down.
///
/// Not thread-safe: the owner's lock or queue guards it. An element's key may not change while it is in the table.
final class ObjectTable<Element: TableElement> {
    private var slots: UnsafeMutablePointer<Unmanaged<Element>?>
    private var capacity: Int
    private(set) var count = 0

    init() {
        capacity = 0
        slots = UnsafeMutablePointer.allocate(capacity: 0)
    }

    deinit {
        releaseAll()
        slots.deallocate()
    }

    private func releaseAll() {
        guard count > 0 else { return }
        for index in 0..<capacity {
            slots[index]?.release()
        }
    }

    @inline(__always)
    private func home(_ key: Int64) -> Int {
        Int(truncatingIfNeeded: hashedKey(key)) & (capacity &- 1)
    }

    /// The element filed under `key`.
    @inline(__always)
    subscript(key: Int64) -> Element? {
        guard capacity > 0 else { return nil }
        var index = home(key)
        while let entry = slots[index] {
            if entry._withUnsafeGuaranteedRef({ $0.tableKey == key }) { return entry.takeUnretainedValue() }
            index = (index &+ 1) & (capacity &- 1)
        }
        return nil
    }

    /// Files an element, in place of any other of the same key.
    @inline(__always)
    func insert(_ element: Element) {
        if count &* 2 >= capacity { grow(for: count + 1) }
        let key = element.tableKey
        var index = home(key)
        while let entry = slots[index] {
            if entry._withUnsafeGuaranteedRef({ $0.tableKey == key }) {
                slots[index] = Unmanaged.passRetained(element)
                entry.release()
                return
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        slots[index] = Unmanaged.passRetained(element)
        count &+= 1
    }

    /// Whether somebody besides the table holds the element filed under `key`.
    ///
    /// False if there is none.
    func isHeldElsewhere(_ key: Int64) -> Bool {
        guard capacity > 0 else { return false }
        var index = home(key)
        while let entry = slots[index] {
            if entry._withUnsafeGuaranteedRef({ $0.tableKey == key }) {
                // As in `sweep(where:)`: the table's own count is moved into a local for the question.
                var element: Element? = entry.takeRetainedValue()
                let isHeld = !isKnownUniquelyReferenced(&element)
                _ = element.map { Unmanaged.passRetained($0) }
                return isHeld
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        return false
    }

    /// Makes room for `additional` more elements at once.
    func reserve(_ additional: Int) {
        if (count + additional) * 2 > capacity { grow(for: count + additional) }
    }

    /// Takes out the element filed under `key`.
    @discardableResult
    func remove(_ key: Int64) -> Element? {
        guard capacity > 0 else { return nil }
        var index = home(key)
        while let entry = slots[index] {
            if entry._withUnsafeGuaranteedRef({ $0.tableKey == key }) {
                closeGap(at: index)
                count &-= 1
                return entry.takeRetainedValue()
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        return nil
    }

    private func closeGap(at start: Int) {
        var gap = start
        var index = (start &+ 1) & (capacity &- 1)
        while let entry = slots[index] {
            let wanted = home(entry._withUnsafeGuaranteedRef { $0.tableKey })
            // The entry may move into the gap unless its home lies between the gap and itself.
            if (index &- wanted) & (capacity &- 1) >= (index &- gap) & (capacity &- 1) {
                slots[gap] = entry
                gap = index
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        slots[gap] = nil
    }

    private func grow(for wanted: Int) {
        var size = 16
        while size < wanted &* 2 { size <<= 1 }
        let old = slots
        let oldCapacity = capacity
        slots = UnsafeMutablePointer.allocate(capacity: size)
        slots.initialize(repeating: nil, count: size)
        capacity = size
        for position in 0..<oldCapacity {
            guard let entry = old[position] else { continue }
            var index = home(entry._withUnsafeGuaranteedRef { $0.tableKey })
            while slots[index] != nil { index = (index &+ 1) & (capacity &- 1) }
            slots[index] = entry
        }
        old.deallocate()
    }

    func removeAll() {
        releaseAll()
        slots.deallocate()
        capacity = 0
        count = 0
        slots = UnsafeMutablePointer.allocate(capacity: 0)
    }

    /// Calls `body` with each element, in no order.
    ///
    /// `body` may not change the table.
    func forEach(_ body: (Element) throws -> Void) rethrows {
        for index in 0..<capacity {
            if let entry = slots[index] { try body(entry.takeUnretainedValue()) }
        }
    }

    /// Calls `body` with each element that somebody besides the table holds.
    ///
    /// `body` may not change the table.
    func forEachHeldElsewhere(_ body: (Element) -> Void) {
        for index in 0..<capacity {
            guard let entry = slots[index] else { continue }
            var element: Element? = entry.takeRetainedValue()
            if !isKnownUniquelyReferenced(&element), let element { body(element) }
            _ = element.map { Unmanaged.passRetained($0) }
        }
    }

    /// Lets go of the elements that nobody else holds and that `isDisposable` agrees to lose.
    ///
    /// - Returns: The number of elements that went.
    @discardableResult
    func sweep(where isDisposable: (Element) -> Bool) -> Int {
        var disposable: [Int64] = []
        for index in 0..<capacity {
            guard let entry = slots[index] else { continue }
            // The table's count is the only one: moving it into a local for the question leaves it at one.
            var element: Element? = entry.takeRetainedValue()
            if isKnownUniquelyReferenced(&element), let element, isDisposable(element) {
                disposable.append(element.tableKey)
            }
            _ = element.map { Unmanaged.passRetained($0) }
        }
        for key in disposable { remove(key) }
        return disposable.count
    }
}
