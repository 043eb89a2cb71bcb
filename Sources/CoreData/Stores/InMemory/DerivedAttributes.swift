import StrataPredicates

/// The derived attributes of a model, as an in-memory store keeps them: what each is computed from, and what a changed row
/// makes out of date.
///
/// What the triggers of a SQLite store do not keep is not kept here either.
final class DerivedAttributes: Sendable {
    struct Attribute: Sendable {
        let slot: Slot
        /// `nil` for a derivation that stores do not keep: the value is nil.
        let source: Source?
    }

    enum Source: Sendable {
        case count(ToManySlot)
        case aggregate(PredefinedFunction, ToManySlot, attribute: String)
        case copy(Slot, attribute: String)
        case function(PredefinedFunction, Slot)
        case now
    }

    /// A relationship by which rows lead to one that derives something from it.
    struct Dependants: Sendable {
        let relationship: InMemoryContents.RelationshipKey
        /// The number of the root entity of the rows that derive something.
        let root: Int
        /// The attribute that is read; `nil` for a count.
        let attribute: Slot?
    }

    /// The derived attributes of each entity, by its number.
    let attributes: [[Attribute]]
    /// By the number of the members' entity: the to-one relationships to owners that count or sum up such rows.
    let owners: [[(reference: Slot, dependants: Dependants)]]
    /// By the number of the members' entity: the to-many relationships without an inverse whose owners sum up such rows.
    let looseOwners: [[Dependants]]
    /// By the number of an entity: the to-one relationships over which others copy an attribute of such rows.
    let copies: [[Dependants]]
    /// The to-one relationships without an inverse that something is copied over.
    let looseCopies: Set<InMemoryContents.RelationshipKey>

    /// The derived attributes of a model; `nil` if it has none.
    init?(_ model: FrozenModel?) {
        guard let model, model.layouts.contains(where: \.hasDerivedSlots) else { return nil }
        attributes =
            [[]]
            + model.layouts.map { layout in
                layout.slots.compactMap { slot in
                    guard let derived = slot.property as? NSDerivedAttributeDescription else { return nil }
                    return Attribute(slot: slot, source: Self.source(derived, layout))
                }
            }
        var builder = Builder(model)
        for (layout, attributes) in zip(model.layouts, attributes.dropFirst()) {
            for attribute in attributes { builder.add(attribute, layout) }
        }
        owners = builder.owners
        looseOwners = builder.looseOwners
        copies = builder.copies
        looseCopies = builder.looseCopies
    }

    private static func source(_ attribute: NSDerivedAttributeDescription, _ layout: EntityLayout) -> Source? {
        switch attribute.derivationText.flatMap(Derivation.init) {
        case .aggregate(.count, let relationship, _)?: return layout.toMany(named: relationship).map { .count($0) }
        case .aggregate(let aggregate, let relationship, let attribute?)?:
            guard let slot = layout.toMany(named: relationship),
                slot.relationship.inverseRelationship?.isToMany != true
            else { return nil }
            return .aggregate(aggregate.predefined, slot, attribute: attribute)
        case .copy(let relationship, let attribute)?:
            guard let slot = layout.slot(named: relationship), slot.kind == .reference else { return nil }
            return .copy(slot, attribute: attribute)
        case .function(let function, let attribute)?:
            return layout.slot(named: attribute).map { .function(function.predefined, $0) }
        case .now?: return .now
        case .aggregate(_, _, nil)?, nil: return nil
        }
    }

    /// Gathers what depends on what.
    private struct Builder {
        let model: FrozenModel
        var owners: [[(reference: Slot, dependants: Dependants)]]
        var looseOwners: [[Dependants]]
        var copies: [[Dependants]]
        var looseCopies: Set<InMemoryContents.RelationshipKey> = []

        init(_ model: FrozenModel) {
            self.model = model
            owners = Array(repeating: [], count: model.layouts.count + 1)
            looseOwners = Array(repeating: [], count: model.layouts.count + 1)
            copies = Array(repeating: [], count: model.layouts.count + 1)
        }

        mutating func add(_ attribute: Attribute, _ layout: EntityLayout) {
            switch attribute.source {
            case .count(let slot)?: add(slot, nil, layout)
            case .aggregate(_, let slot, let name)?: add(slot, name, layout)
            case .copy(let slot, let name)?:
                guard let relationship = slot.relationship else { return }
                let key = InMemoryContents.RelationshipKey(relationship)
                if relationship.inverseRelationship == nil { looseCopies.insert(key) }
                for destination in subtree(of: relationship.destinationEntity) {
                    guard let source = destination.slot(named: name) else { continue }
                    copies[destination.number].append(
                        Dependants(relationship: key, root: layout.rootNumber, attribute: source)
                    )
                }
            case .function?, .now?, nil: break
            }
        }

        private mutating func add(_ slot: ToManySlot, _ name: String?, _ layout: EntityLayout) {
            let key = InMemoryContents.RelationshipKey(slot.relationship)
            for member in subtree(of: slot.relationship.destinationEntity) {
                let attribute = name.flatMap { member.slot(named: $0) }
                let dependants = Dependants(relationship: key, root: layout.rootNumber, attribute: attribute)
                if let inverse = slot.relationship.inverseRelationship {
                    guard let reference = member.slot(named: inverse.name), !inverse.isToMany else { continue }
                    owners[member.number].append((reference, dependants))
                } else if attribute != nil {
                    looseOwners[member.number].append(dependants)
                }
            }
        }

        private func subtree(of entity: NSEntityDescription?) -> [EntityLayout] {
            entity?.frozen.subtree.map { model.layouts[$0 - 1] } ?? []
        }
    }
}

extension Derivation.Aggregate {
    /// The function of predicates that computes it.
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
