import Foundation
import StrataRows

// The types that are not numbers; the file is built like ManagedPropertyValue+Numbers.swift.

// MARK: - String

@ManagedScalarAccess
extension String: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A string attribute, read as "" if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.stringAttributeType]) }
}

extension String: WordValue {
    static var absent: String { "" }

    @inline(__always)
    static func load(_ words: ValueWords) -> String { words.value(String.self) }

    @inline(__always)
    static func store(
        _ value: consuming String,
        in row: UnsafeRow,
        at place: UnsafeSlot,
        of object: NSManagedObject
    ) {
        row.storeCounted(value, place)
    }
}

// MARK: - Date

@ManagedScalarAccess
extension Date: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A date attribute, read as the reference date if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.dateAttributeType]) }
}

extension Date: WordValue {
    static var absent: Date { Date(timeIntervalSinceReferenceDate: 0) }

    @inline(__always)
    static func load(_ words: ValueWords) -> Date {
        Date(timeIntervalSinceReferenceDate: Double(bitPattern: words.pointee))
    }

    @inline(__always)
    static func store(_ value: Date, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeWord(value.timeIntervalSinceReferenceDate.bitPattern, place)
    }
}

// MARK: - Data

@ManagedScalarAccess
extension Data: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A binary attribute, read as empty data if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.binaryDataAttributeType]) }
}

extension Data: WordValue {
    static var absent: Data { Data() }

    /// The program may have given a function that frees the bytes.
    static var releasesCode: Bool {
        @inline(__always) get { true }
    }

    @inline(__always)
    static func load(_ words: ValueWords) -> Data { words.value(Data.self) }

    @inline(__always)
    static func store(_ value: consuming Data, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeCounted(value, place)
    }
}

// MARK: - UUID

@ManagedScalarAccess
extension UUID: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A UUID attribute, read as sixteen zero bytes if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.UUIDAttributeType]) }
}

extension UUID: WordValue {
    static var absent: UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) }

    @inline(__always)
    static func load(_ words: ValueWords) -> UUID { words.value(UUID.self) }

    @inline(__always)
    static func store(_ value: UUID, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeBytes(of: value, place)
    }
}

// MARK: - Decimal

@ManagedScalarAccess
extension Decimal: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A decimal attribute, read as 0 if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.decimalAttributeType]) }
}

extension Decimal: WordValue {
    static var absent: Decimal { 0 }

    @inline(__always)
    static func load(_ words: ValueWords) -> Decimal { words.value(Decimal.self) }

    @inline(__always)
    static func store(_ value: Decimal, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeBytes(of: value, place)
    }
}

// MARK: - URL

@ManagedScalarAccess
extension URL: ManagedPropertyValue, ManagedScalar, GlancedValue {
    /// A URI attribute, read as `file:///` if there is no value.
    public static var managedKind: ManagedValueKind { .attribute([.URIAttributeType]) }
}

extension URL: WordValue {
    static var absent: URL { URL(fileURLWithPath: "/") }

    @inline(__always)
    static func load(_ words: ValueWords) -> URL {
        URL(string: words.value(String.self)) ?? absent
    }

    @inline(__always)
    static func store(_ value: URL, in row: UnsafeRow, at place: UnsafeSlot, of object: NSManagedObject) {
        row.storeCounted(value.absoluteString, place)
    }
}
