import CoreDataEssentials
import CoreDataModelFiles
import Foundation
import StrataModelFiles
import StrataPredicates

/// Makes the description of an attribute from the traits of a property.
struct AttributeMaker {
    private let info: ManagedPropertyInfo
    private let owner: NSManagedObject.Type
    private let type: NSAttributeDescription.AttributeType

    init(
        info: ManagedPropertyInfo,
        owner: NSManagedObject.Type,
        type: NSAttributeDescription.AttributeType
    ) {
        self.info = info
        self.owner = owner
        self.type = type
    }

    // MARK: - Attributes

    func attribute() throws(ModelError) -> NSAttributeDescription {
        var derivation: String?
        for trait in info.traits { if case .derived(let text) = trait { derivation = text } }
        let attribute: NSAttributeDescription
        if let derivation {
            let derived = NSDerivedAttributeDescription()
            do {
                try derived.setDerivation(ModelText.expression(derivation), readFrom: derivation)
            } catch {
                throw failure("the derivation \"\(ModelText.quotable(derivation))\" cannot be understood")
            }
            attribute = derived
        } else {
            attribute = NSAttributeDescription()
        }
        attribute.type = type
        var rules: [(predicate: NSPredicate, warning: Any)] = []
        for trait in info.traits { try apply(trait, to: attribute, &rules) }
        attribute.setValidationPredicates(rules.map(\.predicate), withValidationWarnings: rules.map(\.warning))
        return attribute
    }

    private func apply(
        _ trait: PropertyTrait,
        to attribute: NSAttributeDescription,
        _ rules: inout [(predicate: NSPredicate, warning: Any)]
    ) throws(ModelError) {
        switch trait {
        case .externalStorage:
            guard type == .binaryData || type == .transformable else { throw misfit(trait) }
            attribute.allowsExternalBinaryDataStorage = true
        case .preservedOnDeletion: attribute.preservesValueInHistoryOnDeletion = true
        case .transformable(let name): attribute.valueTransformerName = name
        case .codable(let register): attribute.valueTransformerName = register()
        case .defaultValue(let value): attribute.defaultValue = try defaultValue(value)
        case .minimum(let value):
            let (limit, isDate) = try limit(value, trait)
            rules.append(
                (
                    NSPredicate(format: "SELF >= %@", limit),
                    isDate ? NSValidationDateTooSoonError : NSValidationNumberTooSmallError
                )
            )
        case .maximum(let value):
            let (limit, isDate) = try limit(value, trait)
            rules.append(
                (
                    NSPredicate(format: "SELF <= %@", limit),
                    isDate ? NSValidationDateTooLateError : NSValidationNumberTooLargeError
                )
            )
        case .length(let least, let most):
            guard type == .string, least ?? 0 >= 0 else { throw misfit(trait) }
            if let least {
                rules.append((NSPredicate(format: "length >= %@", least), NSValidationStringTooShortError))
            }
            if let most { rules.append((NSPredicate(format: "length <= %@", most), NSValidationStringTooLongError)) }
        case .pattern(let pattern):
            guard type == .string else { throw misfit(trait) }
            guard (try? NSRegularExpression(pattern: pattern)) != nil else {
                throw failure("\"\(pattern)\" is no regular expression")
            }
            rules.append((NSPredicate(format: "SELF MATCHES %@", pattern), NSValidationStringPatternMatchingError))
        case .validation(let format, let message):
            let predicate = try ClassProperty.parse(format, owner: owner, property: info.name) {
                try NSPredicate(validating: $0)
            }
            rules.append((predicate, message))
        case .unique, .indexed, .derived, .transient, .optional, .formerName, .hashModifier, .type, .userInfo: break
        case .inverse, .inverseName, .noInverse, .deleteRule, .ordered, .count, .destination, .fetched:
            throw misfit(trait)
        }
    }

    // MARK: - Values

    /// A default value in the same form as in a model from a file: numbers are `NSNumber` of the attribute's width.
    private func defaultValue(_ value: Any) throws(ModelError) -> Any? {
        guard let value = flattenOptional(value) else { return nil }
        if type == .transformable { return value }
        return try number(raw(value)) ?? raw(value)
    }

