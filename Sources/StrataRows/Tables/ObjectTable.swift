/// A table of strongly held objects by 64-bit keys.
///
/// An entry is the key and one pointer, so that searching, growing and closing gaps touch no element.
///
/// As long as the keys lie close together, as primary keys mostly do, the table is direct: an entry lies at its key
/// modulo the capacity, where no two keys can collide. A scan in the order of the keys then reads the memory from one
/// end to the other, while a hash would read a distant cache line for each key. Other keys are hashed, and at most four
/// fifths of the entries are used. Removal shifts later entries back, so there are no tombstones, and a table that
/// empties and fills does not slow down.
///
/// It is not thread-safe: the owner's lock or queue guards it.
public final class ObjectTable<Element: AnyObject> {
    @usableFromInline typealias Entry = ObjectTableEntry

    // Exclusivity is unchecked here and below. Code that is inlined into other targets would be checked at each access,
    // because the compiler cannot see all uses there. No access lasts while other code runs.
    @exclusivity(unchecked) @usableFromInline var entries = ObjectTable.noEntries
    @exclusivity(unchecked) @usableFromInline var capacity = 0
    /// The number of elements.
    ///
    /// Only the table itself writes it.
    @exclusivity(unchecked) public var count = 0
    /// Whether an entry lies at its key modulo the capacity.
    ///
    /// All keys are between `low` and `high`. In a direct table these are less than the capacity apart.
    @exclusivity(unchecked) @usableFromInline var isDirect = true
    @exclusivity(unchecked) @usableFromInline var low = Int64.max
    @exclusivity(unchecked) @usableFromInline var high = Int64.min

    /// Makes an empty table, which has no memory yet.
    @inlinable
    public init() {}

    @inlinable
    deinit {
        releaseAll()
        if capacity > 0 { entries.deallocate() }
    }

    /// Where the entries of a table without memory would lie.
    @inlinable
    static var noEntries: UnsafeMutablePointer<Entry> {
        UnsafeMutablePointer(bitPattern: MemoryLayout<Entry>.alignment).unsafelyUnwrapped
    }

    @inlinable
    func releaseAll() {
        guard count > 0 else { return }
        // The end of a table runs code for any type of elements. That would ask the runtime for types at each entry, so
        // no step depends on the type.
        for index in 0..<capacity {
            if let element = entries[index].element { Unmanaged<AnyObject>.fromOpaque(element).release() }
        }
    }

    // MARK: - Finding

    @inlinable
    @inline(__always)
    func directIndex(of key: Int64) -> Int { Int(truncatingIfNeeded: key) & (capacity &- 1) }

    @inlinable
    @inline(__always)
    func home(of key: Int64) -> Int { Int(truncatingIfNeeded: hashedKey(key)) & (capacity &- 1) }

    /// The index of the key in a hashed table, or of the free entry where it would be.
    @inlinable
    @inline(__always)
    func hashedIndex(of key: Int64) -> Int {
        var index = home(of: key)
        while entries[index].element != nil, entries[index].key != key { index = (index &+ 1) & (capacity &- 1) }
        return index
    }

    /// The index of the key; `nil` if it is not in the table.
    @inlinable
    @inline(__always)
    func index(of key: Int64) -> Int? {
        guard count > 0 else { return nil }
        if isDirect, key < low || key > high { return nil }
        let index = isDirect ? directIndex(of: key) : hashedIndex(of: key)
        return entries[index].element == nil ? nil : index
    }

    /// The element with the key.
    @inlinable
    @inline(__always)
    public subscript(key: Int64) -> Element? {
        guard let index = index(of: key) else { return nil }
        return element(index)?.takeUnretainedValue()
    }

    /// The element with the key, which counts no reference: for callers that use it while it surely stays in the table.
    @inlinable
    @inline(__always)
    public func uncounted(_ key: Int64) -> Unmanaged<Element>? { index(of: key).flatMap { element($0) } }

    /// The element of an entry; `nil` if the entry is free.
    @inlinable
    @inline(__always)
    func element(_ index: Int) -> Unmanaged<Element>? {
        entries[index].element.map { Unmanaged.fromOpaque($0) }
    }

