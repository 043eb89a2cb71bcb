import CoreData
import Foundation
@_spi(Reflection) import Swift

/// The form in which the values of a Swift type are attributes of a managed object.
///
/// Each form and its column is Apple's, as stores made by SwiftData show it.
indirect enum StoredForm {
    case integer(any FixedWidthInteger.Type, bits: Int)
    case double
    case float
    case boolean
    case string
    case date
    case data
    case uuid
    case decimal
    case url
    /// An enumeration with a raw value: a composite with one element, which is named as the property.
    case rawValue(any RawRepresentable.Type, element: String, StoredForm)
    /// An enumeration without raw values and payloads: a composite with one element for each case, which has its name.
    case cases(any Codable.Type, [String])
    /// A structure: a composite of its stored properties.
    case structure(any Codable.Type, [Element])
    /// Arrays, sets, dictionaries and enumerations with payloads: text in JSON in a keyed archive.
    case json(any Codable.Type)
    /// The value that a transformer makes.
    case transformable(name: String?, Any.Type)

    /// A stored property of a structure.
    struct Element {
        let name: String
        let offset: Int
        let type: Any.Type
        let isOptional: Bool
        let form: StoredForm
    }

    /// The reason why a type has no form.
    struct Unsupported: Error, CustomStringConvertible {
        let description: String
    }

    /// Whether the values are one column and need no code: neither parts nor JSON.
    var isBasic: Bool {
        switch self {
        case .integer, .double, .float, .boolean, .string, .date, .data, .uuid, .decimal, .url: true
        case .rawValue, .cases, .structure, .json, .transformable: false
        }
    }

    /// Finds the form of a type that is not optional.
    init(of type: Any.Type, property: String, _ attribute: Schema.Attribute?) throws {
        if let transformer = attribute?.transformerName {
            self = .transformable(name: transformer, type)
            return
        }
        if attribute?.isCodable == true {
            guard let codable = type as? any Codable.Type else { throw Self.uncoded(type) }
            self = .json(codable)
            return
        }
        self = try Self.plain(type) ?? Self.compound(type, property)
    }

    private static func uncoded(_ type: Any.Type) -> Unsupported {
        Unsupported(description: "\(type) is not Codable. Mark the property with @Transient, or make the type Codable.")
    }

    private static func plain(_ type: Any.Type) -> StoredForm? {
        switch type {
        case let integer as any FixedWidthInteger.Type:
            .integer(integer, bits: integer.storedBits)
        case is Double.Type: .double
        case is Float.Type: .float
        case is Bool.Type: .boolean
        case is String.Type: .string
        case is Date.Type: .date
        case is Data.Type: .data
        case is UUID.Type: .uuid
        case is Decimal.Type: .decimal
        case is URL.Type: .url
        default: nil
        }
    }

    private static func compound(_ type: Any.Type, _ property: String) throws -> StoredForm {
        if let representable = type as? any RawRepresentable.Type, let raw = plain(representable.rawType) {
            return .rawValue(representable, element: property, raw)
        }
        guard let codable = type as? any Codable.Type else {
            throw uncoded(type)
        }
        if let cases = EnumerationCases.names(of: type) { return .cases(codable, cases) }
        var elements: [Element] = []
        var isOpaque = false
        let isStructure = !(type is AnyObject.Type) && isPlainStructure(type)
        if isStructure {
            _ = _forEachField(of: type, options: []) { name, offset, fieldType, _ in
                let wrapped = (fieldType as? any OptionalValue.Type)?.wrapped
                let name = String(cString: name)
                // A structure with such a part encodes itself in another way.
                guard let form = element(wrapped ?? fieldType) else {
                    isOpaque = true
                    return false
                }
                elements.append(
                    Element(name: name, offset: offset, type: fieldType, isOptional: wrapped != nil, form: form)
                )
                return true
            }
        }
        if isOpaque { return .json(codable) }
        if !elements.isEmpty { StructureKeyPaths.add(type) }
        return elements.isEmpty ? .json(codable) : .structure(codable, elements)
    }

    /// Arrays, sets and dictionaries are structures of the library, whose fields are no values.
    private static func isPlainStructure(_ type: Any.Type) -> Bool {
        !(type is any Collection.Type) && Mirror.isStructure(type)
    }

    /// The form of an element: further structures and collections are binary data with text in JSON.
    private static func element(_ type: Any.Type) -> StoredForm? {
        plain(type) ?? (type as? any Codable.Type).map { .json($0) }
    }
}

