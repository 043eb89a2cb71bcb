import StrataPredicates

/// The type of an attribute that has the values of an expression, and the attribute itself if there is one.
package struct AttributeOfValue {
    package let type: AttributeType
    /// The description that the layer above has for the attribute, if the values are those of one.
    package let description: (AnyObject & Sendable)?

    init(_ type: AttributeType, _ description: (AnyObject & Sendable)?) {
        self.type = type
        self.description = description
    }
}

extension ResolvedExpression {
    /// The type of an attribute that has the values of the expression, and the attribute itself if there is one.
    ///
    /// - Parameter layout: The entity of the object that the expression is about.
    /// - Returns: `.undefined` for the nil constant.
    package func attributeType(in layout: EntityLayout) -> AttributeOfValue {
        switch self {
        case .attribute(let path, let attribute) where attribute.type != .entity:
            // The framework's own schemas are always layouts.
            let owner = path.steps.last.map { $0.destination as? EntityLayout } ?? layout
            guard let slot = owner?.slots[attribute.slot] else { break }
            return AttributeOfValue(slot.type, slot.description)
        case .rowAggregate(let function, let operand):
            return Self.type(of: function, operand.attributeType(in: layout))
        case .aggregate(let aggregate):
            guard let element = aggregate.element,
                let destination = aggregate.collection.relationship.destination as? EntityLayout
            else { break }
            return Self.type(of: aggregate.function, element.attributeType(in: destination))
        default: break
        }
        return AttributeOfValue(AttributeType(type), nil)
    }

    private static func type(
        of function: PredefinedFunction,
        _ element: AttributeOfValue
    ) -> AttributeOfValue {
        switch (function, element.type) {
        case (.count, _): return AttributeOfValue(.integer64, nil)
        case (.average, _): return AttributeOfValue(.double, nil)
        case (.sum, .float), (.sum, .double): return AttributeOfValue(.double, nil)
        case (.sum, .decimal): return AttributeOfValue(.decimal, nil)
        case (.sum, _): return AttributeOfValue(.integer64, nil)
        default: return element
        }
    }
}

extension AttributeType {
    /// The widest attribute type for a type of expression.
    package init(_ type: ResolvedType) {
        switch type {
        case .null, .composite, .entity: self = .undefined
        case .bool: self = .boolean
        case .integer: self = .integer64
        case .double: self = .double
        case .decimal: self = .decimal
        case .date: self = .date
        case .string: self = .string
        case .uri: self = .uri
        case .uuid: self = .uuid
        case .data, .transformable: self = .data
        case .reference: self = .objectID
        }
    }
}
