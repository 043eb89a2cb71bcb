import Foundation
import StrataPredicates
import Synchronization

/// The part of a row's memory before its words.
public struct RowHeader {
    /// The time when the row was read, or was found unchanged in the store, in coarse steps of a monotonic clock.
    ///
    /// It is the first member, and is accessed as an atomic, because the row cache sets it while other threads read the
    /// row; see ``UnsafeRow/stamp``.
    @usableFromInline let initialStamp: UInt32
    /// A bit for each of the first 32 slots, set if the value is null.
    public var nulls: UInt32
    /// The layout.
    ///
    /// It lives as long as the process (see ``EntityLayout``), so its references need not be counted.
    public let layout: Unmanaged<EntityLayout>
    /// The primary key; negative while the object has never been saved.
    public var key: Int64
    /// The optimistic-lock version, `Z_OPT` in SQLite; 0 while the object has never been saved.
    public var version: Int64

    /// The header of a row.
    @inlinable
    public init(layout: Unmanaged<EntityLayout>, key: Int64, version: Int64, stamp: UInt32, nulls: UInt32) {
        self.layout = layout
        self.key = key
        self.version = version
        initialStamp = stamp
        self.nulls = nulls
    }
}

/// A row's memory: the header, then null bits for slots above 31, then the values.
public final class RowBuffer: ManagedBuffer<RowHeader, UInt64> {
    @inlinable
    deinit {
        let row = UnsafeRow(self)
        let layout = row.header.pointee.layout
        for place in layout._withUnsafeGuaranteedRef({ $0.countedPlaces }) where !row.isNull(place.slot) {
            row.release(place)
        }
    }
}

/// The values of one object as one store holds them: an immutable snapshot, in the order of the entity's slots.
///
/// The row cache, any number of contexts and the conflict detector share one row without copying. A changed object owns
/// a row of the same shape that no other code can see; only there may the `set` members be called. When the object is
/// saved, that row is frozen, simply by being shared: an object that changes again copies it first.
///
/// Any thread may read a shared row.
public struct Row: @unchecked Sendable {
    // @unchecked Sendable: a shared row is never written; an unshared one has one owner, confined to its queue.
    /// The row's memory.
    public let buffer: RowBuffer

    /// Makes a row of nulls.
    @inlinable
    public init(layout: EntityLayout, key: Int64, version: Int64 = 0, stamp: UInt32 = 0) {
        self.init(shape: layout.rowShape, key: key, version: version, stamp: stamp)
    }

    /// Makes a row of nulls without counting references, for loops over many rows.
    @inlinable
    @inline(__always)
    public init(shape: UnsafeRowShape, key: Int64, version: Int64, stamp: UInt32) {
        let raw = RowBuffer.create(minimumCapacity: shape.wordCount) { _ in
            RowHeader(layout: shape.layout, key: key, version: version, stamp: stamp, nulls: .max)
        }
        // The buffer was made by `RowBuffer.create`, so it is one.
        buffer = unsafeDowncast(raw, to: RowBuffer.self)
        if shape.nullWords > 0 {
            buffer.withUnsafeMutablePointerToElements { $0.update(repeating: .max, count: shape.nullWords) }
        }
    }

    /// Makes a row from a buffer that others hold as well.
    @inlinable
    public init(shared buffer: RowBuffer) {
        self.buffer = buffer
    }

    /// The layout, which gives the place of each property in the row.
    @inlinable
    public var layout: EntityLayout {
        @inline(__always) get { withHeader { $0.pointee.layout.takeUnretainedValue() } }
    }
    /// The primary key; negative while the object has never been saved.
    @inlinable
    public var key: Int64 {
        @inline(__always) get { withHeader { $0.pointee.key } }
    }
    /// The optimistic-lock version; 0 while the object has never been saved.
    @inlinable
    public var version: Int64 {
        @inline(__always) get { withHeader { $0.pointee.version } }
    }
    /// The time when the row was read, or was last found unchanged in the store, for a context's `stalenessInterval`.
    package var stamp: UInt32 { withExtendedLifetime(buffer) { unsafe.stamp } }

    /// Reads the header in place, because `ManagedBuffer.header` would check for exclusive access each time.
    @inlinable
    @inline(__always)
    func withHeader<T>(_ read: (UnsafeMutablePointer<RowHeader>) -> T) -> T {
        withExtendedLifetime(buffer) { read(unsafe.header) }
    }

    /// The same memory without reference counting, for runs of reads or writes.
    @inlinable
    @inline(__always)
    public var unsafe: UnsafeRow { UnsafeRow(buffer) }