extension Mirror {
    /// Whether a type is a structure with stored properties that can be visited.
    fileprivate static func isStructure(_ type: Any.Type) -> Bool {
        var count = 0
        return _forEachField(of: type, options: []) { _, _, _, _ in
            count += 1
            return true
        } && count > 0
    }
}

extension RawRepresentable {
    fileprivate static var rawType: Any.Type { RawValue.self }

    fileprivate static func made(of raw: Any) -> Any? { (raw as? RawValue).flatMap { Self(rawValue: $0) } }
}

// MARK: - Values

extension StoredForm {
    /// The reason why a value cannot be read or stored.
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    /// The value for the managed object; `nil` for no value.
    ///
    /// - Throws: The error of the encoder.
    func stored(_ value: Any) throws -> Any? {
        if let optional = value as? any OptionalValue { return try optional.wrappedValue.flatMap { try stored($0) } }
        switch self {
        case .integer: return (value as? any FixedWidthInteger).map { NSNumber(value: $0.stored) }
        case .double: return (value as? Double).map { NSNumber(value: $0) }
        case .float: return (value as? Float).map { NSNumber(value: $0) }
        case .boolean: return (value as? Bool).map { NSNumber(value: $0) }
        case .string, .date, .data, .uuid, .decimal, .url, .transformable: return value
        case .rawValue(_, let element, let form):
            guard let representable = value as? any RawRepresentable else { return nil }
            return try form.stored(representable.rawValue).map { [element: $0] }
        case .cases(_, let names): return EnumerationCases.index(of: value).map { [names[$0]: names[$0]] }
        case .structure(_, let elements): return try Self.parts(value, elements)
        case .json:
            return try (value as? any Encodable).map { try JSONEncoder().encode($0) as NSData }
        }
    }

    /// The value in Swift's type of what a managed object holds; `nil` for a composite without elements.
    ///
    /// - Throws: `Unreadable` if it is no value of the type.
    func value(_ stored: Any) throws -> Any? {
        switch self {
        case .integer(let type, _):
            try Self.made(type, (stored as? NSNumber).flatMap { type.made(of: $0.int64Value) }, stored)
        case .double: (stored as? NSNumber)?.doubleValue
        case .float: (stored as? NSNumber)?.floatValue
        case .boolean: (stored as? NSNumber)?.boolValue
        case .decimal: (stored as? NSDecimalNumber)?.decimalValue ?? stored
        case .string, .date, .data, .uuid, .url, .transformable: stored
        case .rawValue(let type, let element, let form):
            try Self.elements(stored)[element].flatMap { raw in
                try form.value(raw).map { try Self.made(type, type.made(of: $0), raw) }
            }
        case .cases(let type, let names):
            try Self.elements(stored).keys.sorted().first.map { name in
                try Self.made(
                    type,
                    names.firstIndex(of: name).flatMap { EnumerationCases.value(of: type, at: $0) },
                    name
                )
            }
        case .structure(let type, let elements): try Self.structure(type, elements, Self.elements(stored))
        case .json(let type):
            try Self.decoded(type, stored as? Data ?? Data(referencing: Self.made(type, stored as? NSData, stored)))
        }
    }

    /// The value of no elements; `nil` unless the form is a structure whose stored properties are all optional.
    var emptyValue: Any? {
        guard case .structure(let type, let elements) = self, elements.allSatisfy(\.isOptional) else { return nil }
        return Self.structure(type, elements, elements.map { ($0.type as? any OptionalValue.Type)?.absent as Any })
    }

    /// Some value of the type; `nil` if none is easy to make.
    var anyValue: Any? {
        switch self {
        case .integer(let type, _): SortKeyPaths.sample(of: type)
        case .double: 0.0
        case .float: 0 as Float
        case .boolean: true
        case .string: ""
        case .date: Date(timeIntervalSinceReferenceDate: 0)
        case .data: Data()
        case .uuid: UUID()
        case .decimal: Decimal()
        case .url: URL(fileURLWithPath: "/")
        case .rawValue(let type, _, let form):
            EnumerationCases.names(of: type) == nil
                ? form.anyValue.flatMap { type.made(of: $0) } : EnumerationCases.value(of: type, at: 0)
        case .cases(let type, _): EnumerationCases.value(of: type, at: 0)
        case .structure(let type, let elements):
            elements.allSatisfy { $0.isOptional || $0.form.anyValue != nil }
                ? Self.structure(
                    type,
                    elements,
                    elements.map { ($0.type as? any OptionalValue.Type)?.absent ?? $0.form.anyValue as Any }
                ) : nil
        case .json(let type):
            ["[]", "{}", "0", "\"\""].lazy.compactMap { try? Self.decoded(type, Data($0.utf8)) }.first
        case .transformable: nil
        }
    }

