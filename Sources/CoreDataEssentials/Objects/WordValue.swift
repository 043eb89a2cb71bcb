import Foundation
import StrataRows

/// A type whose values lie in a row's words; its typed accessors do not use `Any`.
protocol WordValue: ManagedScalar {
    /// The value of a property that is not optional if there is no stored value.
    static var absent: Self { get }
    /// Whether the release of a value may run code of the program.
    static var releasesCode: Bool { get }
    /// Loads a value that is not null from its words.
    static func load(_ words: ValueWords) -> Self
    /// Stores a value at its place in a row that the object owns.
    static func store(_ value: consuming Self, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject)
}

/// The first of the words in which a value lies.
typealias ValueWords = UnsafeMutablePointer<UInt64>

extension ValueWords {
    /// The value in these words, read as a type.
    @inline(__always)
    func value<T>(_ type: T.Type) -> T { UnsafeMutableRawPointer(self).assumingMemoryBound(to: type).pointee }
}

/// The value that a property of a type has if there is no stored value; `nil` for a type that has no such value.
package func absentValue(of type: Any.Type) -> Any? {
    func absent<Value: WordValue>(_ type: Value.Type) -> Any { Value.absent }
    return (type as? any WordValue.Type).map { absent($0) }
}

extension WordValue {
    static var releasesCode: Bool {
        @inline(__always) get { false }
    }

    /// Reads a property: two comparisons, a look at the null bit, and a load.
    ///
    /// The slow parts are in a separate function, so this one needs almost no stack.
    @inline(__always)
    static func read(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
        guard let place = property.knownSlot(in: object.unmanagedLayout), let row = object.readyWords else {
            return readSlowly(object, property)
        }
        return row.isNull(place.index) ? absent : load(row.words + place.word)
    }

    /// The same as `read`, with nil for no value.
    @inline(__always)
    static func readOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self? {
        guard let place = property.knownSlot(in: object.unmanagedLayout), let row = object.readyWords else {
            return readOptionalSlowly(object, property)
        }
        return row.isNull(place.index) ? nil : load(row.words + place.word)
    }

    /// Writes a property.
    @inline(__always)
    static func write(_ value: consuming Self, to object: NSManagedObject, property: borrowing AnyManagedProperty) {
        guard let place = property.knownSlot(in: object.unmanagedLayout), object.isWritable else {
            return writeSlowly(value, to: object, property: property)
        }
        store(value, in: object.writableWords(place.index), at: place, of: object)
    }

    /// The same as `write`, with nil for no value.
    @inline(__always)
    static func writeOptional(
        _ value: consuming Self?,
        to object: NSManagedObject,
        property: borrowing AnyManagedProperty
    ) {
        guard let place = property.knownSlot(in: object.unmanagedLayout), object.isWritable else {
            return writeSlowly(value, to: object, property: property)
        }
        put(value, at: place, of: object)
    }

    // MARK: - The first access, faults, and properties that are not slots

    @inline(never)
    private static func readSlowly(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
        readOptionalSlowly(object, property) ?? absent
    }

    @inline(never)
    private static func readOptionalSlowly(
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) -> Self? {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.anyValue(forKey: property.name) as? Self }
        let row = object.readableWords(place.index)
        return row.isNull(place.index) ? nil : load(row.words + place.word)
    }

    @inline(never)
    private static func writeSlowly(
        _ value: consuming Self?,
        to object: NSManagedObject,
        property: borrowing AnyManagedProperty
    ) {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        let isPrimitive =
            property.knownSlot(in: object.unmanagedLayout) == nil
            && object.layout.primitiveBase(of: property.name) != nil
        guard place != .elsewhere, !isPrimitive else { return object.setAnyValue(value, forKey: property.name) }
        put(value, at: place, of: object)
    }

    @inline(__always)
    private static func put(_ value: consuming Self?, at place: UnsafeSlot, of object: NSManagedObject) {
        guard let value else { return object.writableRow(place.index).setNull(object.layout.slots[place.index]) }
        store(value, in: object.writableWords(place.index), at: place, of: object)
    }
}

extension NSManagedObject {
    /// The words to read, valid as long as `readableWords`; nil if they have to be fetched, or if the access has to
    /// be checked.
    @inline(__always)
    final var readyWords: UnsafeRow? {
        // This works as in `readableRow`. No code runs between this and the load that could release the row.
        flags.isDisjoint(with: .slowRead) ? UnsafeRow(heldRow.unsafelyUnwrapped) : nil
    }

    /// The words to read.
    ///
    /// They are valid until the object is next written to or released.
    @inline(__always)
    final func readableWords(_ slot: Int) -> UnsafeRow {
        readyWords ?? UnsafeRow(slowlyReadableRow(slot))
    }

    /// The words to write to, as for `writableRow`; they are valid as long as `readableWords`.
    ///
    /// `slot`: The slot that is written, for messages.
    @inline(__always)
    final func writableWords(_ slot: Int) -> UnsafeRow {
        if !isWritable { _ = prepareToWrite(slot) }
        // As above, the object always has a row here.
        return UnsafeRow(heldRow.unsafelyUnwrapped)
    }
}

extension UnsafeRow {
    @inline(__always)
    func storeWord(_ value: UInt64, _ place: UnsafeSlot) {
        words[place.word] = value
        markPresent(place.index)
    }

    /// Stores a value that contains no counted reference.
    @inline(__always)
    func storeBytes<T>(of value: T, _ place: UnsafeSlot) {
        pointer(T.self, place.word).initialize(to: value)
        markPresent(place.index)
    }

    /// Stores a value that contains a counted reference, in place of the former value.
    @inline(__always)
    func storeCounted<T>(_ value: consuming T, _ place: UnsafeSlot) {
        if isNull(place.index) {
            pointer(T.self, place.word).initialize(to: value)
            markPresent(place.index)
        } else {
            pointer(T.self, place.word).pointee = value
        }
    }
}