    /// Whether the element with the key is held by others besides the table.
    ///
    /// It is false if there is no such element.
    @inlinable
    public func isHeldElsewhere(_ key: Int64) -> Bool {
        index(of: key).map { !isHeldHereOnly($0) } ?? false
    }

    /// The number of references to the element with the key, by the table and by others; 0 if there is none.
    ///
    /// Other threads may take and release references meanwhile.
    public func referenceCount(of key: Int64) -> Int {
        guard let index = index(of: key), let element = entries[index].element else { return 0 }
        return Int(bitPattern: retainCount(element))
    }

    /// Whether the table holds the only reference to the element at `index`, which must be taken.
    @inlinable
    @inline(__always)
    func isHeldHereOnly(_ index: Int) -> Bool {
        withUnsafeMutablePointer(to: &entries[index].element) { pointer in
            // A pointer has the same form in memory as a counted reference. Checking it in place counts nothing.
            pointer.withMemoryRebound(to: Element?.self, capacity: 1) { isKnownUniquelyReferenced(&$0.pointee) }
        }
    }

    // MARK: - Filing

    /// The entry for a key that is to be inserted: its present one, or a free one.
    @inlinable
    @inline(__always)
    func entry(for key: Int64) -> UnsafeMutablePointer<Entry> {
        let (lowest, highest) = (min(low, key), max(high, key))
        if isDirect ? Self.spans(lowest, highest, lessThan: capacity) : Self.holds(count &+ 1, in: capacity) {
            (low, high) = (lowest, highest)
        } else {
            rebuild(for: count + 1, including: key)
        }
        return entries + (isDirect ? directIndex(of: key) : hashedIndex(of: key))
    }

    /// Inserts an element, in place of any other of the same key.
    @inlinable
    @inline(__always)
    public func insert(_ element: Element, for key: Int64) {
        let entry = entry(for: key)
        let former = entry.pointee.element
        entry.pointee = Entry(key: key, element: Unmanaged.passRetained(element).toOpaque())
        if let former { Unmanaged<Element>.fromOpaque(former).release() } else { count &+= 1 }
    }

    /// Inserts an element unless there is one of the same key, and counts only that reference.
    ///
    /// - Returns: The element that is there already; `nil` if `element` was inserted.
    @inlinable
    @inline(__always)
    public func insertUnlessKnown(_ element: Unmanaged<Element>, for key: Int64) -> Unmanaged<Element>? {
        let entry = entry(for: key)
        if let known = entry.pointee.element { return Unmanaged.fromOpaque(known) }
        entry.pointee = Entry(key: key, element: element.retain().toOpaque())
        count &+= 1
        return nil
    }

    // MARK: - Growing

    /// Whether a hashed table of a capacity has room for `count` elements.
    @inlinable
    @inline(__always)
    static func holds(_ count: Int, in capacity: Int) -> Bool { count &* 5 <= capacity &* 4 }

    /// Whether `high` exceeds `low` by less than `limit`.
    @inlinable
    @inline(__always)
    static func spans(_ low: Int64, _ high: Int64, lessThan limit: Int) -> Bool {
        UInt64(bitPattern: high &- low) < UInt64(truncatingIfNeeded: limit)
    }

    /// Makes room for `additional` more elements at once.
    @inlinable
    public func reserve(_ additional: Int) {
        if !Self.holds(count + additional, in: capacity) { rebuild(for: count + additional, including: nil) }
    }

