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
/// The macro makes a structure conform. Its stored properties are the elements: attributes of the types that ``Managed()`` takes, and
/// other composites. An initial value is the element's default value, and what a missing element reads as. Predicates reach the
/// elements by key path: `address.street == "Main"`.
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
    ///   - value: What the element starts with, and what a missing one reads as; `nil` for no value.
    public init<Value>(_ name: String, _ type: Value.Type, default value: Value) {
        self.name = name
        self.type = type
        defaultValue = flattenOptional(value)
    }

    /// What a composite attribute holds for an element.
    ///
    /// - Parameter value: The element's value: an enumeration by its case, another composite as its structure.
    /// - Returns: The raw value of an enumeration, the dictionary of a composite, any other value as it is, and `nil`
    ///   for no value.
    public static func stored(_ value: Any) -> Any? { ElementValue.stored(value) }
}

extension ManagedComposite {
    /// An element's value from a composite attribute's.
    ///
    /// The macro's initialisers call this. Without a value, an optional element is nil, and another one its initial value, or zero or
    /// what is empty. Stops the program for a type without such a value, such as an enumeration: give the element an initial value.
    ///
    /// - Parameters:
    ///   - name: The element's name.
    ///   - values: The composite attribute's value.
    /// - Returns: The value as the element's type.
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
        if let type = Value.self as? any WordValue.Type, let value = ElementValue.absent(type) as? Value {
            return value
        }
        fatalError(
            "CoreData: element \"\(name)\" of a composite attribute has no value of type \(Value.self). Give it an initial value, or declare it as \(Value.self)?."
        )
    }
}

/// The elements of composites between Swift's types and those that the attribute's dictionary has.
enum ElementValue {
    static func absent<Value: WordValue>(_ type: Value.Type) -> Any { Value.absent }

    /// A value of the dictionary as a type: numbers come as `NSNumber`, enumerations by raw value, composites as dictionaries.
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

    /// A value as the dictionary has it; `nil` for no value.
    static func stored(_ value: Any) -> Any? {
        guard let value = flattenOptional(value) else { return nil }
        if let composite = value as? any ManagedComposite { return composite.managedElementValues }
        if let representable = value as? any RawRepresentable { return stored(representable.rawValue) }
        return value
    }
}

extension NSManagedObject {
    /// Reads a composite attribute as a structure; one without elements if there is no value.
    ///
    /// - Parameter property: The property, as the macro has it.
    /// - Returns: The structure.
    public final func managedValue<Value: ManagedComposite>(_ property: borrowing ManagedProperty<Value>) -> Value {
        Value(managedElementValues: objectValue(property.untyped, as: [String: Any].self) ?? [:])
    }

    /// Writes a composite attribute.
    ///
    /// - Parameters:
    ///   - value: The structure.
    ///   - property: The property, as the macro has it.
    public final func setManagedValue<Value: ManagedComposite>(
        _ value: Value,
        _ property: borrowing ManagedProperty<Value>
    ) {
        setObjectValue(value.managedElementValues, property.untyped)
    }

    /// Reads a composite attribute as a structure, or nil.
    ///
    /// - Parameter property: The property, as the macro has it.
    /// - Returns: The structure, or `nil` if the attribute has no value.
    public final func managedValue<Value: ManagedComposite>(_ property: borrowing ManagedProperty<Value?>) -> Value? {
        objectValue(property.untyped, as: [String: Any].self).map { Value(managedElementValues: $0) }
    }

    /// Writes or removes a composite attribute.
    ///
    /// - Parameters:
    ///   - value: The structure; `nil` removes the value.
    ///   - property: The property, as the macro has it.
    public final func setManagedValue<Value: ManagedComposite>(
        _ value: Value?,
        _ property: borrowing ManagedProperty<Value?>
    ) {
        setObjectValue(value?.managedElementValues, property.untyped)
    }
}
