import CoreDataEssentials
import Foundation
import StrataModelFiles
import StrataPredicates

/// The model's counterpart of a property's declared type.
struct ClassPropertyType {
    enum Kind {
        case attribute(NSAttributeDescription.AttributeType)
        case composite(any ManagedComposite.Type)
        case relationship(NSManagedObject.Type, isToMany: Bool, isOrdered: Bool)
        case fetched(NSManagedObject.Type, String)
    }

    let kind: Kind
    /// Whether an object may be saved without a value, unless a trait overrides it.
    let isOptional: Bool

    init(_ info: ManagedPropertyInfo, _ owner: NSManagedObject.Type) throws(ModelError) {
        let plain = unwrapped(info.type)
        var explicit: NSAttributeDescription.AttributeType?
        var named: NSManagedObject.Type?
        var isTransient = false
        var predicate: String?
        for trait in info.traits {
            switch trait {
            case .type(let type): explicit = type
            case .transformable, .codable: explicit = .transformable
            case .destination(let type): named = type
            case .transient: isTransient = true
            case .fetched(let format): predicate = format
            default: break
            }
        }
        isOptional = plain != info.type || Self.isCollection(plain) && explicit == nil
        if let predicate {
            guard let member = Self.member(of: plain) else {
                throw ModelError.class(
                    owner,
                    property: info.name,
                    reason: "a fetched property is an array of managed objects, not \(info.type)"
                )
            }
            kind = .fetched(member, predicate)
            return
        }
        if let explicit {
            if let found = Self.attributeType(of: plain), !Self.fits(explicit, found: found, type: plain) {
                throw ModelError.class(
                    owner,
                    property: info.name,
                    reason: "an attribute of type \(explicit.rawValue.described) cannot be declared as \(info.type)"
                )
            }
            kind = .attribute(explicit)
        } else if let composite = plain as? any ManagedComposite.Type {
            kind = .composite(composite)
        } else if let relationship = Self.relationship(plain, named) {
            kind = relationship
        } else if let type = Self.attributeType(of: plain) {
            kind = .attribute(type)
        } else if isTransient {
            kind = .attribute(.undefined)
        } else {
            throw ModelError.class(
                owner,
                property: info.name,
                reason:
                    "its type \(info.type) is that of no attribute: "
                    + "write .codable, .transformable(by:) or .type(…), or make it @ManagedComposite"
            )
        }
    }

    // MARK: - Relationships

    private static func member(of type: Any.Type) -> NSManagedObject.Type? {
        (type as? any ManagedCollection.Type)?.memberClass
    }

    private static func isCollection(_ type: Any.Type) -> Bool {
        type is any ManagedCollection.Type && member(of: type) != nil || type is NSSet.Type || type is NSOrderedSet.Type
    }

    private static func relationship(_ type: Any.Type, _ named: NSManagedObject.Type?) -> Kind? {
        if let destination = type as? NSManagedObject.Type {
            return .relationship(named ?? destination, isToMany: false, isOrdered: false)
        }
        if let member = member(of: type) {
            let isSet = (type as? any ManagedPropertyValue.Type).map { value in
                if case .toMany(isOrdered: false) = value.managedKind { true } else { false }
            }
            return .relationship(named ?? member, isToMany: true, isOrdered: isSet != true)
        }
        guard let named else { return nil }
        if type is NSOrderedSet.Type { return .relationship(named, isToMany: true, isOrdered: true) }
        return type is NSSet.Type ? .relationship(named, isToMany: true, isOrdered: false) : nil
    }

    // MARK: - Attributes

    /// The attribute type for a Swift type, unless a trait overrides it.
    static func attributeType(of type: Any.Type) -> NSAttributeDescription.AttributeType? {
        let plain = unwrapped(type)
        if let value = plain as? any ManagedPropertyValue.Type, case .attribute(let types) = value.managedKind {
            return types.first.map { NSAttributeDescription.AttributeType(rawValue: $0) }
        }
        if let representable = plain as? any RawRepresentable.Type { return rawType(of: representable) }
        switch plain {
        case is NSDecimalNumber.Type: return .decimal
        case is NSString.Type: return .string
        case is NSDate.Type: return .date
        case is NSData.Type: return .binaryData
        case is NSUUID.Type: return .uuid
        case is NSURL.Type: return .uri
        default: return nil
        }
    }

    private static func rawType<Value: RawRepresentable>(
        of type: Value.Type
    ) -> NSAttributeDescription.AttributeType? {
        attributeType(of: Value.RawValue.self)
    }

    /// Whether an attribute may be declared as a type: an `Int` is an integer of any width, a `Double` may be a date.
    private static func fits(
        _ explicit: NSAttributeDescription.AttributeType,
        found: NSAttributeDescription.AttributeType,
        type: Any.Type
    ) -> Bool {
        if explicit == found || explicit == .transformable { return true }
        if explicit == .date { return type is Double.Type }
        return integerWidthIsFree(type) && [.integer16, .integer32, .integer64].contains(explicit)
    }

    private static func integerWidthIsFree(_ type: Any.Type) -> Bool {
        if type is Int.Type { return true }
        func raw<Value: RawRepresentable>(_ type: Value.Type) -> Bool { Value.RawValue.self is Int.Type }
        return (type as? any RawRepresentable.Type).map { raw($0) } ?? false
    }
}
