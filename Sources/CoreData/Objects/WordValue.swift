import Foundation

/// A type whose values lie in a row's words: what its typed accessors are made of, without `Any`.
protocol WordValue: ManagedScalar {
    /// What a property that is not optional reads as where there is no value.
    static var absent: Self { get }
    /// The value at `word`, which is not null.
    static func load(_ row: UnsafeRow, _ word: Int) -> Self
    /// Puts a value into its place in a row that the object owns.
    static func store(_ value: Self, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject)
}

extension WordValue {
    /// Reads a property: a comparison, a look at the null bit, and a load.
    @inline(__always)
    static func read(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.anyValue(forKey: property.name) as? Self ?? absent }
        let row = object.readableWords(place.index)
        return row.isNull(place.index) ? absent : load(row, place.word)
    }

    /// As `read`, with nil for no value.
    @inline(__always)
    static func readOptional(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self? {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.anyValue(forKey: property.name) as? Self }
        let row = object.readableWords(place.index)
        return row.isNull(place.index) ? nil : load(row, place.word)
    }

    /// Writes a property.
    @inline(__always)
    static func write(_ value: Self, _ object: NSManagedObject, _ property: AnyManagedProperty) {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.setAnyValue(value, forKey: property.name) }
        store(value, object.writableWords(), place, object)
    }

    /// As `write`, with nil for no value.
    @inline(__always)
    static func writeOptional(_ value: Self?, _ object: NSManagedObject, _ property: AnyManagedProperty) {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.setAnyValue(value, forKey: property.name) }
        guard let value else { return object.writableRow().setNull(object.layout.slots[place.index]) }
        store(value, object.writableWords(), place, object)
    }
}

extension NSManagedObject {
    /// The words to read.
    ///
    /// Valid until the object is next written to, or let go of.
    @inline(__always)
    final func readableWords(_ slot: Int) -> UnsafeRow {
        if !flags.isDisjoint(with: .slowRead) { return UnsafeRow(slowlyReadableRow(slot)) }
        // As in `readableRow`. Nothing runs between this and the load that could let go of the row.
        return UnsafeRow(heldRow.unsafelyUnwrapped)
    }

    /// The words to write to, as `writableRow` gives them, and as long as `readableWords`.
    @inline(__always)
    final func writableWords() -> UnsafeRow {
        if !isWritable { _ = prepareToWrite() }
        // As above.
        return UnsafeRow(heldRow.unsafelyUnwrapped)
    }
}

extension UnsafeRow {
    @inline(__always)
    func storeWord(_ value: UInt64, _ place: UnsafeSlot) {
        words[place.word] = value
        markPresent(place.index)
    }

    /// Stores a value that holds no counted reference.
    @inline(__always)
    func storeBytes<T>(of value: T, _ place: UnsafeSlot) {
        pointer(T.self, place.word).initialize(to: value)
        markPresent(place.index)
    }

    /// Stores a value that is counted, in place of the one there.
    @inline(__always)
    func storeCounted<T>(_ value: T, _ place: UnsafeSlot) {
        if isNull(place.index) {
            pointer(T.self, place.word).initialize(to: value)
            markPresent(place.index)
        } else {
            pointer(T.self, place.word).pointee = value
        }
    }
}
