import Foundation
import StrataRows

// The numbers. A type and its optional differ only in what null becomes. Other modules call these functions, which are
// always inlined only where this one does: so the optimiser leaves them whole, and no call goes through a second one.

// MARK: - Int16

extension Int16: ManagedPropertyValue, ManagedScalar {
    /// An integer attribute of 16 bits.
    public static var managedKind: ManagedValueKind { .attribute([.integer16AttributeType]) }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Int16 {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Int16,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> Int16?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Int16?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Int16: WordValue {
    static var absent: Int16 { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Int16 { Int16(truncatingIfNeeded: row.words[word]) }

    @inline(__always)
    static func store(_ value: Int16, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(UInt64(bitPattern: Int64(value)), place)
    }
}

// MARK: - Int32

extension Int32: ManagedPropertyValue, ManagedScalar {
    /// An integer attribute of 32 bits.
    public static var managedKind: ManagedValueKind { .attribute([.integer32AttributeType]) }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Int32 {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Int32,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> Int32?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Int32?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Int32: WordValue {
    static var absent: Int32 { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Int32 { Int32(truncatingIfNeeded: row.words[word]) }

    @inline(__always)
    static func store(_ value: Int32, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(UInt64(bitPattern: Int64(value)), place)
    }
}

// MARK: - Int64

extension Int64: ManagedPropertyValue, ManagedScalar {
    /// An integer attribute of 64 bits.
    public static var managedKind: ManagedValueKind { .attribute([.integer64AttributeType]) }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Int64 {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Int64,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> Int64?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Int64?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Int64: WordValue {
    static var absent: Int64 { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Int64 { Int64(truncatingIfNeeded: row.words[word]) }

    @inline(__always)
    static func store(_ value: Int64, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(UInt64(bitPattern: value), place)
    }
}

// MARK: - Int

extension Int: ManagedPropertyValue, ManagedScalar {
    /// An integer attribute of any width.
    public static var managedKind: ManagedValueKind {
        .attribute([.integer16AttributeType, .integer32AttributeType, .integer64AttributeType])
    }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Int {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Int,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Int?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Int?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Int: WordValue {
    static var absent: Int { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Int { Int(truncatingIfNeeded: row.words[word]) }

    @inline(__always)
    static func store(_ value: Int, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        // What fits into the narrowest attribute needs no look at the model.
        if Int16(exactly: value) == nil { object.layout.slots[place.index].requireWidth(for: value) }
        row.storeWord(UInt64(bitPattern: Int64(value)), place)
    }
}

// MARK: - Bool

extension Bool: ManagedPropertyValue, ManagedScalar {
    /// A Boolean attribute.
    public static var managedKind: ManagedValueKind { .attribute([.booleanAttributeType]) }

    /// The value; false if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Bool {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Bool,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Bool?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Bool?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Bool: WordValue {
    static var absent: Bool { false }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Bool { row.words[word] != 0 }

    @inline(__always)
    static func store(_ value: Bool, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(value ? 1 : 0, place)
    }
}

// MARK: - Double

extension Double: ManagedPropertyValue, ManagedScalar {
    /// A double attribute.
    public static var managedKind: ManagedValueKind { .attribute([.doubleAttributeType]) }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Double {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Double,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> Double?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Double?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Double: WordValue {
    static var absent: Double { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Double { Double(bitPattern: row.words[word]) }

    @inline(__always)
    static func store(_ value: Double, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(value.bitPattern, place)
    }
}

// MARK: - Float

extension Float: ManagedPropertyValue, ManagedScalar {
    /// A float attribute.
    public static var managedKind: ManagedValueKind { .attribute([.floatAttributeType]) }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Float {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Float,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> Float?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Float?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Float: WordValue {
    static var absent: Float { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Float { Float(Double(bitPattern: row.words[word])) }

    @inline(__always)
    static func store(_ value: Float, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(Double(value).bitPattern, place)
    }
}

extension Slot {
    /// Stops the program if the attribute is too narrow for `value`.
    fileprivate func requireWidth(for value: Int) {
        switch type {
        case .integer16 where Int16(exactly: value) == nil,
            .integer32 where Int32(exactly: value) == nil:
            fatalError(
                "CoreData: \(value) does not fit into property \"\(name)\" of entity \(property.entity.name ?? ""), an attribute of type \(type.described). Give it a wider type in the model."
            )
        default: return
        }
    }
}
