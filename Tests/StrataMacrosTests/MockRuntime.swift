// A runtime of the shape that the expansions need. With it the compiler itself tests the macros, without the
// framework.

@attached(accessor)
@attached(peer, names: prefixed(_managed_))
macro Managed() = #externalMacro(module: "StrataMacros", type: "ManagedMacro")

@attached(accessor)
@attached(peer, names: prefixed(_managed_))
macro Managed(_ name: String) = #externalMacro(module: "StrataMacros", type: "ManagedMacro")

@attached(member, names: named(managedProperties), named(managedEntity))
macro ManagedObject() = #externalMacro(module: "StrataMacros", type: "ManagedObjectMacro")

/// Stands in for the framework's module.
public enum CoreData {
    /// Finds a property; cannot be copied, like the framework's type.
    public struct ManagedProperty<Value>: ~Copyable, Sendable {
        let name: String

        init(_ name: String) { self.name = name }
    }

    /// Describes the entity of a class.
    public struct ManagedEntityInfo {
        let type: NSManagedObject.Type

        init(_ type: NSManagedObject.Type, traits: [Never]) { self.type = type }
    }

    /// Describes a property.
    public struct ManagedPropertyInfo {
        let name: String
        let keyPath: AnyKeyPath
        let type: Any.Type

        init<Root, Value>(name: String, keyPath: KeyPath<Root, Value>, type: Value.Type) {
            self.name = name
            self.keyPath = keyPath
            self.type = type
        }
    }
}

/// The values that a property can hold without a conversion.
protocol ManagedPropertyValue {
    static func managed(from value: Any?) -> Self
    /// The value without wrapping, so that nil can be seen inside `Any`.
    var managed: Any? { get }
}

extension ManagedPropertyValue {
    // A test that stores another type than it reads should stop here.
    static func managed(from value: Any?) -> Self { value as! Self }

    var managed: Any? { self }
}

extension Int: ManagedPropertyValue {}
extension Int16: ManagedPropertyValue {}
extension String: ManagedPropertyValue {}
extension NSManagedObject: ManagedPropertyValue {}
extension Set: ManagedPropertyValue where Element: NSManagedObject {}
extension Array: ManagedPropertyValue where Element: NSManagedObject {}
extension Optional: ManagedPropertyValue where Wrapped: ManagedPropertyValue {
    static func managed(from value: Any?) -> Wrapped? { value.map { Wrapped.managed(from: $0) } }

    var managed: Any? { flatMap(\.managed) }
}

/// An object that keeps its values in a dictionary.
open class NSManagedObject: Hashable {
    final var values: [String: Any] = [:]

    /// Makes an object without values.
    public init() {}

    /// The properties that the class and its superclasses manage.
    open class var managedProperties: [CoreData.ManagedPropertyInfo] { [] }
    open class var managedEntity: CoreData.ManagedEntityInfo? { nil }

    /// Objects are equal if they are the same.
    public static func == (left: NSManagedObject, right: NSManagedObject) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    final func managedValue<Value: ManagedPropertyValue>(_ property: borrowing CoreData.ManagedProperty<Value>) -> Value
    {
        Value.managed(from: values[property.name])
    }

    final func managedValue<Value: RawRepresentable>(_ property: borrowing CoreData.ManagedProperty<Value>) -> Value
    where Value.RawValue: ManagedPropertyValue {
        Value(rawValue: .managed(from: values[property.name]))!  // tests store raw values of the type only
    }

    final func managedValue<Value: RawRepresentable>(_ property: borrowing CoreData.ManagedProperty<Value?>) -> Value?
    where Value.RawValue: ManagedPropertyValue {
        values[property.name].flatMap { Value(rawValue: .managed(from: $0)) }
    }

    final func setManagedValue<Value: ManagedPropertyValue>(
        _ value: Value,
        _ property: borrowing CoreData.ManagedProperty<Value>
    ) {
        values[property.name] = value.managed
    }

    final func setManagedValue<Value: RawRepresentable>(
        _ value: Value,
        _ property: borrowing CoreData.ManagedProperty<Value>
    ) where Value.RawValue: ManagedPropertyValue {
        values[property.name] = value.rawValue
    }

    final func setManagedValue<Value: RawRepresentable>(
        _ value: Value?,
        _ property: borrowing CoreData.ManagedProperty<Value?>
    ) where Value.RawValue: ManagedPropertyValue {
        values[property.name] = value?.rawValue
    }
}
