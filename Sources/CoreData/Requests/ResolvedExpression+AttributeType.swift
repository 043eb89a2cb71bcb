import StrataPredicates

extension ResolvedExpression {
    /// The type of attribute that has such values, and the attribute itself if the values are those of one.
    ///
    /// - Parameter layout: The entity of the object that the expression is about.
    /// - Returns: `.undefinedAttributeType` for the nil constant.
    func attributeType(in layout: EntityLayout) -> (type: NSAttributeType, attribute: NSAttributeDescription?) {
        switch self {
        case .attribute(let path, let attribute) where attribute.type != .entity:
            // Every schema of the framework's own is a layout.
            let owner = path.steps.last.map { $0.destination as? EntityLayout } ?? layout
            guard let slot = owner?.slots[attribute.slot] else { break }
            return (slot.type, slot.attribute)
        case .rowAggregate(let function, let operand):
            return Self.type(of: function, operand.attributeType(in: layout))
        case .aggregate(let aggregate):
            guard let element = aggregate.element,
                let destination = aggregate.collection.relationship.destination as? EntityLayout
            else { break }
            return Self.type(of: aggregate.function, element.attributeType(in: destination))
        default: break
        }
        return (NSAttributeType(type), nil)
    }

    private static func type(
        of function: PredefinedFunction,
        _ element: (type: NSAttributeType, attribute: NSAttributeDescription?)
    ) -> (type: NSAttributeType, attribute: NSAttributeDescription?) {
        switch (function, element.type) {
        case (.count, _): return (.integer64AttributeType, nil)
        case (.average, _): return (.doubleAttributeType, nil)
        case (.sum, .floatAttributeType), (.sum, .doubleAttributeType): return (.doubleAttributeType, nil)
        case (.sum, .decimalAttributeType): return (.decimalAttributeType, nil)
        case (.sum, _): return (.integer64AttributeType, nil)
        default: return element
        }
    }
}

extension NSAttributeType {
    /// The widest type of attribute for a type of expressions.
    init(_ type: ResolvedType) {
        switch type {
        case .null, .entity: self = .undefinedAttributeType
        case .bool: self = .booleanAttributeType
        case .integer: self = .integer64AttributeType
        case .double: self = .doubleAttributeType
        case .decimal: self = .decimalAttributeType
        case .date: self = .dateAttributeType
        case .string: self = .stringAttributeType
        case .uri: self = .URIAttributeType
        case .uuid: self = .UUIDAttributeType
        case .data, .transformable: self = .binaryDataAttributeType
        case .reference: self = .objectIDAttributeType
        }
    }

    /// Whether a value of an expression can be given as one of an attribute of this type.
    func canHold(_ type: ResolvedType) -> Bool {
        if type == .null { return true }
        switch self {
        case .undefinedAttributeType: return true
        case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType, .decimalAttributeType,
            .doubleAttributeType, .floatAttributeType, .booleanAttributeType, .dateAttributeType:
            return type.isNumeric || type == .date
        case .stringAttributeType: return type.isText || type.isNumeric
        case .URIAttributeType: return type.isText
        case .binaryDataAttributeType: return type == .data || type == .transformable
        case .transformableAttributeType: return type == .transformable
        case .UUIDAttributeType: return type == .uuid
        case .objectIDAttributeType: return type == .reference
        case .compositeAttributeType: return false
        }
    }
}
