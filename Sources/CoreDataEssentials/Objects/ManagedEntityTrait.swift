import Foundation

/// A fact about the entity of a managed object's class, besides its properties.
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
/// Properties have the same names as in the model; the macro checks the names in classes that inherit no properties.
public struct ManagedEntityTrait {
    package let part: Part

    package enum Part {
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

    /// The name of the entity, if it differs from the name of the class.
    ///
    /// - Parameter name: The name in the model.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func name(_ name: String) -> ManagedEntityTrait { ManagedEntityTrait(part: .name(name)) }

    /// No object has exactly this class; all have one of its subclasses.
    public static var abstract: ManagedEntityTrait { ManagedEntityTrait(part: .abstract) }

    /// The combination of these properties' values is unique.
    ///
    /// - Parameter properties: The names of attributes or to-one relationships.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func unique(_ properties: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .unique(properties))
    }

    /// A fetch index.
    ///
    /// If two indexes of an entity have the same name, then stores append a number to the second.
    ///
    /// The elements are names of properties, for ascending order, or others such as `.descending("price")`. If there is
    /// a predicate, then only the objects that fulfil it are indexed.
    ///
    /// - Parameters:
    ///   - name: The name of the index.
    ///   - elements: The columns of the index, the most important first.
    ///   - predicate: A condition in the predicate language; `nil` to index all objects.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func index(
        _ name: String,
        on elements: ManagedIndexElement...,
        where predicate: String? = nil
    ) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .index(name, elements, predicate))
    }

    /// An index on several properties without a name, as Xcode made them before fetch indexes existed.
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

    /// A text that makes a new version of the entity even if nothing else has changed.
    ///
    /// - Parameter text: Any text; a different text makes a different version.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func hashModifier(_ text: String) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .hashModifier(text))
    }

    /// The configurations that contain the entity, besides the one with all entities.
    ///
    /// - Parameter names: The names of the configurations.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func configurations(_ names: String...) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .configurations(names))
    }

    /// The application's facts about the entity.
    ///
    /// - Parameter facts: The contents of ``NSEntityDescription/userInfo``.
    /// - Returns: A trait for ``ManagedObject(_:_:)``.
    public static func userInfo(_ facts: [String: String]) -> ManagedEntityTrait {
        ManagedEntityTrait(part: .userInfo(facts))
    }
}

/// The contents of one column of a fetch index.
///
/// ```swift
/// @ManagedObject(.index("byPrice", on: .descending("price"), "name"))
/// final class Seat: NSManagedObject {
///     @Managed var name: String
///     @Managed(.default(0)) var price: Int64
/// }
/// ```
public struct ManagedIndexElement: ExpressibleByStringLiteral {
    package enum Subject {
        case property(String)
        case expression(String, NSAttributeDescription.AttributeType)
    }

    package let subject: Subject
    package var isAscending = true
    package var type = NSFetchIndexElementType.binary

    private init(_ subject: Subject, isAscending: Bool = true, type: NSFetchIndexElementType = .binary) {
        self.subject = subject
        self.isAscending = isAscending
        self.type = type
    }

    /// A property in ascending order.
    ///
    /// - Parameter name: The name of the property.
    public init(stringLiteral name: String) { self.init(.property(name)) }

    /// A property in ascending order.
    ///
    /// - Parameter name: The name of the property.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func ascending(_ name: String) -> ManagedIndexElement { ManagedIndexElement(.property(name)) }

    /// A property in descending order.
    ///
    /// - Parameter name: The name of the property.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func descending(_ name: String) -> ManagedIndexElement {
        ManagedIndexElement(.property(name), isAscending: false)
    }

    /// A number in an R-tree; either all elements of an index are in R-trees, or none.
    ///
    /// - Parameter name: The name of the property.
    /// - Returns: An element for ``ManagedEntityTrait/index(_:on:where:)``.
    public static func rTree(_ name: String) -> ManagedIndexElement {
        ManagedIndexElement(.property(name), type: .rTree)
    }

    /// The value of an expression in the predicate language, with the type of the value.
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

/// A class that is marked with `@ManagedObject`, and the arguments of the macro.
///
/// ```swift
/// print(Venue.managedEntity?.type == Venue.self)
/// ```
public struct ManagedEntityInfo {
    /// The class.
    public let type: NSManagedObject.Type
    package let traits: [ManagedEntityTrait]

    /// Describes the entity of a class.
    ///
    /// The macro calls this.
    ///
    /// - Parameters:
    ///   - type: The class.
    ///   - traits: The traits of the entity in the arguments of the macro.
    public init(_ type: NSManagedObject.Type, traits: [ManagedEntityTrait]) {
        self.type = type
        self.traits = traits
    }
}
