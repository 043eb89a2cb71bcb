import CoreDataEssentials
import CoreDataModelFiles
import Foundation
import StrataModelFiles
import StrataPredicates

/// A property of a managed object's class, with the description made from its type and traits.
struct ClassProperty {
    let name: String
    let property: NSPropertyDescription
    /// The class of the objects of a relationship or a fetched property.
    let destination: NSManagedObject.Type?

    private let owner: NSManagedObject.Type
    private let traits: [PropertyTrait]

    /// Describes a property.
    ///
    /// - Throws: An error that names class and property, for a type that has no counterpart in a model, and for traits
    ///   that do not fit the type.
    init(_ info: ManagedPropertyInfo, of owner: NSManagedObject.Type) throws(ModelError) {
        name = info.name
        self.owner = owner
        traits = info.traits
        let type = try ClassPropertyType(info, owner)
        switch type.kind {
        case .attribute(let attributeType):
            property = try AttributeMaker(info: info, owner: owner, type: attributeType).attribute()
            destination = nil
        case .composite(let composite):
            let attribute = try AttributeMaker(info: info, owner: owner, type: .composite).composite(composite)
            property = attribute
            destination = nil
        case .relationship(let class_, let isToMany, let isOrdered):
            property = try Self.relationship(info, owner, isToMany: isToMany, isOrdered: isOrdered)
            destination = class_
        case .fetched(let class_, let format):
            let fetched = NSFetchedPropertyDescription()
            let request = NSFetchRequest<NSFetchRequestResult>()
            request.predicate = try Self.parse(format, owner: owner, property: info.name, ModelText.predicate)
            fetched.fetchRequest = request
            property = fetched
            destination = class_
        }
        property.name = info.name
        property.isOptional = type.isOptional
        for trait in info.traits {
            switch trait {
            case .optional(let isOptional): property.isOptional = isOptional
            case .transient: property.isTransient = true
            case .indexed: property.isIndexed = true
            case .formerName(let name): property.renamingIdentifier = name
            case .hashModifier(let text): property.versionHashModifier = text
            case .userInfo(let facts): property.userInfo = facts
            default: break
            }
        }
    }

    /// Whether the values must be unique.
    var isUnique: Bool { traits.contains { if case .unique = $0 { true } else { false } } }

    /// Whether the class declares that there is no inverse.
    var hasNoInverse: Bool { traits.contains { if case .noInverse = $0 { true } else { false } } }

    /// The name of the inverse, if the class gives it.
    func inverseName(in type: NSManagedObject.Type) throws(ModelError) -> String? {
        for trait in traits {
            if case .inverseName(let name) = trait { return name }
            guard case .inverse(let keyPath) = trait else { continue }
            guard let root = Swift.type(of: keyPath).rootType as? NSManagedObject.Type, root == type else {
                throw ModelError.class(
                    owner,
                    property: name,
                    reason:
                        "its inverse is a property of \(Swift.type(of: keyPath).rootType), but it leads to \(String(reflecting: type))"
                )
            }
            do {
                return try KeyPathNames.name(of: keyPath, in: type)
            } catch {
                throw ModelError.class(owner, property: name, reason: "its inverse \(keyPath) is no @Managed property")
            }
        }
        return nil
    }

    // MARK: - Relationships

    private static func relationship(
        _ info: ManagedPropertyInfo,
        _ owner: NSManagedObject.Type,
        isToMany: Bool,
        isOrdered: Bool
    ) throws(ModelError) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        relationship.maxCount = isToMany ? 0 : 1
        relationship.isOrdered = isOrdered
        for trait in info.traits {
            switch trait {
            case .deleteRule(let rule): relationship.deleteRule = rule
            case .ordered(let isOrdered) where isToMany: relationship.isOrdered = isOrdered
            case .count(let least, 1?) where !isToMany && least >= 0: relationship.minCount = least
            case .count(let least, let most) where isToMany:
                guard least >= 0, most == -1 || (most ?? .max) >= max(least, 1) else {
                    throw ModelError.class(
                        owner,
                        property: info.name,
                        reason: "it cannot have \(least) to \(most ?? 0) objects"
                    )
                }
                relationship.minCount = least
                // A to-many relationship with at most one object would be a to-one relationship.
                guard most != 1 else {
                    throw ModelError.class(
                        owner,
                        property: info.name,
                        reason: "a collection of one object at most is no to-many relationship"
                    )
                }
                relationship.maxCount = most ?? 0
            case .optional, .transient, .indexed, .formerName, .hashModifier, .userInfo, .unique, .inverse,
                .inverseName,
                .noInverse, .destination:
                break
            default:
                throw ModelError.class(
                    owner,
                    property: info.name,
                    reason: "the trait .\(trait.name) does not fit a relationship\(isToMany ? "" : " to one object")"
                )
            }
        }
        return relationship
    }

    /// Parses a text of the predicate language.
    static func parse<Value>(
        _ text: String,
        owner: NSManagedObject.Type,
        property: String?,
        _ parse: (String) throws -> Value
    ) throws(ModelError) -> Value {
        do {
            return try parse(text)
        } catch {
            throw ModelError.class(
                owner,
                property: property,
                reason: "\"\(ModelText.quotable(text))\" cannot be understood"
            )
        }
    }
}

extension PropertyTrait {
    /// The name of the trait in source code.
    var name: String {
        switch self {
        case .unique: "unique"
        case .indexed: "indexed"
        case .externalStorage: "externalStorage"
        case .preservedOnDeletion: "preservedOnDeletion"
        case .transformable: "transformable"
        case .codable: "codable"
        case .derived: "derived"
        case .transient: "transient"
        case .optional(let isOptional): isOptional ? "optional" : "required"
        case .formerName: "renamed"
        case .hashModifier: "hashModifier"
        case .type: "type"
        case .defaultValue: "default"
        case .minimum: "minimum"
        case .maximum: "maximum"
        case .length: "length"
        case .pattern: "matches"
        case .validation: "validated"
        case .userInfo: "userInfo"
        case .inverse, .inverseName: "inverse"
        case .noInverse: "noInverse"
        case .deleteRule: "deleteRule"
        case .ordered(let isOrdered): isOrdered ? "ordered" : "unordered"
        case .count: "count"
        case .destination: "destination"
        case .fetched: "fetched"
        }
    }
}
