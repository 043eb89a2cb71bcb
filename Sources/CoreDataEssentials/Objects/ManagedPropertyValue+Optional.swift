import Foundation

/// A type whose optional distinguishes a null attribute from zero.
///
/// ```swift
/// let openedAt = ManagedProperty<Date?>("openedAt")  // Date is a scalar, so its optional can be nil
/// print(venue.managedValue(openedAt) ?? .distantPast)
/// ```
public protocol ManagedScalar: ManagedPropertyValue {
    /// Reads the property, with nil for no value.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The value, or `nil`.
    static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self?
    /// Writes the property, with nil for no value.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` removes it.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    static func managedWriteOptional(
        _ value: consuming Self?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    )
}

extension Optional: ManagedPropertyValue where Wrapped: ManagedScalar {
    /// The kind of the wrapped type.
    public static var managedKind: ManagedValueKind { Wrapped.managedKind }

    /// Reads the value; nil if there is none.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The value, or `nil`.
    @inlinable
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Wrapped? {
        Wrapped.managedReadOptional(object, property)
    }

    /// Sets the value, or removes it.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` removes it.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    @inlinable
    public static func managedWrite(
        _ value: consuming Wrapped?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        Wrapped.managedWriteOptional(value, object, property)
    }
}

// MARK: - Enumerations

extension NSManagedObject {
    /// Reads an enumeration; no value reads as the raw value zero.
    ///
    /// A raw value that is not a case stops the program, since the property cannot be nil. If the row is gone or cannot be
    /// read, then the property shows the default of the model, or the first case.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The case.
    @inlinable
    public final func managedValue<Value: RawRepresentable>(_ property: borrowing ManagedProperty<Value>) -> Value
    where Value.RawValue: ManagedScalar {
        let raw = Value.RawValue.managedRead(self, property.untyped)
        return Value(rawValue: raw) ?? placeholder(raw, property)
    }

    /// The value for a raw value that is not a case: while a key path is being recorded, and if there is no row to read.
    @usableFromInline
    final func placeholder<Value: RawRepresentable>(
        _ raw: Value.RawValue,
        _ property: borrowing ManagedProperty<Value>
    ) -> Value {
        if let placeholder = KeyPathRecording.placeholder(Value.self) { return placeholder }
        // An object without a row has zero values, and so has a fault whose read has failed (see `FailedReads`).
        if isWithoutRow || flags.contains(.fault), let value = unreadCase(property) { return value }
        fatalError(
            "CoreData: property \"\(property.untyped.name)\" of \(entity.name ?? "") holds \(raw), which is no case of \(Value.self). Declare it as \(Value.self)? or give it a default in the model."
        )
    }

    /// The case that an enumeration shows without a row: the default of the model, or the first case.
    private final func unreadCase<Value: RawRepresentable>(_ property: borrowing ManagedProperty<Value>) -> Value? {
        let standard = entity.attributesByName[property.untyped.name]?.defaultValue as? Value.RawValue
        return standard.flatMap { Value(rawValue: $0) } ?? KeyPathRecording.anyCase(Value.self)
    }

    /// Writes an enumeration by its raw value.
    ///
    /// - Parameters:
    ///   - value: The case.
    ///   - property: The property that the macro has made.
    @inlinable
    public final func setManagedValue<Value: RawRepresentable>(
        _ value: Value,
        _ property: borrowing ManagedProperty<Value>
    ) where Value.RawValue: ManagedScalar {
        Value.RawValue.managedWriteOptional(value.rawValue, self, property.untyped)
    }

    /// Reads an optional enumeration; nil if there is no value, or if the stored value is not a case.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The case, or `nil`.
    @inlinable
    public final func managedValue<Value: RawRepresentable>(_ property: borrowing ManagedProperty<Value?>) -> Value?
    where Value.RawValue: ManagedScalar {
        let raw = Value.RawValue.managedReadOptional(self, property.untyped)
        return raw.flatMap { Value(rawValue: $0) }
    }

    /// Writes an optional enumeration by its raw value.
    ///
    /// - Parameters:
    ///   - value: The case; `nil` removes the value.
    ///   - property: The property that the macro has made.
    @inlinable
    public final func setManagedValue<Value: RawRepresentable>(
        _ value: Value?,
        _ property: borrowing ManagedProperty<Value?>
    ) where Value.RawValue: ManagedScalar {
        Value.RawValue.managedWriteOptional(value?.rawValue, self, property.untyped)
    }
}
