import CoreDataEssentials
import Foundation

/// Keeps `Codable` values as JSON, for the trait `codable` of ``ManagedTrait``.
///
/// Making a model from classes registers it. For a model from a file, set the attribute's transformer to ``name`` and
/// call ``register()`` before the first store is added.
///
/// ```swift
/// struct Opening: Codable {
///     var from: Int
///     var to: Int
/// }
/// ManagedCodableTransformer<Opening>.register()
/// let data = ManagedCodableTransformer<Opening>().transformedValue(Opening(from: 9, to: 17)) as? Data
/// ```
public final class ManagedCodableTransformer<Value: Codable>: ValueTransformer {
    /// The name under which the transformer is registered.
    public static var name: NSValueTransformerName {
        NSValueTransformerName("Codable.\(String(reflecting: Value.self))")
    }

    /// Registers the transformer; it may be registered already.
    public static func register() {
        ValueTransformer.setValueTransformer(ManagedCodableTransformer(), forName: name)
    }

    /// The JSON of a value; `nil` if it cannot be encoded.
    ///
    /// - Returns: `Data` with JSON, or `nil`.
    public override func transformedValue(_ value: Any?) -> Any? {
        guard let value = value as? Value else { return nil }
        let encoder = JSONEncoder()
        // Equal values must become equal data.
        encoder.outputFormatting = .sortedKeys
        return try? encoder.encode(value)
    }

    /// The value of JSON; `nil` if it cannot be decoded.
    ///
    /// - Returns: A value of the transformer's type, or `nil`.
    public override func reverseTransformedValue(_ value: Any?) -> Any? {
        guard let data = value as? Data else { return nil }
        return try? JSONDecoder().decode(Value.self, from: data)
    }
}

/// Registers the transformers of types that are known only when the program runs.
enum CodableTransformers {
    /// Registers the transformer for a type, or for the type that an optional wraps.
    ///
    /// - Returns: The transformer's name.
    static func register(_ type: any Codable.Type) -> String {
        guard let plain = unwrapped(type) as? any Codable.Type else { return "" }
        return registered(plain)
    }

    private static func registered<Value: Codable>(_ type: Value.Type) -> String {
        ManagedCodableTransformer<Value>.register()
        return ManagedCodableTransformer<Value>.name.rawValue
    }
}

extension NSManagedObject {
    /// Reads a property with the trait `codable` of ``ManagedTrait``.
    ///
    /// The macro calls this. If there is no value, then the program stops. Give the property a default value, or
    /// declare it optional.
    ///
    /// - Parameter property: The property, as the macro passes it.
    /// - Returns: The value.
    public final func managedCodableValue<Value: Codable>(_ property: borrowing ManagedProperty<Value>) -> Value {
        if let value = objectValue(property.untyped, as: Value.self) { return value }
        fatalError(
            "CoreData: property \"\(property.untyped.name)\" of \(entity.name ?? "") has no value of type \(Value.self), but is not optional. Declare it as \(Value.self)?, or give it a default value."
        )
    }

    /// Reads an optional property with the trait `codable` of ``ManagedTrait``.
    ///
    /// - Parameter property: The property, as the macro passes it.
    /// - Returns: The value, or `nil`.
    public final func managedCodableValue<Value: Codable>(_ property: borrowing ManagedProperty<Value?>) -> Value? {
        objectValue(property.untyped, as: Value.self)
    }

    /// Writes a property with the trait `codable` of ``ManagedTrait``.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - property: The property, as the macro passes it.
    public final func setManagedCodableValue<Value: Codable>(
        _ value: Value,
        _ property: borrowing ManagedProperty<Value>
    ) {
        setObjectValue(value, property.untyped)
    }

    /// Writes an optional property with the trait `codable` of ``ManagedTrait``.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` removes it.
    ///   - property: The property, as the macro passes it.
    public final func setManagedCodableValue<Value: Codable>(
        _ value: Value?,
        _ property: borrowing ManagedProperty<Value?>
    ) {
        setObjectValue(value, property.untyped)
    }

    /// Reads a fetched property, which is fetched on the first read.
    ///
    /// The macro calls this.
    ///
    /// - Parameter property: The property, as the macro passes it.
    /// - Returns: The objects; empty if any object is not of the array's class.
    public final func managedFetchedValue<Element: NSManagedObject>(
        _ property: borrowing ManagedProperty<[Element]>
    ) -> [Element] {
        value(forKey: property.untyped.name) as? [Element] ?? []
    }
}

extension ManagedTrait where Value: Codable {
    /// The value is kept as JSON in a transformable attribute.
    ///
    /// Predicates cannot use its parts; they can use the elements of a ``ManagedComposite()`` structure.
    public static var codable: ManagedTrait {
        ManagedTrait(part: .codable { CodableTransformers.register(Value.self) })
    }
}