    private static func made<Value>(_ type: Any.Type, _ value: Value?, _ stored: Any) throws -> Value {
        guard let value else { throw Unreadable(description: "\(stored) is no value of \(type)") }
        return value
    }

    /// The elements of a composite that have a value.
    private static func elements(_ stored: Any) -> [String: Any] {
        (stored as? [String: Any])?.filter { !($0.value is NSNull) } ?? [:]
    }

    private static func decoded<Value: Decodable>(_ type: Value.Type, _ data: Data) throws -> Any {
        try JSONDecoder().decode(type, from: data)
    }

    /// The elements of a structure, by name.
    private static func parts(_ value: Any, _ elements: [Element]) throws -> [String: Any] {
        func parts<Structure>(_ structure: Structure) throws -> [String: Any] {
            try withUnsafeBytes(of: structure) { bytes in
                var parts: [String: Any] = [:]
                for element in elements {
                    func read<Field>(_ type: Field.Type) -> Any {
                        bytes.baseAddress!.advanced(by: element.offset).assumingMemoryBound(to: type).pointee
                    }
                    if let part = try element.stored(_openExistential(element.type, do: read)) {
                        parts[element.name] = part
                    }
                }
                return parts
            }
        }
        return try _openExistential(value, do: parts)
    }

    /// The structure of elements; `nil` if there are none.
    private static func structure(_ type: Any.Type, _ elements: [Element], _ parts: [String: Any]) throws -> Any? {
        if parts.isEmpty { return nil }
        let values = try elements.map { element in
            let value = try parts[element.name].flatMap { try element.value($0) }
            return try made(type, value ?? (element.type as? any OptionalValue.Type)?.absent, parts)
        }
        return structure(type, elements, values)
    }

    private static func structure(_ type: Any.Type, _ elements: [Element], _ values: [Any]) -> Any {
        func made<Structure>(_ type: Structure.Type) -> Any {
            let memory = UnsafeMutablePointer<Structure>.allocate(capacity: 1)
            defer { memory.deallocate() }
            for (element, value) in zip(elements, values) {
                func put<Field>(_ type: Field.Type) {
                    guard let value = value as? Field else {
                        fatalError("SwiftData: the element \(element.name) of \(Structure.self) has another type.")
                    }
                    (UnsafeMutableRawPointer(memory) + element.offset).initializeMemory(as: type, to: value)
                }
                _openExistential(element.type, do: put)
            }
            return memory.move()
        }
        return _openExistential(type, do: made)
    }
}

/// Unsigned integers of 64 bits in a structure are kept as the signed ones with the same bits: all are used by structures
/// such as `Duration`.
extension StoredForm.Element {
    fileprivate func stored(_ value: Any) throws -> Any? {
        if let integer = value as? UInt64 { return NSNumber(value: Int64(bitPattern: integer)) }
        if let integer = value as? UInt { return NSNumber(value: Int(bitPattern: integer)) }
        return try form.stored(value)
    }

    fileprivate func value(_ stored: Any) throws -> Any? {
        guard case .integer(let type, _) = form, let number = stored as? NSNumber else { return try form.value(stored) }
        if type == UInt64.self { return UInt64(bitPattern: number.int64Value) }
        if type == UInt.self { return UInt(bitPattern: number.intValue) }
        return try form.value(stored)
    }
}

extension FixedWidthInteger {
    /// The value as the store keeps it.
    ///
    /// A value that no store can hold stops the program.
    fileprivate var stored: Int64 {
        guard let value = Int64(exactly: self) else {
            fatalError("SwiftData: \(self) of type \(Self.self) does not fit an integer of 64 bits with a sign.")
        }
        return value
    }

    /// The width of the attribute, which has a sign.
    fileprivate static var storedBits: Int {
        let bits = isSigned ? bitWidth : bitWidth + 1
        return bits <= 16 ? 16 : bits <= 32 ? 32 : 64
    }

    fileprivate static func made(of value: Int64) -> Any? { Self(exactly: value) }
}