    /// A copy of the header.
    @usableFromInline var header: RowHeader {
        withExtendedLifetime(buffer) {
            let (row, stamp) = (unsafe.header, unsafe.stamp)
            return RowHeader(
                layout: row.pointee.layout,
                key: row.pointee.key,
                version: row.pointee.version,
                stamp: stamp,
                nulls: row.pointee.nulls
            )
        }
    }

    /// A copy of which the caller is the only owner.
    @inlinable
    public func copy() -> Row {
        let layout = layout
        let raw = RowBuffer.create(minimumCapacity: layout.wordCount) { _ in self.header }
        // The buffer was made by `RowBuffer.create` here, too.
        let copy = unsafeDowncast(raw, to: RowBuffer.self)
        buffer.withUnsafeMutablePointerToElements { source in
            copy.withUnsafeMutablePointerToElements { $0.update(from: source, count: layout.wordCount) }
        }
        let target = UnsafeRow(copy)
        let source = unsafe
        for place in layout.countedPlaces where !target.isNull(place.slot) { target.retain(place, from: source) }
        return Row(shared: copy)
    }

    /// The rows without reference counting, for a loop over many.
    ///
    /// The caller must hold `rows` meanwhile.
    @inlinable
    public static func unmanaged(_ rows: [Row]) -> [Unmanaged<RowBuffer>] {
        // A row is one reference, and an unmanaged reference has the same form in memory as a counted one.
        unsafeBitCast(rows, to: [Unmanaged<RowBuffer>].self)
    }

    /// Passes the rows to `body` without reference counting.
    ///
    /// If `body` replaces a row, it has to adjust the counts itself.
    @inlinable
    @inline(__always)
    public static func withUnmanaged(
        _ rows: inout [Row],
        _ body: (UnsafeMutableBufferPointer<Unmanaged<RowBuffer>>) -> Void
    ) {
        rows.withUnsafeMutableBufferPointer { rows in
            // The two have the same form in memory, see `unmanaged(_:)`.
            rows.withMemoryRebound(to: Unmanaged<RowBuffer>.self, body)
        }
    }

    /// Passes one row to `body`, as the other form passes many.
    @inlinable
    @inline(__always)
    public static func withUnmanaged(
        _ row: inout Row,
        _ body: (UnsafeMutableBufferPointer<Unmanaged<RowBuffer>>) -> Void
    ) {
        withUnsafeMutablePointer(to: &row) { row in
            // The two have the same form in memory, see `unmanaged(_:)`.
            row.withMemoryRebound(to: Unmanaged<RowBuffer>.self, capacity: 1) {
                body(UnsafeMutableBufferPointer(start: $0, count: 1))
            }
        }
    }

    /// Whether both are one and the same row in memory.
    @inlinable
    public static func === (left: Row, right: Row) -> Bool { left.buffer === right.buffer }
    /// Whether both are different rows in memory.
    @inlinable
    public static func !== (left: Row, right: Row) -> Bool { left.buffer !== right.buffer }

    // MARK: - Reading

    /// Whether the slot at a position has no value.
    @inlinable
    @inline(__always)
    public func isNull(_ slot: Int) -> Bool { unsafe.isNull(slot) }

    /// The integer at a word.
    @inlinable
    @inline(__always)
    public func int(_ word: Int) -> Int64 { Int64(bitPattern: unsafe.words[word]) }

    /// The floating-point number at a word.
    @inlinable
    @inline(__always)
    public func double(_ word: Int) -> Double { Double(bitPattern: unsafe.words[word]) }

    /// The text at a word.
    @inlinable
    @inline(__always)
    public func string(_ word: Int) -> String { unsafe.load(String.self, word) }

    /// The bytes at a word.
    @inlinable
    @inline(__always)
    public func data(_ word: Int) -> Data { unsafe.load(Data.self, word) }

    /// The UUID at a word.
    @inlinable
    @inline(__always)
    public func uuid(_ word: Int) -> UUID { unsafe.load(UUID.self, word) }

    /// The decimal number at a word.
    @inlinable
    @inline(__always)
    public func decimal(_ word: Int) -> Decimal { unsafe.load(Decimal.self, word) }

    /// The destination of a to-one relationship.
    @inlinable
    @inline(__always)
    public func reference(_ slot: Slot) -> ObjectReference? { unsafe.reference(slot) }

    // MARK: - Writing, by the owner only

    /// Sets the primary key.
    @inlinable
    public func setKey(_ key: Int64) { withExtendedLifetime(buffer) { unsafe.header.pointee.key = key } }
    /// Sets the version.
    @inlinable
    public func setVersion(_ version: Int64) {
        withExtendedLifetime(buffer) { unsafe.header.pointee.version = version }
    }
    /// Sets the time of reading.
    package func setStamp(_ stamp: UInt32) { withExtendedLifetime(buffer) { unsafe.stamp = stamp } }

