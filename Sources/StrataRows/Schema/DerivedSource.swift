import StrataPredicates

/// The source of a derived attribute's value, as properties of its entity.
///
/// If the triggers of a SQLite store cannot keep a derivation, it has no source in other engines either.
package enum DerivedSource: Sendable {
    case count(ToManySlot)
    case aggregate(PredefinedFunction, ToManySlot, attribute: String)
    case copy(Slot, attribute: String)
    case function(PredefinedFunction, Slot)
    case now

    package init?(_ derivation: Derivation?, _ layout: EntityLayout) {
        switch derivation {
        case .aggregate(.count, let relationship, _)?:
            guard let slot = layout.toMany(named: relationship) else { return nil }
            self = .count(slot)
        case .aggregate(let aggregate, let relationship, let attribute?)?:
            guard let slot = layout.toMany(named: relationship), slot.relationship.inverse?.isToMany != true else {
                return nil
            }
            self = .aggregate(aggregate.predefined, slot, attribute: attribute)
        case .copy(let relationship, let attribute)?:
            guard let slot = layout.slot(named: relationship), slot.kind == .reference else { return nil }
            self = .copy(slot, attribute: attribute)
        case .function(let function, let attribute)?:
            guard let slot = layout.slot(named: attribute) else { return nil }
            self = .function(function.predefined, slot)
        case .now?: self = .now
        case .aggregate(_, _, nil)?, nil: return nil
        }
    }
}

extension Derivation.Aggregate {
    /// The predicate function that computes it.
    fileprivate var predefined: PredefinedFunction {
        switch self {
        case .count: .count
        case .sum: .sum
        case .min: .min
        case .max: .max
        case .average: .average
        }
    }
}
