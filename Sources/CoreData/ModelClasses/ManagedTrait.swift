import Foundation

/// What a property of a managed object's class is in the model, beside its name and type.
///
/// See <doc:Models>.
///
/// ```swift
/// @ManagedObject
/// final class Hotel: NSManagedObject {
///     @Managed(.unique, .length(1...40)) var code: String
///     @Managed(.default(3), .minimum(1), .maximum(5)) var stars: Int16
/// }
/// let model = try NSManagedObjectModel(for: Hotel.self)
/// ```
///
/// Traits describe the model that `NSManagedObjectModel(for:)` makes of classes. A
/// class that is used with a model from a file needs none. `Value` is the declared type of the property, so that a default value
/// of another type does not compile.
public struct ManagedTrait<Value> {
    let part: PropertyTrait
}

/// What a trait says, whatever the property's type.
enum PropertyTrait {
    case unique
    case indexed
    case externalStorage
    case preservedOnDeletion
    case transformable(String?)
    case codable(() -> String)
    case derived(String)
    case transient
    case optional(Bool)
    case formerName(String)
    case hashModifier(String)
    case type(NSAttributeDescription.AttributeType)
    case defaultValue(Any)
    case minimum(Any)
    case maximum(Any)
    case length(least: Int?, most: Int?)
    case pattern(String)
    case validation(format: String, message: String)
    case userInfo([String: String])
    // Relationships.
    case inverse(AnyKeyPath)
    case inverseName(String)
    case noInverse
    case deleteRule(NSDeleteRule)
    case ordered(Bool)
    case count(least: Int, most: Int?)
    case destination(NSManagedObject.Type)
    case fetched(String)
}

// MARK: - Attributes

extension ManagedTrait {
    /// No two objects have the same value: a uniqueness constraint on this property alone.
    public static var unique: ManagedTrait { ManagedTrait(part: .unique) }

    /// The store keeps an index on this property alone.
    ///
    /// ``ManagedEntityTrait/index(_:on:where:)`` makes indexes with names, over several properties.
    public static var indexed: ManagedTrait { ManagedTrait(part: .indexed) }

    /// Large data may go to a file beside the store.
    public static var externalStorage: ManagedTrait { ManagedTrait(part: .externalStorage) }

    /// The persistent history keeps the value of a deleted object.
    public static var preservedOnDeletion: ManagedTrait { ManagedTrait(part: .preservedOnDeletion) }

    /// The value is an object that is archived, as by ``NSSecureUnarchiveFromDataTransformer``.
    public static var transformable: ManagedTrait { ManagedTrait(part: .transformable(nil)) }

    /// The value is an object that a transformer turns into data, by the name under which the transformer is registered.
    ///
    /// - Parameter name: The name, as ``ValueTransformer/setValueTransformer(_:forName:)`` got it.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func transformable(by name: String) -> ManagedTrait { ManagedTrait(part: .transformable(name)) }

    /// The value is an object that a transformer of a class turns into data; the name of the class is that in the model.
    ///
    /// - Parameter transformer: The class of the transformer.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func transformable(by transformer: ValueTransformer.Type) -> ManagedTrait {
        ManagedTrait(part: .transformable(String(describing: transformer)))
    }

    /// The store computes the value when an object is saved; the property can only be read.
    ///
    /// The text is a key path (`city.name`), a count or sum (`pages.@count`), or a call such as `canonical:(title)`.
    ///
    /// - Parameter expression: What the store computes.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func derived(from expression: String) -> ManagedTrait { ManagedTrait(part: .derived(expression)) }

    /// The value lives in memory only.
    public static var transient: ManagedTrait { ManagedTrait(part: .transient) }

    /// An object may be saved without a value, although the property's type is not optional.
    public static var optional: ManagedTrait { ManagedTrait(part: .optional(true)) }

    /// An object cannot be saved without a value, although the property's type is optional, or is a collection.
    public static var required: ManagedTrait { ManagedTrait(part: .optional(false)) }

    /// The name of the property in an earlier version, for inferred migration.
    ///
    /// - Parameter name: The former name.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func renamed(from name: String) -> ManagedTrait { ManagedTrait(part: .formerName(name)) }

    /// Text that makes the version another one though nothing else has changed.
    ///
    /// - Parameter text: Any text; another one makes another version.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func hashModifier(_ text: String) -> ManagedTrait { ManagedTrait(part: .hashModifier(text)) }

    /// The type of the attribute, where the property's type leaves a choice: an `Int` of 16 bits, an `NSNumber`.
    ///
    /// - Parameter type: The type in the model.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func type(_ type: NSAttributeDescription.AttributeType) -> ManagedTrait {
        ManagedTrait(part: .type(type))
    }

    /// The value that a new object starts with.
    ///
    /// - Parameter value: The value, of the property's type.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func `default`(_ value: Value) -> ManagedTrait { ManagedTrait(part: .defaultValue(value)) }

    /// The least number or the first date that may be saved.
    ///
    /// - Parameter value: The least value that is valid.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func minimum(_ value: Value) -> ManagedTrait { ManagedTrait(part: .minimum(value)) }

    /// The greatest number or the last date that may be saved.
    ///
    /// - Parameter value: The greatest value that is valid.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func maximum(_ value: Value) -> ManagedTrait { ManagedTrait(part: .maximum(value)) }

    /// How many characters a text may have.
    ///
    /// - Parameter range: The least and the greatest number; both are valid.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func length(_ range: ClosedRange<Int>) -> ManagedTrait {
        ManagedTrait(part: .length(least: range.lowerBound, most: range.upperBound))
    }

    /// How many characters a text must have at least.
    ///
    /// - Parameter range: The least number that is valid.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func length(_ range: PartialRangeFrom<Int>) -> ManagedTrait {
        ManagedTrait(part: .length(least: range.lowerBound, most: nil))
    }

    /// How many characters a text may have at most.
    ///
    /// - Parameter range: The greatest number that is valid.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func length(_ range: PartialRangeThrough<Int>) -> ManagedTrait {
        ManagedTrait(part: .length(least: nil, most: range.upperBound))
    }

    /// The regular expression that a whole text must match.
    ///
    /// - Parameter pattern: The pattern, as `MATCHES` of the predicate language takes it.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func matches(_ pattern: String) -> ManagedTrait { ManagedTrait(part: .pattern(pattern)) }

    /// A condition on the value, which is `SELF` in the predicate; the message is what the error says if it does not hold.
    ///
    /// - Parameters:
    ///   - format: The condition, in the predicate language.
    ///   - message: What the error says.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func validated(_ format: String, message: String) -> ManagedTrait {
        ManagedTrait(part: .validation(format: format, message: message))
    }

    /// Facts of your own.
    ///
    /// - Parameter facts: What ``NSPropertyDescription/userInfo`` has.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func userInfo(_ facts: [String: String]) -> ManagedTrait { ManagedTrait(part: .userInfo(facts)) }
}

extension ManagedTrait where Value: Codable {
    /// The value is kept as JSON in a transformable attribute.
    ///
    /// Predicates cannot look into it; a ``ManagedComposite()`` structure can be looked into.
    public static var codable: ManagedTrait {
        ManagedTrait(part: .codable { CodableTransformers.register(Value.self) })
    }
}

extension ManagedTrait where Value == Any {
    /// The value is kept as JSON in a transformable attribute.
    public static var codable: ManagedTrait { ManagedTrait(part: .transformable(nil)) }
}
