import Foundation

/// A Swift type that a property declared with `@Managed` may have.
///
/// The types are those listed below. Enumerations with such raw values, and optionals of all these types, work too.
/// If a property has no value, then reading it returns zero, an empty string or collection, or nil. It does not stop
/// the program, because a missing value in the data is not a programming error.
///
/// ```swift
/// func kind<Value: ManagedPropertyValue>(_ type: Value.Type) -> ManagedValueKind { type.managedKind }
/// print(kind(String.self))
/// ```
public protocol ManagedPropertyValue {
    /// The kind of property that the type can stand for.
    static var managedKind: ManagedValueKind { get }
    /// Reads the property.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The value.
    static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self
    /// Writes the property.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    static func managedWrite(
        _ value: consuming Self,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    )
}

extension NSManagedObject {
    /// Reads a property declared with `@Managed`.
    ///
    /// The macro calls this.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The value.
    @inlinable
    public final func managedValue<Value: ManagedPropertyValue>(_ property: borrowing ManagedProperty<Value>) -> Value {
        Value.managedRead(self, property.untyped)
    }

    /// Writes a property declared with `@Managed`.
    ///
    /// The macro calls this.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - property: The property that the macro has made.
    @inlinable
    public final func setManagedValue<Value: ManagedPropertyValue>(
        _ value: consuming Value,
        _ property: borrowing ManagedProperty<Value>
    ) {
        Value.managedWrite(value, self, property.untyped)
    }
}
