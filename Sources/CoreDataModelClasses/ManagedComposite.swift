import CoreDataEssentials
import Foundation

/// A structure that is kept as a composite attribute.
///
/// ```swift
/// @ManagedComposite
/// struct Position {
///     var latitude: Double = 0
///     var longitude: Double = 0
/// }
/// ```
///
/// The macro makes a structure conform. Its stored properties are the elements: attributes of the types that
/// ``Managed()`` takes, and other composites. An initial value is the element's default value, and the value of a
/// missing element. Predicates can use the elements by key path: `address.street == "Main"`.
public protocol ManagedComposite {
    /// The elements, in their order.
    static var managedElements: [ManagedElement] { get }

    /// Reads the elements from an attribute's value, by name.
    ///
    /// - Parameter values: The values by the elements' names. An element may be missing.
    init(managedElementValues values: [String: Any])

    /// The elements that have a value, by name.
    var managedElementValues: [String: Any] { get }
}

/// An element of a composite attribute.
///
/// ```swift
/// let number = ManagedElement("number", Int16.self, default: 1)
/// ```
public struct ManagedElement {
    let name: String
    let type: Any.Type
    let defaultValue: Any?

    /// Describes an element without a default value.
    ///
    /// - Parameters:
    ///   - name: The element's name.
    ///   - type: Its type in Swift, which may be an optional.
    public init<Value>(_ name: String, _ type: Value.Type) {
        self.name = name
        self.type = type
        defaultValue = nil
    }

    /// Describes an element with a default value.
    ///
    /// - Parameters:
    ///   - name: The element's name.
    ///   - type: Its type in Swift, which may be an optional.
    ///   - value: The element's initial value, and the value of a missing element; `nil` for no value.
    public init<Value>(_ name: String, _ type: Value.Type, default value: Value) {
        self.name = name
        self.type = type
        defaultValue = flattenOptional(value)
    }

    /// The value of an element in the dictionary of a composite attribute.
    ///
    /// - Parameter value: The element's value: a case of an enumeration, or the structure of another composite.
    /// - Returns: The raw value of an enumeration, the dictionary of a composite, or any other value unchanged. `nil`
    ///   for no value.
    public static func stored(_ value: Any) -> Any? { ElementValue.stored(value) }
}

extension ManagedComposite {
    /// An element's value from the value of a composite attribute.
    ///
    /// The macro's initialisers call this. If there is no value, then an optional element is nil, and another element
    /// has its initial value, or else zero or an empty value. If its type has no such value, as enumerations do not,
    /// then the program stops. Give such an element an initial value.
    ///
    /// - Parameters:
    ///   - name: The element's name.
    ///   - values: The composite attribute's value.
    /// - Returns: The value in the element's type.
    public static func managedElement<Value>(_ name: String, in values: [String: Any]) -> Value {
        if let value = flattenOptional(values[name]), !(value is NSNull),
            let typed = ElementValue.typed(value, as: Value.self) as? Value
        {
            return typed
        }
        if let optional = Value.self as? any ExpressibleByNilLiteral.Type,
            let none = optional.init(nilLiteral: ()) as? Value
        {
            return none
        }
        if let value = managedElements.first(where: { $0.name == name })?.defaultValue as? Value { return value }
        if let composite = Value.self as? any ManagedComposite.Type,
            let value = composite.init(managedElementValues: [:]) as? Value
        {
            return value
        }
        if let value = absentValue(of: Value.self) as? Value { return value }
        fatalError(
            "CoreData: element \"\(name)\" of a composite attribute has no value of type \(Value.self). Give it an initial value, or declare it as \(Value.self)?."
        )
    }
}

/// Converts elements of composites between Swift's types and the types in the attribute's dictionary.
enum ElementValue {
    /// Converts a value of the dictionary, such as an `NSNumber`, a raw value or a dictionary, to a type.
    static func typed(_ value: Any, as type: Any.Type) -> Any? {
        let plain = unwrapped(type)
        if let composite = plain as? any ManagedComposite.Type {
            return (value as? [String: Any]).map { composite.init(managedElementValues: $0) }
        }
        if let representable = plain as? any RawRepresentable.Type {
            return made(representable, of: value)
        }
        guard let number = value as? NSNumber else { return value }
        switch plain {
        case is Int.Type: return number.intValue
        case is Int16.Type: return number.int16Value
        case is Int32.Type: return number.int32Value
        case is Int64.Type: return number.int64Value
        case is Double.Type: return number.doubleValue
        case is Float.Type: return number.floatValue
        case is Bool.Type: return number.boolValue
        case is Decimal.Type: return number.decimalValue
        default: return value
        }
    }

    private static func made<Value: RawRepresentable>(_ type: Value.Type, of value: Any) -> Any? {
        (typed(value, as: Value.RawValue.self) as? Value.RawValue).flatMap { Value(rawValue: $0) }
    }

    /// A value in the form for the dictionary; `nil` for no value.
    static func stored(_ value: Any) -> Any? {
        guard let value = flattenOptional(value) else { return nil }
        if let composite = value as? any ManagedComposite { return composite.managedElementValues }
        if let representable = value as? any RawRepresentable { return stored(representable.rawValue) }
        return value
    }
}

extension NSManagedObject {
    /// Reads a composite attribute as a structure; if there is no value, then the structure has no elements.
    ///
    /// - Parameter property: The property, as the macro passes it.
    /// - Returns: The structure.
    public final func managedValue<Value: ManagedComposite>(_ property: borrowing ManagedProperty<Value>) -> Value {
        Value(managedElementValues: objectValue(property.untyped, as: [String: Any].self) ?? [:])
    }

    /// Writes a composite attribute.
    ///
    /// - Parameters:
    ///   - value: The structure.
    ///   - property: The property, as the macro passes it.
    public final func setManagedValue<Value: ManagedComposite>(
        _ value: Value,
        _ property: borrowing ManagedProperty<Value>
    ) {
        setObjectValue(value.managedElementValues, property.untyped)
    }

    /// Reads a composite attribute as a structure, or nil.
    ///
    /// - Parameter property: The property, as the macro passes it.
    /// - Returns: The structure, or `nil` if the attribute has no value.
    public final func managedValue<Value: ManagedComposite>(_ property: borrowing ManagedProperty<Value?>) -> Value? {
        objectValue(property.untyped, as: [String: Any].self).map { Value(managedElementValues: $0) }
    }

    /// Writes or removes a composite attribute.
    ///
    /// - Parameters:
    ///   - value: The structure; `nil` removes the value.
    ///   - property: The property, as the macro passes it.
    public final func setManagedValue<Value: ManagedComposite>(
        _ value: Value?,
        _ property: borrowing ManagedProperty<Value?>
    ) {
        setObjectValue(value?.managedElementValues, property.untyped)
    }
}

/// Makes a structure usable as the value of composite attributes.
///
/// See ``CoreData/ManagedComposite-protocol``.
///
/// ```swift
/// @ManagedComposite
/// struct Address {
///     var street: String = ""
///     var number: Int16?
/// }
///
/// @ManagedObject
/// final class Office: NSManagedObject {
///     @Managed var address: Address?
/// }
/// ```
@attached(member, names: named(managedElements))
@attached(extension, conformances: ManagedComposite, names: named(init), named(managedElementValues))
public macro ManagedComposite() = #externalMacro(module: "StrataMacros", type: "ManagedCompositeMacro")