    /// Removes the value of a slot.
    @inlinable
    @inline(__always)
    public func setNull(_ slot: Slot) {
        let row = unsafe
        guard !row.isNull(slot.index) else { return }
        if let place = CountedPlace(slot) { row.release(place) }
        row.markNull(slot.index)
    }

    /// Sets an integer.
    @inlinable
    @inline(__always)
    public func setInt(_ value: Int64, _ slot: Slot) {
        let row = unsafe
        row.words[slot.word] = UInt64(bitPattern: value)
        row.markPresent(slot.index)
    }

    /// Sets a floating-point number.
    @inlinable
    @inline(__always)
    public func setDouble(_ value: Double, _ slot: Slot) {
        let row = unsafe
        row.words[slot.word] = value.bitPattern
        row.markPresent(slot.index)
    }

    /// Sets a text.
    @inlinable
    @inline(__always)
    public func setString(_ value: String, _ slot: Slot) { unsafe.storeCounted(value, slot) }

    /// Sets bytes.
    @inlinable
    @inline(__always)
    public func setData(_ value: Data, _ slot: Slot) { unsafe.storeCounted(value, slot) }

    /// Sets a UUID.
    @inlinable
    @inline(__always)
    public func setUUID(_ value: UUID, _ slot: Slot) { unsafe.storePlain(value, slot) }

    /// Sets a decimal number.
    @inlinable
    @inline(__always)
    public func setDecimal(_ value: Decimal, _ slot: Slot) { unsafe.storePlain(value, slot) }

    /// Sets the destination of a to-one relationship, or removes it.
    @inlinable
    @inline(__always)
    public func setReference(_ value: ObjectReference?, _ slot: Slot) {
        let row = unsafe
        guard let value else { return row.markNull(slot.index) }
        row.words[slot.word] = UInt64(bitPattern: value.key)
        row.words[slot.word + 1] = UInt64(value.entity)
        row.markPresent(slot.index)
    }

    // MARK: - Comparing and copying single slots

    /// Whether both rows, of one layout or of a layout and a sub-layout, hold the same value in `slot`.
    @inlinable
    public func hasSameValue(as other: Row, in slot: Slot) -> Bool {
        let left = unsafe
        let right = other.unsafe
        let isNull = left.isNull(slot.index)
        guard isNull == right.isNull(slot.index) else { return false }
        if isNull { return true }
        switch slot.kind {
        case .int, .reference: return left.words[slot.word] == right.words[slot.word]
        case .double:
            let (a, b) = (double(slot.word), other.double(slot.word))
            return a == b || (a.isNaN && b.isNaN)
        case .string: return Row.hasSameBytes(string(slot.word), other.string(slot.word))
        case .data: return data(slot.word) == other.data(slot.word)
        case .uuid:
            return left.words[slot.word] == right.words[slot.word]
                && left.words[slot.word + 1] == right.words[slot.word + 1]
        case .decimal: return decimal(slot.word) == other.decimal(slot.word)
        }
    }

    /// Whether two texts have the same code points, which is how databases and predicates compare them.
    ///
    /// Swift regards all spellings of an accented letter as equal.
    @usableFromInline
    static func hasSameBytes(_ text: String, _ other: String) -> Bool { equalBytes(text, other) }

    /// Takes one slot's value from another row.
    @inlinable
    public func take(_ slot: Slot, from other: Row) {
        guard !other.isNull(slot.index) else { return setNull(slot) }
        switch slot.kind {
        case .int: setInt(other.int(slot.word), slot)
        case .double: setDouble(other.double(slot.word), slot)
        case .string: setString(other.string(slot.word), slot)
        case .data: setData(other.data(slot.word), slot)
        case .uuid: setUUID(other.uuid(slot.word), slot)
        case .decimal: setDecimal(other.decimal(slot.word), slot)
        case .reference: setReference(other.reference(slot), slot)
        }
    }
}

/// The destination of a relationship: a key and the number of the concrete entity it belongs to.
///
/// The store is the owner's, since relationships do not cross stores.
public struct ObjectReference: Hashable, Sendable {
    /// The primary key; negative while the object has never been saved.
    public var key: Int64
    /// The number of the destination's entity in the frozen model.
    ///
    /// If the concrete entity is not known, it is that of the declared destination.
    public var entity: Int

    /// A reference by key and entity.
    @inlinable
    public init(key: Int64, entity: Int) {
        self.key = key
        self.entity = entity
    }

    // A key is unique in its hierarchy, so the entity is not compared.
    /// Whether both have the same key.
    @inlinable
    public static func == (left: ObjectReference, right: ObjectReference) -> Bool { left.key == right.key }
    /// Feeds the key to a hasher.
    @inlinable
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

/// A row's memory without reference counting.
///
/// It is valid only as long as other code holds the row.
public struct UnsafeRow {
    /// The part of the memory before the words.
    public let header: UnsafeMutablePointer<RowHeader>
    /// Null bits for slots above 31, then the values.
    public let words: UnsafeMutablePointer<UInt64>

