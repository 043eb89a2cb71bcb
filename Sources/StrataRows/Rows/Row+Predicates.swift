import Foundation
import StrataPredicates

extension Row {
    /// The value of an attribute, in the form that predicates compare.
    package func predicateValue(of attribute: PredicateAttribute) -> PredicateValue {
        guard attribute.slot >= 0 else { return .entity(layout.number) }
        let slot = layout.slots[attribute.slot]
        guard !isNull(slot.index) else { return .null }
        switch slot.kind {
        case .int: return .int(int(slot.word))
        case .double:
            let number = double(slot.word)
            if number.isNaN { return .null }
            return attribute.type == .date ? .date(number) : .double(number)
        case .string: return .string(string(slot.word))
        case .data: return .data(data(slot.word))
        case .uuid: return .uuid(uuid(slot.word))
        case .decimal: return .number(decimal(slot.word).nearestDouble)
        case .reference: return .null
        }
    }

    /// The destination of a to-one relationship.
    package func reference(of relationship: PredicateRelationship) -> ObjectReference? {
        reference(layout.slots[relationship.slot])
    }
}

extension PredicateRelationship {
    /// The number of the root of the destination's hierarchy.
    package var rootNumber: Int { (destination as? EntityLayout)?.rootNumber ?? 0 }
}
