import Foundation

extension ManagedTrait {
    /// The inverse relationship, by its name in the model.
    ///
    /// Use it for a relationship that is its own inverse, or if both sides shall name each other. The compiler checks
    /// only a key path, which one side may have.
    ///
    /// - Parameter name: The name of a relationship of the class at the other end.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse(_ name: String) -> ManagedTrait { ManagedTrait(part: .inverseName(name)) }

    /// The relationship has no inverse.
    ///
    /// Such a relationship does not notice deletions at the other end.
    public static var noInverse: ManagedTrait { ManagedTrait(part: .noInverse) }

    /// The action on the objects at the other end when an object is deleted.
    ///
    /// Without this trait, their inverse is cleared.
    ///
    /// - Parameter rule: The action.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func deleteRule(_ rule: ManagedDeleteRule) -> ManagedTrait {
        ManagedTrait(part: .deleteRule(rule.rule))
    }

    /// The objects of a to-many relationship keep an order; this is the default for a property whose type is an array.
    public static var ordered: ManagedTrait { ManagedTrait(part: .ordered(true)) }

    /// The objects of a to-many relationship have no order, even if the property's type is an array.
    public static var unordered: ManagedTrait { ManagedTrait(part: .ordered(false)) }

    /// The allowed number of objects in a to-many relationship that is not empty.
    ///
    /// - Parameter range: The minimum and the maximum.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func count(_ range: ClosedRange<Int>) -> ManagedTrait {
        ManagedTrait(part: .count(least: range.lowerBound, most: range.upperBound))
    }

    /// The minimum number of objects in a to-many relationship that is not empty.
    ///
    /// - Parameter range: The minimum.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func count(_ range: PartialRangeFrom<Int>) -> ManagedTrait {
        ManagedTrait(part: .count(least: range.lowerBound, most: nil))
    }

    /// The allowed number of objects in a to-many relationship, with the counts of a model file.
    ///
    /// - Parameters:
    ///   - least: The minimum, 0 or more.
    ///   - most: The maximum; -1, an old form, for no limit.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func count(least: Int, most: Int) -> ManagedTrait {
        ManagedTrait(part: .count(least: least, most: most))
    }

    /// The class at the other end, if the property's type does not contain it: an `NSSet` or an `NSOrderedSet`.
    ///
    /// - Parameter type: The class of the objects at the other end.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func destination(_ type: NSManagedObject.Type) -> ManagedTrait {
        ManagedTrait(part: .destination(type))
    }

    /// A fetched property: the objects of the array's class that fulfil a predicate, read once.
    ///
    /// In the predicate, `$FETCH_SOURCE` is the object.
    ///
    /// - Parameter format: The predicate, in the predicate language.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func fetched(where format: String) -> ManagedTrait { ManagedTrait(part: .fetched(format)) }
}

/// The action on the objects at the other end of a relationship when an object is deleted.
///
/// ```swift
/// @ManagedObject
/// final class Author: NSManagedObject {
///     @Managed(.deleteRule(.deny), .inverse(\Book.author)) var books: Set<Book>
/// }
///
/// @ManagedObject
/// final class Book: NSManagedObject {
///     @Managed var author: Author?
/// }
/// ```
public enum ManagedDeleteRule: Sendable {
    /// No action, even if the objects then point at a deleted object.
    case noAction
    /// Their inverse is cleared.
    case nullify
    /// They are deleted as well.
    case cascade
    /// The deletion is refused with error 1600 while such objects exist.
    case deny

    var rule: NSDeleteRule {
        switch self {
        case .noAction: .noActionDeleteRule
        case .nullify: .nullifyDeleteRule
        case .cascade: .cascadeDeleteRule
        case .deny: .denyDeleteRule
        }
    }
}

// MARK: - Inverse by key path

// There is one method for each form of a property, so that the compiler refuses a key path of a wrong class.

extension ManagedTrait where Value == Any {
    /// The inverse relationship.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait { ManagedTrait(part: .inverse(keyPath)) }
}

extension ManagedTrait {
    /// The inverse relationship, in the class of the property's objects.
    ///
    /// Only one side of a pair names the other: the compiler refuses two such key paths as circular.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == Destination? { ManagedTrait(part: .inverse(keyPath)) }

    /// The inverse relationship, in the class of the property's objects.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Back>(_ keyPath: KeyPath<Value, Back>) -> ManagedTrait where Value: NSManagedObject {
        ManagedTrait(part: .inverse(keyPath))
    }

    /// The inverse relationship, in the class of the property's objects.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == Set<Destination> { ManagedTrait(part: .inverse(keyPath)) }

    /// The inverse relationship, in the class of the property's objects.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == Set<Destination>? { ManagedTrait(part: .inverse(keyPath)) }

    /// The inverse relationship, in the class of the property's objects.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == [Destination] { ManagedTrait(part: .inverse(keyPath)) }

    /// The inverse relationship, in the class of the property's objects.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == [Destination]? { ManagedTrait(part: .inverse(keyPath)) }

    /// The inverse relationship, in the class that ``destination(_:)`` names.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == NSSet? { ManagedTrait(part: .inverse(keyPath)) }

    /// The inverse relationship, in the class that ``destination(_:)`` names.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == NSOrderedSet? { ManagedTrait(part: .inverse(keyPath)) }
}
