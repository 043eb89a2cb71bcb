import StrataPredicates
import StrataRows

extension ModelValidation {
    /// Whether a default value has the attribute's type, and is within its range.
    func accepts(_ value: Any, as type: NSAttributeDescription.AttributeType) -> Bool {
        guard type.rawValue.isOfClass(value) else { return false }
        let rows = AttributeType(type.rawValue)
        return rows.slotKind != .int || Self.integer(value).map(rows.hasRoom) == true
    }

    /// Whether a value is a number if its type requires one; NaN, which databases keep as nil, is none.
    func isNumber(_ value: Any, as type: NSAttributeDescription.AttributeType) -> Bool {
        guard type != .transformable, type != .undefined else { return true }
        return switch value {
        case let date as Date: !date.timeIntervalSinceReferenceDate.isNaN
        case let number as NSNumber: !number.doubleValue.isNaN
        case let decimal as Decimal: !decimal.isNaN
        default: true
        }
    }

    private static func integer(_ value: Any) -> Int64? {
        guard let number = value as? NSNumber else { return nil }
        let integer = number.int64Value
        // Fractions, and numbers that are too large, have no integer.
        return number.compare(NSNumber(value: integer)) == .orderedSame ? integer : nil
    }

    /// The first unknown step in the key paths of a derivation; `nil` if all steps are known.
    func missingStep(in derivation: NSExpression, of entity: NSEntityDescription, depth: Int = 0) -> String? {
        guard depth < 50 else { return nil }
        switch derivation.expressionType {
        case .keyPath: return missingStep(inPath: derivation.keyPath, of: entity)
        case .function:
            for argument in derivation.arguments ?? [] {
                if let missing = missingStep(in: argument, of: entity, depth: depth + 1) { return missing }
            }
            return nil
        default: return nil
        }
    }

    private func missingStep(inPath path: String, of entity: NSEntityDescription) -> String? {
        var current: NSEntityDescription? = entity
        for step in path.split(separator: ".").map(String.init) where !step.hasPrefix("@") {
            // After an attribute follow the elements of a composite attribute; any other step is found by the check of
            // the type.
            guard let properties = current?.propertiesByName else { return nil }
            guard let property = properties[step] else { return step }
            current = (property as? NSRelationshipDescription)?.destinationEntity
        }
        return nil
    }
}
