import StrataRows

/// The derived attributes of a model for an in-memory store: the source of each, and the attributes that a changed row
/// makes out of date.
///
/// Derivations that the triggers of a SQLite store do not keep are not kept here either.
package final class DerivedPlan: Sendable {
    package struct Attribute: Sendable {
        package let slot: Slot
        /// The source of the value.
        ///
        /// It is `nil` for a derivation that stores do not keep; the value is then nil too.
        package let source: DerivedSource?
    }

    /// A relationship through which rows lead to a row that derives a value from them.
    package struct Dependants: Sendable {
        package let relationship: InMemoryContents.RelationshipKey
        /// The number of the root entity of the rows that derive something.
        package let root: Int
        /// The attribute that is read; `nil` for a count.
        package let attribute: Slot?
    }

    /// The derived attributes of each entity, by its number.
    package let attributes: [[Attribute]]
    /// The to-one relationships to owners that count or sum up such rows, by the number of the members' entity.
    package let owners: [[(reference: Slot, dependants: Dependants)]]
    /// The to-many relationships without an inverse whose owners sum up such rows, by the number of the members'
    /// entity.
    package let looseOwners: [[Dependants]]
    /// The to-one relationships through which other rows copy an attribute of such rows, by the number of their entity.
    package let copies: [[Dependants]]
    /// The to-one relationships without an inverse through which an attribute is copied.
    package let looseCopies: Set<InMemoryContents.RelationshipKey>

    /// The derived attributes of a model; `nil` if it has none.
    package init?(_ schema: Schema?) {
        guard let schema, schema.entities.contains(where: \.hasDerivedSlots) else { return nil }
        attributes =
            [[]]
            + schema.entities.map { layout in
                layout.slots.compactMap { slot in
                    guard slot.isDerived else { return nil }
                    return Attribute(slot: slot, source: DerivedSource(slot.traits?.derivation, layout))
                }
            }
        var builder = Builder(schema)
        for (layout, attributes) in zip(schema.entities, attributes.dropFirst()) {
            for attribute in attributes { builder.add(attribute, layout) }
        }
        owners = builder.owners
        looseOwners = builder.looseOwners
        copies = builder.copies
        looseCopies = builder.looseCopies
    }

    /// Collects the dependencies between attributes.
    private struct Builder {
        let schema: Schema
        var owners: [[(reference: Slot, dependants: Dependants)]]
        var looseOwners: [[Dependants]]
        var copies: [[Dependants]]
        var looseCopies: Set<InMemoryContents.RelationshipKey> = []

        init(_ schema: Schema) {
            self.schema = schema
            owners = Array(repeating: [], count: schema.entities.count + 1)
            looseOwners = Array(repeating: [], count: schema.entities.count + 1)
            copies = Array(repeating: [], count: schema.entities.count + 1)
        }

        mutating func add(_ attribute: Attribute, _ layout: EntityLayout) {
            switch attribute.source {
            case .count(let slot)?: add(over: slot, attribute: nil, of: layout)
            case .aggregate(_, let slot, let name)?: add(over: slot, attribute: name, of: layout)
            case .copy(let slot, let name)?:
                guard let relationship = slot.relationship else { return }
                let key = InMemoryContents.RelationshipKey(relationship)
                if relationship.inverse == nil { looseCopies.insert(key) }
                for destination in subtree(of: relationship.destination) {
                    guard let source = destination.slot(named: name) else { continue }
                    copies[destination.number].append(
                        Dependants(relationship: key, root: layout.rootNumber, attribute: source)
                    )
                }
            case .function?, .now?, nil: break
            }
        }

        private mutating func add(over slot: ToManySlot, attribute name: String?, of layout: EntityLayout) {
            let key = InMemoryContents.RelationshipKey(slot.relationship)
            for member in subtree(of: slot.relationship.destination) {
                let attribute = name.flatMap { member.slot(named: $0) }
                let dependants = Dependants(relationship: key, root: layout.rootNumber, attribute: attribute)
                if let inverse = slot.relationship.inverse {
                    guard let reference = member.slot(named: inverse.name), !inverse.isToMany else { continue }
                    owners[member.number].append((reference, dependants))
                } else if attribute != nil {
                    looseOwners[member.number].append(dependants)
                }
            }
        }

        private func subtree(of entity: EntityLayout?) -> [EntityLayout] {
            entity?.subtree.map { schema.entities[$0 - 1] } ?? []
        }
    }
}