    /// Moves all entries into memory for `wanted` elements, `key` among them.
    @inlinable
    @inline(never)
    func rebuild(for wanted: Int, including key: Int64?) {
        // They are computed anew, because the elements at the ends may have been removed.
        (low, high) = (key ?? .max, key ?? .min)
        for index in 0..<capacity where entries[index].element != nil {
            (low, high) = (min(low, entries[index].key), max(high, entries[index].key))
        }
        var size = 16
        while !Self.holds(wanted, in: size) { size <<= 1 }
        isDirect = low > high || Self.spans(low, high, lessThan: size * 2)
        if isDirect, low <= high {
            // There is some room at the ends, so that keys that grow in one direction do not cause the next rebuild at
            // once.
            while !Self.spans(low, high, lessThan: size - size / 8) { size <<= 1 }
        }
        let (old, oldCapacity) = (entries, capacity)
        entries = UnsafeMutablePointer.allocate(capacity: size)
        entries.initialize(repeating: Entry(key: 0, element: nil), count: size)
        capacity = size
        for index in 0..<oldCapacity where old[index].element != nil {
            let key = old[index].key
            entries[isDirect ? directIndex(of: key) : hashedIndex(of: key)] = old[index]
        }
        if oldCapacity > 0 { old.deallocate() }
    }

    // MARK: - Removing

    /// Removes the element with the key.
    @inlinable
    @discardableResult
    public func remove(_ key: Int64) -> Element? {
        guard let index = index(of: key), let element = element(index) else { return nil }
        if isDirect { entries[index].element = nil } else { closeGap(at: index) }
        count &-= 1
        return element.takeRetainedValue()
    }

    @inlinable
    func closeGap(at start: Int) {
        var gap = start
        var index = (start &+ 1) & (capacity &- 1)
        while entries[index].element != nil {
            let wanted = home(of: entries[index].key)
            // The entry may move into the gap unless its own place lies between the gap and its index.
            if (index &- wanted) & (capacity &- 1) >= (index &- gap) & (capacity &- 1) {
                entries[gap] = entries[index]
                gap = index
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        entries[gap].element = nil
    }

    /// Removes all elements.
    @inlinable
    public func removeAll() {
        releaseAll()
        if capacity > 0 { entries.deallocate() }
        entries = Self.noEntries
        (capacity, count) = (0, 0)
        (isDirect, low, high) = (true, .max, .min)
    }

    /// Gives the memory back if the table is empty and has more than so many entries.
    @inlinable
    public func letGoOfMemory(above entries: Int) {
        if count == 0, capacity > entries { removeAll() }
    }

    // MARK: - Walking

    /// Calls `body` with each element, in no order.
    ///
    /// `body` may not change the table.
    @inlinable
    public func forEach(_ body: (Element) throws -> Void) rethrows {
        for index in 0..<capacity {
            if let element = element(index) { try body(element.takeUnretainedValue()) }
        }
    }

    /// Calls `body` with each element that is held by others besides the table.
    ///
    /// `body` may not change the table.
    @inlinable
    public func forEachHeldElsewhere(_ body: (Element) -> Void) {
        for index in 0..<capacity {
            guard let element = element(index), !isHeldHereOnly(index) else { continue }
            body(element.takeUnretainedValue())
        }
    }

    /// Removes the elements that nothing else holds and for which `isDisposable` returns true.
    ///
    /// - Returns: The number of removed elements.
    @inlinable
    @discardableResult
    public func sweep(where isDisposable: (Element) -> Bool) -> Int {
        var disposable: [Int64] = []
        for index in 0..<capacity {
            guard let element = element(index), isHeldHereOnly(index),
                element._withUnsafeGuaranteedRef(isDisposable)
            else { continue }
            disposable.append(entries[index].key)
        }
        for key in disposable { remove(key) }
        return disposable.count
    }
}

/// An entry of an ``ObjectTable``.
///
/// It does not depend on the type of the elements: tables are made and dropped with each context, and code for any type
/// would ask the runtime for the type of the entries each time.
@usableFromInline
struct ObjectTableEntry {
    @usableFromInline var key: Int64
    /// The element, which is retained; `nil` in a free entry.
    @usableFromInline var element: UnsafeMutableRawPointer?

    @inlinable
    init(key: Int64, element: UnsafeMutableRawPointer?) {
        self.key = key
        self.element = element
    }
}

/// The number of strong references to an object, from the Swift runtime.
///
/// The call itself takes none.
@_silgen_name("swift_retainCount")
private func retainCount(_ object: UnsafeMutableRawPointer) -> UInt