    private func raw(_ value: Any) -> Any {
        guard let representable = value as? any RawRepresentable else { return value }
        return raw(representable.rawValue)
    }

    /// A number in the form of the attribute's type; `nil` for a value that is no number.
    private func number(_ value: Any) throws(ModelError) -> NSNumber? {
        if let decimal = value as? Decimal { return NSDecimalNumber(decimal: decimal) }
        guard let number = Self.number(value) else { return nil }
        switch type {
        case .integer16: return try exact(number) { Int16(exactly: $0) }.map { NSNumber(value: $0) }
        case .integer32: return try exact(number) { Int32(exactly: $0) }.map { NSNumber(value: $0) }
        case .float: return NSNumber(value: number.floatValue)
        default: return number
        }
    }

    private static func number(_ value: Any) -> NSNumber? {
        switch value {
        case let value as Int: NSNumber(value: Int64(value))
        case let value as Int16: NSNumber(value: value)
        case let value as Int32: NSNumber(value: value)
        case let value as Int64: NSNumber(value: value)
        case let value as Double: NSNumber(value: value)
        case let value as Float: NSNumber(value: value)
        case let value as Bool: NSNumber(value: value)
        case let value as NSNumber: value
        default: nil
        }
    }

    private func exact<Value>(_ number: NSNumber, _ make: (Int64) -> Value?) throws(ModelError) -> Value? {
        guard let value = make(number.int64Value) else {
            throw failure("\(number) does not fit an attribute of type \(type.rawValue.described)")
        }
        return value
    }

    /// A limit for numbers or for dates.
    private func limit(_ value: Any, _ trait: PropertyTrait) throws(ModelError) -> (value: Any, isDate: Bool) {
        guard let value = flattenOptional(value) else { throw misfit(trait) }
        switch type {
        case .date:
            guard let date = raw(value) as? Date else { throw misfit(trait) }
            return (date, true)
        case .integer16, .integer32, .integer64, .decimal, .double, .float:
            guard let number = try number(raw(value)) else { throw misfit(trait) }
            return (number, false)
        default: throw misfit(trait)
        }
    }

    // MARK: - Composites

    func composite(_ composite: any ManagedComposite.Type) throws(ModelError) -> NSCompositeAttributeDescription {
        for trait in info.traits {
            switch trait {
            case .transient, .optional, .formerName, .hashModifier, .userInfo: break
            default: throw misfit(trait)
            }
        }
        let attribute = NSCompositeAttributeDescription()
        attribute.elements = try elements(of: composite, depth: 0)
        return attribute
    }

    private func elements(
        of composite: any ManagedComposite.Type,
        depth: Int
    ) throws(ModelError) -> [NSAttributeDescription] {
        guard depth < 8 else { throw failure("composite attributes are nested too deeply, or contain themselves") }
        var attributes: [NSAttributeDescription] = []
        for element in composite.managedElements {
            let plain = unwrapped(element.type)
            let attribute: NSAttributeDescription
            if let inner = plain as? any ManagedComposite.Type {
                let nested = NSCompositeAttributeDescription()
                nested.elements = try elements(of: inner, depth: depth + 1)
                attribute = nested
            } else if let type = ClassPropertyType.attributeType(of: plain) {
                attribute = NSAttributeDescription()
                attribute.type = type
                let maker = AttributeMaker(info: info, owner: owner, type: type)
                if let value = element.defaultValue { attribute.defaultValue = try maker.defaultValue(value) }
            } else {
                throw failure(
                    "its element \"\(element.name)\" is of type \(element.type), which is that of no attribute"
                )
            }
            attribute.name = element.name
            attribute.isOptional = plain != element.type
            attributes.append(attribute)
        }
        return attributes
    }

    // MARK: - Errors

    private func misfit(_ trait: PropertyTrait) -> ModelError {
        failure("the trait .\(trait.name) does not fit an attribute of type \(type.rawValue.described)")
    }

    private func failure(_ reason: String) -> ModelError {
        ModelError.class(owner, property: info.name, reason: reason)
    }
}
