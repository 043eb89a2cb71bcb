import Foundation

/// A type whose optional can tell a null attribute from zero.
public protocol ManagedScalar: ManagedPropertyValue {
    /// Reads the property, with nil for no value.
    static func managedReadOptional(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self?
    /// Writes the property, with nil for no value.
    static func managedWriteOptional(_ value: Self?, _ object: NSManagedObject, _ property: AnyManagedProperty)
}

extension Optional: ManagedPropertyValue where Wrapped: ManagedScalar {
    /// That of the wrapped type.
    public static var managedKind: ManagedValueKind { Wrapped.managedKind }

    /// The value, or nil.
    @inlinable
    public static func managedRead(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Wrapped? {
        Wrapped.managedReadOptional(object, property)
    }

    /// Sets the value, or removes it.
    @inlinable
    public static func managedWrite(
        _ value: Wrapped?,
        _ object: NSManagedObject,
        _ property: AnyManagedProperty
    ) {
        Wrapped.managedWriteOptional(value, object, property)
    }
}

// MARK: - Enumerations

extension NSManagedObject {
    /// Reads an enumeration; no value reads as the raw value zero.
    ///
    /// A raw value that is no case stops the program, since the property cannot be nil.
    public final func managedValue<Value: RawRepresentable>(_ property: ManagedProperty<Value>) -> Value
    where Value.RawValue: ManagedScalar {
        let raw = Value.RawValue.managedRead(self, property)
        guard let value = Value(rawValue: raw) else {
            if let placeholder = KeyPathRecording.placeholder(Value.self) { return placeholder }
            fatalError(
                "CoreData: property \"\(property.name)\" of \(entity.name ?? "") holds \(raw), which is no case of \(Value.self). Declare it as \(Value.self)? or give it a default in the model."
            )
        }
        return value
    }

    /// Writes an enumeration by its raw value.
    public final func setManagedValue<Value: RawRepresentable>(_ value: Value, _ property: ManagedProperty<Value>)
    where Value.RawValue: ManagedScalar {
        Value.RawValue.managedWriteOptional(value.rawValue, self, property)
    }

    /// Reads an optional enumeration: nil for no value, and for a stored value that is no case.
    public final func managedValue<Value: RawRepresentable>(_ property: ManagedProperty<Value?>) -> Value?
    where Value.RawValue: ManagedScalar {
        let raw = Value.RawValue.managedReadOptional(self, property)
        return raw.flatMap { Value(rawValue: $0) }
    }

    /// Writes an optional enumeration by its raw value.
    public final func setManagedValue<Value: RawRepresentable>(_ value: Value?, _ property: ManagedProperty<Value?>)
    where Value.RawValue: ManagedScalar {
        Value.RawValue.managedWriteOptional(value?.rawValue, self, property)
    }

    // MARK: - Objects of any other type

    /// Reads a transformable, composite or transient property of a type that has no slot of its own.
    @_disfavoredOverload
    public final func managedValue<Value>(_ property: ManagedProperty<Value?>) -> Value? {
        _ = property.slot(in: unmanagedLayout, .object)
        return anyValue(forKey: property.name) as? Value
    }

    /// Writes a transformable, composite or transient property of a type that has no slot of its own.
    @_disfavoredOverload
    public final func setManagedValue<Value>(_ value: Value?, _ property: ManagedProperty<Value?>) {
        _ = property.slot(in: unmanagedLayout, .object)
        setAnyValue(value, forKey: property.name)
    }
}
