import Foundation

extension ManagedTrait {
    /// The relationship that leads back, by its name in the model.
    ///
    /// For a relationship that is its own inverse, and where both sides shall name each other; a key path on one side is checked
    /// by the compiler.
    ///
    /// - Parameter name: The name of a relationship of the class at the other end.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse(_ name: String) -> ManagedTrait { ManagedTrait(part: .inverseName(name)) }

    /// Nothing leads back.
    ///
    /// Such a relationship is not told of deletions at the other end.
    public static var noInverse: ManagedTrait { ManagedTrait(part: .noInverse) }

    /// What happens to the objects at the other end when an object is deleted.
    ///
    /// Without this trait, their inverse is cleared.
    ///
    /// - Parameter rule: What to do.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func deleteRule(_ rule: ManagedDeleteRule) -> ManagedTrait {
        ManagedTrait(part: .deleteRule(rule.rule))
    }

    /// The objects of a to-many relationship keep an order; so they do for a property whose type is an array.
    public static var ordered: ManagedTrait { ManagedTrait(part: .ordered(true)) }

    /// The objects of a to-many relationship have no order, though the property's type is an array.
    public static var unordered: ManagedTrait { ManagedTrait(part: .ordered(false)) }

    /// How many objects a to-many relationship has, if it has any.
    ///
    /// - Parameter range: The least and the greatest number; both are allowed.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func count(_ range: ClosedRange<Int>) -> ManagedTrait {
        ManagedTrait(part: .count(least: range.lowerBound, most: range.upperBound))
    }

    /// How many objects a to-many relationship has at least, if it has any.
    ///
    /// - Parameter range: The least number.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func count(_ range: PartialRangeFrom<Int>) -> ManagedTrait {
        ManagedTrait(part: .count(least: range.lowerBound, most: nil))
    }

    /// How many objects a to-many relationship has, as the counts of a model file; -1 is an old way to say that there is no limit.
    ///
    /// - Parameters:
    ///   - least: The least number, 0 or more.
    ///   - most: The greatest number; -1 for no limit.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func count(least: Int, most: Int) -> ManagedTrait {
        ManagedTrait(part: .count(least: least, most: most))
    }

    /// The class at the other end, where the property's type does not tell: an `NSSet` or an `NSOrderedSet`.
    ///
    /// - Parameter type: The class of the objects at the other end.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func destination(_ type: NSManagedObject.Type) -> ManagedTrait {
        ManagedTrait(part: .destination(type))
    }

    /// A fetched property: the objects of the array's class for which a predicate holds, read once.
    ///
    /// In the predicate, `$FETCH_SOURCE` is the object.
    ///
    /// - Parameter format: The predicate, in the predicate language.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func fetched(where format: String) -> ManagedTrait { ManagedTrait(part: .fetched(format)) }
}

/// What happens to the objects at the other end of a relationship when an object is deleted.
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
    /// Nothing, even if they then point at an object that is gone.
    case noAction
    /// Their inverse is cleared.
    case nullify
    /// They are deleted as well.
    case cascade
    /// The deletion is refused with error 1600 while there are any.
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

// One for each form of a property, so that a key path of another class than the property leads to does not compile.

extension ManagedTrait where Value == Any {
    /// The relationship that leads back.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait { ManagedTrait(part: .inverse(keyPath)) }
}

extension ManagedTrait {
    /// The relationship that leads back, of the class that the property leads to.
    ///
    /// One side of a pair names it; that both sides do, the compiler refuses as circular.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == Destination? { ManagedTrait(part: .inverse(keyPath)) }

    /// The relationship that leads back, of the class that the property leads to.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Back>(_ keyPath: KeyPath<Value, Back>) -> ManagedTrait where Value: NSManagedObject {
        ManagedTrait(part: .inverse(keyPath))
    }

    /// The relationship that leads back, of the class that the property leads to.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == Set<Destination> { ManagedTrait(part: .inverse(keyPath)) }

    /// The relationship that leads back, of the class that the property leads to.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == Set<Destination>? { ManagedTrait(part: .inverse(keyPath)) }

    /// The relationship that leads back, of the class that the property leads to.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == [Destination] { ManagedTrait(part: .inverse(keyPath)) }

    /// The relationship that leads back, of the class that the property leads to.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == [Destination]? { ManagedTrait(part: .inverse(keyPath)) }

    /// The relationship that leads back, of the class that ``destination(_:)`` names.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == NSSet? { ManagedTrait(part: .inverse(keyPath)) }

    /// The relationship that leads back, of the class that ``destination(_:)`` names.
    ///
    /// - Parameter keyPath: The relationship of the class at the other end, such as `\City.venues`.
    /// - Returns: A trait for ``Managed(_:_:)``.
    public static func inverse<Destination: NSManagedObject, Back>(
        _ keyPath: KeyPath<Destination, Back>
    ) -> ManagedTrait where Value == NSOrderedSet? { ManagedTrait(part: .inverse(keyPath)) }
}
