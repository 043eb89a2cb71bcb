import StrataPredicates

/// Turns archived data into the object in it, and objects into archived data, as far as their classes are allowed.
///
/// It is what a transformable attribute uses when it names no transformer. To allow more classes, subclass it, override
/// ``allowedTopLevelClasses`` and register an instance. Note the direction: data to object is ``transformedValue(_:)``.
/// Attributes know that and call subclasses the right way round.
///
/// What cannot be archived, and data that is no archive or holds other classes, gives `nil`.
///
/// ```swift
/// let transformer = NSSecureUnarchiveFromDataTransformer()
/// let data = transformer.reverseTransformedValue(["a", "b"] as NSArray) as? Data
/// let texts = transformer.transformedValue(data) as? [String]
/// ```
open class NSSecureUnarchiveFromDataTransformer: ValueTransformer {
    /// The classes that may be at the top of an archive: by default arrays, dictionaries, sets, strings, numbers, dates, data,
    /// URLs, UUIDs and `NSNull`.
    ///
    /// Inside of an object the same classes and the default ones are allowed.
    open class var allowedTopLevelClasses: [AnyClass] { PropertyArchive.valueClasses }

    /// The default transformer of attributes.
    fileprivate static let attributeDefault = PropertyArchive(rule: .secureCoding)

    /// `NSObject`: which class comes out depends on the data.
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
    /// - Returns: `Data`, or `nil` for what cannot be archived.
    open override func reverseTransformedValue(_ value: Any?) -> Any? {
        value.flatMap { archive.data(for: $0) }
    }

    private var archive: PropertyArchive { PropertyArchive(rule: .classes(Self.allowedTopLevelClasses)) }
}

/// What `NSKeyedUnarchiveFromData` means in old models: no restriction on classes.
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

extension NSAttributeDescription {
    /// The value of a transformable attribute as the data that a store keeps.
    ///
    /// - Returns: `nil` when the transformer refuses the value, or there is no transformer of that name, or without one the
    ///   value cannot be archived.
    func archived(_ value: Any) -> Data? {
        guard let name = valueTransformerName else {
            return NSSecureUnarchiveFromDataTransformer.attributeDefault.data(for: value)
        }
        guard let transformer = ValueTransformer(forName: NSValueTransformerName(name)) else { return nil }
        return
            (transformer.turnsDataIntoObjects
            ? transformer.reverseTransformedValue(value) : transformer.transformedValue(value)) as? Data
    }

    /// The value of a transformable attribute from the data that a store keeps.
    ///
    /// - Returns: `nil` when the data is damaged, or of classes that are unknown or not allowed, or when there is no
    ///   transformer of that name or it refuses the data.
    func unarchived(_ data: Data) -> Any? {
        guard let name = valueTransformerName else {
            return NSSecureUnarchiveFromDataTransformer.attributeDefault.object(in: data)
        }
        guard let transformer = ValueTransformer(forName: NSValueTransformerName(name)) else { return nil }
        return transformer.turnsDataIntoObjects
            ? transformer.transformedValue(data) : transformer.reverseTransformedValue(data)
    }
}

extension ValueTransformer {
    /// Whether ``transformedValue(_:)`` reads data: so with the unarchiving ones, while users' own make data.
    fileprivate var turnsDataIntoObjects: Bool {
        self is NSSecureUnarchiveFromDataTransformer || self is AnyClassUnarchiveTransformer
    }
}
