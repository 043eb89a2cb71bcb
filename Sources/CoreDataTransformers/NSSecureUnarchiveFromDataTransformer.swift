import StrataArchives
import StrataPredicates

/// Converts between archived data and objects, if their classes are allowed.
///
/// A transformable attribute without a named transformer uses it. To allow more classes, subclass it, override
/// ``allowedTopLevelClasses`` and register an instance. Note the direction: ``transformedValue(_:)`` turns data into an
/// object. Attributes know that and call subclasses in the right direction.
///
/// The result is `nil` if an object cannot be archived, or if the data is no archive or contains other classes.
///
/// ```swift
/// let transformer = NSSecureUnarchiveFromDataTransformer()
/// let data = transformer.reverseTransformedValue(["a", "b"] as NSArray) as? Data
/// let texts = transformer.transformedValue(data) as? [String]
/// ```
open class NSSecureUnarchiveFromDataTransformer: ValueTransformer {
    /// The classes that may be at the top of an archive.
    ///
    /// By default these are arrays, dictionaries, sets, strings, numbers, dates, data, URLs, UUIDs and `NSNull`. Inside
    /// of an object, the same classes and the default ones are allowed.
    open class var allowedTopLevelClasses: [AnyClass] { PropertyArchive.valueClasses }

    /// The default transformer of attributes.
    package static let attributeDefault = PropertyArchive(rule: .secureCoding)

    /// `NSObject`, because the class of the result depends on the data.
    open override class func transformedValueClass() -> AnyClass { NSObject.self }

    /// Always `true`.
    open override class func allowsReverseTransformation() -> Bool { true }

    /// The object in archived data, or `nil`.
    ///
    /// - Returns: An object of ``allowedTopLevelClasses``, or `nil`.
    open override func transformedValue(_ value: Any?) -> Any? {
        guard let data = value as? Data else { return nil }
        return archive.object(in: data)
    }

    /// The object as archived data, or `nil`.
    ///
    /// - Returns: `Data`, or `nil` if the object cannot be archived.
    open override func reverseTransformedValue(_ value: Any?) -> Any? {
        value.flatMap { archive.data(for: $0) }
    }

    private var archive: PropertyArchive { PropertyArchive(rule: .classes(Self.allowedTopLevelClasses)) }
}

/// The transformer for `NSKeyedUnarchiveFromData` in old models: it allows all classes.
final class AnyClassUnarchiveTransformer: ValueTransformer {
    private let archive = PropertyArchive(rule: .anyCoding)

    override func transformedValue(_ value: Any?) -> Any? {
        guard let data = value as? Data else { return nil }
        return archive.object(in: data)
    }

    override func reverseTransformedValue(_ value: Any?) -> Any? {
        value.flatMap { archive.data(for: $0) }
    }
}

extension ValueTransformer {
    /// Whether ``transformedValue(_:)`` reads data: unarchiving transformers do; custom transformers make data.
    package var turnsDataIntoObjects: Bool {
        self is NSSecureUnarchiveFromDataTransformer || self is AnyClassUnarchiveTransformer
    }
}
