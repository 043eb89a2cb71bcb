import StrataRows

/// A relationship with a delete rule, as it is stored in tables.
package struct StoredLink {
    package let link: DeleteLink
    package let owner: EntityMapping
    package let destination: EntityMapping
    package let place: Place
    /// The column of the relationship at the other end, if that is a to-one relationship.
    package let inverseColumn: SlotColumn?

    /// The place of the relationship.
    package enum Place {
        /// A column of the owner's row.
        case column(SlotColumn)
        case toMany(ToManyMapping)
    }

    /// Returns `nil` for a relationship that the store does not hold.
    package init?(_ link: DeleteLink, _ mapping: SQLMapping) {
        guard let owner = mapping.entity(link.owner), let destination = mapping.entity(link.destination) else {
            return nil
        }
        switch link.owner.places[link.name] {
        case .slot(let index):
            guard owner.columns[index].name != nil else { return nil }
            place = .column(owner.columns[index])
        case .toMany(let index):
            if case .absent = owner.toMany[index] { return nil }
            place = .toMany(owner.toMany[index])
        default: return nil
        }
        let inverse = link.inverse.flatMap { $0.isToMany || $0.isTransient ? nil : destination.column(named: $0.name) }
        inverseColumn = inverse?.name == nil ? nil : inverse
        self.link = link
        self.owner = owner
        self.destination = destination
    }

    /// Whether a deletion needs more work than deleting the row.
    ///
    /// A history also records the owners of the relationship.
    package func needsWork(isRecorded: Bool) -> Bool {
        switch link.relationship.deleteRule {
        case .cascade, .deny: return true
        case .nullify where inverseColumn != nil: return true
        default: break
        }
        switch place {
        case .column(let column): return column.order != nil || (isRecorded && link.inverse?.isToMany == true)
        case .toMany(.join): return true
        case .toMany(.key(let key)): return key.isWithoutInverse
        case .toMany(.absent): return false
        }
    }
}

extension SQLMapping {
    /// The to-one relationships without an inverse, which no delete rule can clear.
    package var looseLinks: [LooseLink] {
        entities.flatMap { owner in
            owner.layout.referenceSlots.compactMap { slot in
                guard let relationship = slot.relationship, relationship.inverse == nil,
                    relationship.entity === owner.layout, let column = owner.columns[slot.index].name,
                    let destination = entity(modelNumber: slot.destinationNumber)
                else { return nil }
                return LooseLink(
                    relationship: relationship,
                    owner: owner,
                    column: column,
                    destinationRoot: destination.rootNumber
                )
            }
        }
    }

    /// Whether relationships need work if rows of an entity are deleted.
    ///
    /// A history also records their owners.
    package func needsWork(deleting entity: EntityMapping, isRecorded: Bool) -> Bool {
        entity.layout.deleteLinks.contains { StoredLink($0, self)?.needsWork(isRecorded: isRecorded) == true }
            || looseLinks.contains { $0.destinationRoot == entity.rootNumber }
    }
}

/// A to-one relationship that no delete rule can clear, because it has no inverse.
package struct LooseLink {
    package let relationship: Relationship
    package let owner: EntityMapping
    package let column: SQLName
    /// The number of the destination's root in the store.
    package let destinationRoot: Int
}