    /// The memory of a row that the caller holds.
    @inlinable
    @inline(__always)
    public init(_ buffer: RowBuffer) {
        (header, words) = buffer.withUnsafeMutablePointers { ($0, $1) }
    }

    /// The memory of a row that the caller holds.
    @inlinable
    @inline(__always)
    public init(_ held: Unmanaged<RowBuffer>) {
        self = held._withUnsafeGuaranteedRef { UnsafeRow($0) }
    }

    /// The time when the row was read, or was last found unchanged in the store.
    ///
    /// Any thread may set a later time, so it is the only part of a shared row that ever changes.
    package var stamp: UInt32 {
        get { stampPlace.pointee.load(ordering: .relaxed) }
        nonmutating set { stampPlace.pointee.store(newValue, ordering: .relaxed) }
    }

    /// The place of the stamp, which is the first member of the header; an atomic has the form of its value in memory.
    private var stampPlace: UnsafeMutablePointer<Atomic<UInt32>> {
        UnsafeMutableRawPointer(header).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    /// Whether the slot at a position has no value.
    @inlinable
    @inline(__always)
    public func isNull(_ slot: Int) -> Bool {
        if slot < 32 { return header.pointee.nulls & (1 << UInt32(truncatingIfNeeded: slot)) != 0 }
        let bit = slot - 32
        return words[bit >> 6] & (1 << UInt64(bit & 63)) != 0
    }

    /// Notes that a slot has no value.
    @inlinable
    @inline(__always)
    public func markNull(_ slot: Int) {
        if slot < 32 { return header.pointee.nulls |= 1 << UInt32(truncatingIfNeeded: slot) }
        let bit = slot - 32
        words[bit >> 6] |= 1 << UInt64(bit & 63)
    }

    /// Notes that a slot has a value.
    @inlinable
    @inline(__always)
    public func markPresent(_ slot: Int) {
        if slot < 32 { return header.pointee.nulls &= ~(1 << UInt32(truncatingIfNeeded: slot)) }
        let bit = slot - 32
        words[bit >> 6] &= ~(1 << UInt64(bit & 63))
    }

    /// The place of the value at a word, as a pointer of a type.
    @inlinable
    @inline(__always)
    public func pointer<T>(_ type: T.Type, _ word: Int) -> UnsafeMutablePointer<T> {
        UnsafeMutableRawPointer(words + word).assumingMemoryBound(to: type)
    }

    /// The value at a word, read as a type.
    @inlinable
    @inline(__always)
    public func load<T>(_ type: T.Type, _ word: Int) -> T { pointer(type, word).pointee }

    /// Sets a value that contains no counted reference.
    @inlinable
    @inline(__always)
    public func storePlain<T>(_ value: T, _ slot: Slot) {
        pointer(T.self, slot.word).initialize(to: value)
        markPresent(slot.index)
    }

    /// Sets a value that contains a counted reference.
    @inlinable
    @inline(__always)
    public func storeCounted<T>(_ value: T, _ slot: Slot) {
        if isNull(slot.index) {
            pointer(T.self, slot.word).initialize(to: value)
            markPresent(slot.index)
        } else {
            pointer(T.self, slot.word).pointee = value
        }
    }

    /// The destination of a to-one relationship.
    @inlinable
    @inline(__always)
    public func reference(_ slot: Slot) -> ObjectReference? { reference(slot.index, at: slot.word) }

    /// The destination of a to-one relationship, by its slot's index and word.
    @inlinable
    @inline(__always)
    public func reference(_ slot: Int, at word: Int) -> ObjectReference? {
        guard !isNull(slot) else { return nil }
        return ObjectReference(key: Int64(bitPattern: words[word]), entity: Int(truncatingIfNeeded: words[word + 1]))
    }

    /// Releases the counted value at `place`, which must be present.
    @inlinable
    @inline(__always)
    public func release(_ place: CountedPlace) {
        if place.isString {
            pointer(String.self, place.word).deinitialize(count: 1)
        } else {
            pointer(Data.self, place.word).deinitialize(count: 1)
        }
    }

    /// Retains the value at `place`, after its words were copied from `source`.
    @inlinable
    @inline(__always)
    public func retain(_ place: CountedPlace, from source: UnsafeRow) {
        if place.isString {
            pointer(String.self, place.word).initialize(to: source.load(String.self, place.word))
        } else {
            pointer(Data.self, place.word).initialize(to: source.load(Data.self, place.word))
        }
    }
}
