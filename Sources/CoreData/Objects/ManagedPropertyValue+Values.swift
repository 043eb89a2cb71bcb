import Foundation
import StrataRows

// The types that are not numbers, in the shape of ManagedPropertyValue+Numbers.swift.

// MARK: - String

extension String: ManagedPropertyValue, ManagedScalar {
    /// A string attribute.
    public static var managedKind: ManagedValueKind { .attribute([.stringAttributeType]) }

    /// The value; "" if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> String {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming String,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> String?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming String?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension String: WordValue {
    static var absent: String { "" }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> String { row.load(String.self, word) }

    @inline(__always)
    static func store(_ value: consuming String, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeCounted(value, place)
    }
}

// MARK: - Date

extension Date: ManagedPropertyValue, ManagedScalar {
    /// A date attribute.
    public static var managedKind: ManagedValueKind { .attribute([.dateAttributeType]) }

    /// The value; the reference date if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Date {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Date,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Date?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Date?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Date: WordValue {
    static var absent: Date { Date(timeIntervalSinceReferenceDate: 0) }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Date {
        Date(timeIntervalSinceReferenceDate: Double(bitPattern: row.words[word]))
    }

    @inline(__always)
    static func store(_ value: Date, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeWord(value.timeIntervalSinceReferenceDate.bitPattern, place)
    }
}

// MARK: - Data

extension Data: ManagedPropertyValue, ManagedScalar {
    /// A binary attribute.
    public static var managedKind: ManagedValueKind { .attribute([.binaryDataAttributeType]) }

    /// The value; empty data if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Data {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Data,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Data?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming Data?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Data: WordValue {
    static var absent: Data { Data() }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Data { row.load(Data.self, word) }

    @inline(__always)
    static func store(_ value: consuming Data, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeCounted(value, place)
    }
}

// MARK: - UUID

extension UUID: ManagedPropertyValue, ManagedScalar {
    /// A UUID attribute.
    public static var managedKind: ManagedValueKind { .attribute([.UUIDAttributeType]) }

    /// The value; sixteen zero bytes if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> UUID {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming UUID,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> UUID?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming UUID?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension UUID: WordValue {
    static var absent: UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> UUID { row.load(UUID.self, word) }

    @inline(__always)
    static func store(_ value: UUID, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeBytes(of: value, place)
    }
}

// MARK: - Decimal

extension Decimal: ManagedPropertyValue, ManagedScalar {
    /// A decimal attribute.
    public static var managedKind: ManagedValueKind { .attribute([.decimalAttributeType]) }

    /// The value; 0 if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Decimal {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming Decimal,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
        -> Decimal?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: Decimal?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension Decimal: WordValue {
    static var absent: Decimal { 0 }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> Decimal { row.load(Decimal.self, word) }

    @inline(__always)
    static func store(_ value: Decimal, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeBytes(of: value, place)
    }
}

// MARK: - URL

extension URL: ManagedPropertyValue, ManagedScalar {
    /// A URI attribute.
    public static var managedKind: ManagedValueKind { .attribute([.URIAttributeType]) }

    /// The value; `file:///` if there is none.
    @inline(__always)
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> URL {
        read(object, property)
    }

    /// Sets the value.
    @inline(__always)
    public static func managedWrite(
        _ value: consuming URL,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        write(value, object, property)
    }

    /// The value, or nil.
    @inline(__always)
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> URL?
    {
        readOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inline(__always)
    public static func managedWriteOptional(
        _ value: consuming URL?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        writeOptional(value, object, property)
    }
}

extension URL: WordValue {
    static var absent: URL { URL(fileURLWithPath: "/") }

    @inline(__always)
    static func load(_ row: UnsafeRow, _ word: Int) -> URL { URL(string: row.load(String.self, word)) ?? absent }

    @inline(__always)
    static func store(_ value: URL, _ row: UnsafeRow, _ place: UnsafeSlot, _ object: NSManagedObject) {
        row.storeCounted(value.absoluteString, place)
    }
}
