import Foundation

/// A fact about a property of a managed object's class in the model, besides its name and type.
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
/// Traits describe the model that `NSManagedObjectModel(for:)` makes from classes. A class that is used with a model
/// from a file needs none. `Value` is the declared type of the property, so that a default value of another type does
/// not compile.
public struct ManagedTrait<Value> {
    let part: PropertyTrait

    package init(part: PropertyTrait) {
        self.part = part
    }
}

/// The contents of a trait, for a property of any type.
package enum PropertyTrait {
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
    /// The values are unique: a uniqueness constraint on only this property.
    public static var unique: ManagedTrait { ManagedTrait(part: .unique) }

    /// The store keeps an index on only this property.
    ///
    /// ``ManagedEntityTrait/index(_:on:where:)`` makes indexes with names, on several properties.
    public static var indexed: ManagedTrait { ManagedTrait(part: .indexed) }

    /// Large data may be kept in a file beside the store.
    public static var externalStorage: ManagedTrait { ManagedTrait(part: .externalStorage) }

    /// The persistent history keeps the value of a deleted object.
    public static var preservedOnDeletion: ManagedTrait { ManagedTrait(part: .preservedOnDeletion) }

    /// The value is an object that is archived, as by ``NSSecureUnarchiveFromDataTransformer``.
    public static var transformable: ManagedTrait { ManagedTrait(part: .transformable(nil)) }

    /// The value is an object that a transformer turns into data, by the registered name of the transformer.
    ///
    /// - Parameter name: The name that was passed to ``ValueTransformer/setValueTransformer(_:forName:)``.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func transformable(by name: String) -> ManagedTrait { ManagedTrait(part: .transformable(name)) }

    /// The value is an object that a transformer of a class turns into data; the model has the name of the class.
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
    /// - Parameter expression: The expression that the store computes.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func derived(from expression: String) -> ManagedTrait { ManagedTrait(part: .derived(expression)) }

    /// The value is kept in memory only.
    public static var transient: ManagedTrait { ManagedTrait(part: .transient) }

    /// An object may be saved without a value, even if the property's type is not optional.
    public static var optional: ManagedTrait { ManagedTrait(part: .optional(true)) }

    /// An object cannot be saved without a value, even if the property's type is optional or a collection.
    public static var required: ManagedTrait { ManagedTrait(part: .optional(false)) }

    /// The name of the property in an earlier version, for inferred migration.
    ///
    /// - Parameter name: The former name.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func renamed(from name: String) -> ManagedTrait { ManagedTrait(part: .formerName(name)) }

    /// A text that makes a new version of the property even if nothing else has changed.
    ///
    /// - Parameter text: Any text; a different text makes a different version.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func hashModifier(_ text: String) -> ManagedTrait { ManagedTrait(part: .hashModifier(text)) }

    /// The type of the attribute, if the property's type allows several: an `Int` of 16 bits, an `NSNumber`.
    ///
    /// - Parameter type: The type in the model.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func type(_ type: NSAttributeDescription.AttributeType) -> ManagedTrait {
        ManagedTrait(part: .type(type))
    }

    /// The initial value in a new object.
    ///
    /// - Parameter value: The value, of the property's type.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func `default`(_ value: Value) -> ManagedTrait { ManagedTrait(part: .defaultValue(value)) }

    /// The smallest number, or the earliest date, that may be saved.
    ///
    /// - Parameter value: The smallest valid value.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func minimum(_ value: Value) -> ManagedTrait { ManagedTrait(part: .minimum(value)) }

    /// The largest number, or the latest date, that may be saved.
    ///
    /// - Parameter value: The largest valid value.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func maximum(_ value: Value) -> ManagedTrait { ManagedTrait(part: .maximum(value)) }

    /// The allowed number of characters in a text.
    ///
    /// - Parameter range: The minimum and the maximum.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func length(_ range: ClosedRange<Int>) -> ManagedTrait {
        ManagedTrait(part: .length(least: range.lowerBound, most: range.upperBound))
    }

    /// The minimum number of characters in a text.
    ///
    /// - Parameter range: The minimum.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func length(_ range: PartialRangeFrom<Int>) -> ManagedTrait {
        ManagedTrait(part: .length(least: range.lowerBound, most: nil))
    }

    /// The maximum number of characters in a text.
    ///
    /// - Parameter range: The maximum.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func length(_ range: PartialRangeThrough<Int>) -> ManagedTrait {
        ManagedTrait(part: .length(least: nil, most: range.upperBound))
    }

    /// The regular expression that the complete text must match.
    ///
    /// - Parameter pattern: The pattern, in the form for `MATCHES` in the predicate language.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func matches(_ pattern: String) -> ManagedTrait { ManagedTrait(part: .pattern(pattern)) }

    /// A condition on the value, and the message of the error if the value does not fulfil it.
    ///
    /// The value is `SELF` in the predicate.
    ///
    /// - Parameters:
    ///   - format: The condition, in the predicate language.
    ///   - message: The message of the error.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func validated(_ format: String, message: String) -> ManagedTrait {
        ManagedTrait(part: .validation(format: format, message: message))
    }

    /// The application's facts about the property.
    ///
    /// - Parameter facts: The contents of ``NSPropertyDescription/userInfo``.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func userInfo(_ facts: [String: String]) -> ManagedTrait { ManagedTrait(part: .userInfo(facts)) }
}

extension ManagedTrait where Value == Any {
    /// The value is kept as JSON in a transformable attribute.
    public static var codable: ManagedTrait { ManagedTrait(part: .transformable(nil)) }
}
