import Foundation
import StrataRows

// The numbers. The macro writes the functions that typed accessors call, the same for each type; this file has the
// parts that differ.

// MARK: - Int16

@ManagedScalarAccess
extension Int16: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// An integer attribute of 16 bits, read as 0 if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.integer16AttributeType]) }
}

extension Int16: WordValue {
    static var absent: Int16 { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Int16 { Int16(truncatingIfNeeded: words.pointee) }

    @inline(__always)
    static func store(_ value: Int16, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeWord(UInt64(bitPattern: Int64(value)), place)
    }
}

// MARK: - Int32

@ManagedScalarAccess
extension Int32: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// An integer attribute of 32 bits, read as 0 if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.integer32AttributeType]) }
}

extension Int32: WordValue {
    static var absent: Int32 { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Int32 { Int32(truncatingIfNeeded: words.pointee) }

    @inline(__always)
    static func store(_ value: Int32, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeWord(UInt64(bitPattern: Int64(value)), place)
    }
}

// MARK: - Int64

@ManagedScalarAccess
extension Int64: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// An integer attribute of 64 bits, read as 0 if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.integer64AttributeType]) }
}

extension Int64: WordValue {
    static var absent: Int64 { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Int64 { Int64(truncatingIfNeeded: words.pointee) }

    @inline(__always)
    static func store(_ value: Int64, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeWord(UInt64(bitPattern: value), place)
    }
}

// MARK: - Int

@ManagedScalarAccess
extension Int: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// An integer attribute of any width, read as 0 if there is no value.
    public static var managedKind: ManagedValueKind {
        .attribute([.integer64AttributeType, .integer32AttributeType, .integer16AttributeType])
    }
}

extension Int: WordValue {
    static var absent: Int { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Int { Int(truncatingIfNeeded: words.pointee) }

    @inline(__always)
    static func store(_ value: Int, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        // A value that fits into the narrowest attribute needs no look at the model.
        if Int16(exactly: value) == nil { object.layout.slots[place.index].requireWidth(for: value) }
        row.storeWord(UInt64(bitPattern: Int64(value)), place)
    }
}

// MARK: - Bool

@ManagedScalarAccess
extension Bool: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A Boolean attribute, read as false if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.booleanAttributeType]) }
}

extension Bool: WordValue {
    static var absent: Bool { false }

    @inline(__always)
    static func load(_ words: ValueWords) -> Bool { words.pointee != 0 }

    @inline(__always)
    static func store(_ value: Bool, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeWord(value ? 1 : 0, place)
    }
}

// MARK: - Double

@ManagedScalarAccess
extension Double: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A double attribute, read as 0 if there is no value; or a date attribute, as the seconds since 2001.
    public static var managedKind: ManagedValueKind { .attribute([.doubleAttributeType, .dateAttributeType]) }
}

extension Double: WordValue {
    static var absent: Double { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Double { Double(bitPattern: words.pointee) }

    @inline(__always)
    static func store(_ value: Double, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeWord(value.bitPattern, place)
    }
}

// MARK: - Float

@ManagedScalarAccess
extension Float: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A float attribute, read as 0 if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.floatAttributeType]) }
}

extension Float: WordValue {
    static var absent: Float { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Float { Float(Double(bitPattern: words.pointee)) }

    @inline(__always)
    static func store(_ value: Float, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
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
