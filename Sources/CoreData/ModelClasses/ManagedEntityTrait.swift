import Foundation

/// What the entity of a managed object's class is in the model, beside its properties.
///
/// See <doc:Models>.
///
/// ```swift
/// @ManagedObject(.unique("name", "street"), .index("byPrice", on: .descending("price"), "name"))
/// final class Hall: NSManagedObject {
///     @Managed var name: String
///     @Managed var street: String
///     @Managed(.default(0)) var price: Int64
/// }
/// ```
///
/// Properties are named as in the model; the macro checks the names of a class that inherits none.
public struct ManagedEntityTrait {
    let part: Part

    enum Part {
        case name(String)
        case abstract
        case unique([String])
        case index(String, [ManagedIndexElement], String?)
        case compoundIndex([String])
        case formerName(String)
        case hashModifier(String)
        case configurations([String])
        case userInfo([String: String])
    }

    /// The name of the entity, if it is not that of the class.
    ///
    /// - Parameter name: The name in the model.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func name(_ name: String) -> ManagedEntityTrait { ManagedEntityTrait(part: .name(name)) }

    /// There are no objects of this very class, only of its subclasses.
    public static var abstract: ManagedEntityTrait { ManagedEntityTrait(part: .abstract) }

    /// No two objects have the same values of these properties.
    ///
    /// - Parameter properties: The names of attributes or to-one relationships.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func unique(_ properties: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .unique(properties))
    }

    /// A fetch index.
    ///
    /// If two indexes of an entity have one name, then stores add a number to the second.
    ///
    /// The elements are names of properties, for rising order, or such as `.descending("price")`. With a predicate, only the objects for
    /// which it holds are indexed.
    ///
    /// - Parameters:
    ///   - name: The name of the index.
    ///   - elements: What is indexed, the most important first.
    ///   - predicate: A condition in the predicate language; `nil` to index all objects.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func index(
        _ name: String,
        on elements: ManagedIndexElement...,
        where predicate: String? = nil
    ) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .index(name, elements, predicate))
    }

    /// An index over several properties without a name, as Xcode made them before fetch indexes.
    ///
    /// - Parameter properties: The names of the properties, the most important first.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func compoundIndex(_ properties: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .compoundIndex(properties))
    }

    /// The name of the entity in an earlier version, for inferred migration.
    ///
    /// - Parameter name: The former name.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func renamed(from name: String) -> ManagedEntityTrait { ManagedEntityTrait(part: .formerName(name)) }

    /// Text that makes the version another one though nothing else has changed.
    ///
    /// - Parameter text: Any text; another one makes another version.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func hashModifier(_ text: String) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .hashModifier(text))
    }

    /// The configurations that the entity is in, beside the one with all entities.
    ///
    /// - Parameter names: The names of the configurations.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func configurations(_ names: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .configurations(names))
    }

    /// Facts of your own.
    ///
    /// - Parameter facts: What ``NSEntityDescription/userInfo`` has.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func userInfo(_ facts: [String: String]) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .userInfo(facts))
    }
}

/// What a fetch index has in one column.
///
/// ```swift
/// @ManagedObject(.index("byPrice", on: .descending("price"), "name"))
/// final class Seat: NSManagedObject {
///     @Managed var name: String
///     @Managed(.default(0)) var price: Int64
/// }
/// ```
public struct ManagedIndexElement: ExpressibleByStringLiteral {
    enum Subject {
        case property(String)
        case expression(String, NSAttributeDescription.AttributeType)
    }

    let subject: Subject
    var isAscending = true
    var type = NSFetchIndexElementType.binary

    private init(_ subject: Subject, isAscending: Bool = true, type: NSFetchIndexElementType = .binary) {
        self.subject = subject
        self.isAscending = isAscending
        self.type = type
    }

    /// A property in rising order.
    ///
    /// - Parameter name: The name of the property.
    public init(stringLiteral name: String) { self.init(.property(name)) }

    /// A property in rising order.
    ///
    /// - Parameter name: The name of the property.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func ascending(_ name: String) -> ManagedIndexElement { ManagedIndexElement(.property(name)) }

    /// A property in falling order.
    ///
    /// - Parameter name: The name of the property.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func descending(_ name: String) -> ManagedIndexElement {
        ManagedIndexElement(.property(name), isAscending: false)
    }

    /// A number in an R-tree; all elements of an index are such, or none.
    ///
    /// - Parameter name: The name of the property.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func rTree(_ name: String) -> ManagedIndexElement {
        ManagedIndexElement(.property(name), type: .rTree)
    }

    /// The value of an expression in the predicate language, which is of a type.
    ///
    /// - Parameters:
    ///   - text: The expression.
    ///   - type: The type of its value.
    ///   - isAscending: Whether small values come first.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func expression(
        _ text: String,
        type: NSAttributeDescription.AttributeType,
        isAscending: Bool = true
    ) -> ManagedIndexElement {
        ManagedIndexElement(.expression(text, type), isAscending: isAscending)
    }
}

/// A class that `@ManagedObject` stands on, with what the macro was given.
///
/// ```swift
/// print(Venue.managedEntity?.type == Venue.self)
/// ```
public struct ManagedEntityInfo {
    /// The class.
    public let type: NSManagedObject.Type
    let traits: [ManagedEntityTrait]

    /// Describes the entity of a class.
    ///
    /// The macro calls this.
    ///
    /// - Parameters:
    ///   - type: The class.
    ///   - traits: What the arguments of the macro say of the entity.
    public init(_ type: NSManagedObject.Type, traits: [ManagedEntityTrait]) {
        self.type = type
        self.traits = traits
    }
}
