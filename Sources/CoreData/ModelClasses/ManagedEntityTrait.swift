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
    public static func name(_ name: String) -> ManagedEntityTrait { ManagedEntityTrait(part: .name(name)) }

    /// There are no objects of this very class, only of its subclasses.
    public static var abstract: ManagedEntityTrait { ManagedEntityTrait(part: .abstract) }

    /// No two objects have the same values of these properties.
    public static func unique(_ properties: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .unique(properties))
    }

    /// A fetch index, whose name is unique in the entity.
    ///
    /// The elements are names of properties, for rising order, or such as `.descending("price")`. With a predicate, only the objects for
    /// which it holds are indexed.
    public static func index(
        _ name: String,
        on elements: ManagedIndexElement...,
        where predicate: String? = nil
    ) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .index(name, elements, predicate))
    }

    /// An index over several properties without a name, as Xcode made them before fetch indexes.
    public static func compoundIndex(_ properties: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .compoundIndex(properties))
    }

    /// The name of the entity in an earlier version, for inferred migration.
    public static func renamed(from name: String) -> ManagedEntityTrait { ManagedEntityTrait(part: .formerName(name)) }

    /// Text that makes the version another one though nothing else has changed.
    public static func hashModifier(_ text: String) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .hashModifier(text))
    }

    /// The configurations that the entity is in, beside the one with all entities.
    public static func configurations(_ names: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .configurations(names))
    }

    /// Facts of your own.
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
    public init(stringLiteral name: String) { self.init(.property(name)) }

    /// A property in rising order.
    public static func ascending(_ name: String) -> ManagedIndexElement { ManagedIndexElement(.property(name)) }

    /// A property in falling order.
    public static func descending(_ name: String) -> ManagedIndexElement {
        ManagedIndexElement(.property(name), isAscending: false)
    }

    /// A number in an R-tree; all elements of an index are such, or none.
    public static func rTree(_ name: String) -> ManagedIndexElement {
        ManagedIndexElement(.property(name), type: .rTree)
    }

    /// The value of an expression in the predicate language, which is of a type.
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
    public init(_ type: NSManagedObject.Type, traits: [ManagedEntityTrait]) {
        self.type = type
        self.traits = traits
    }
}
