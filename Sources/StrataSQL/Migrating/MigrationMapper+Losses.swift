import StrataRows

// Values of the source that have no place in the destination.

extension MigrationMapper {
    /// The data that a migration would drop: the rows of dropped entities, and the values of dropped properties.
    ///
    /// Derived values are left out, because they can be computed again. A relationship is left out if its inverse is
    /// kept, which has the same members.
    ///
    /// - Complexity: O(properties of the source, with those that entities inherit).
    func losses() -> [RowCheck] {
        let kept = KeptProperties(pairs)
        return source.entities.flatMap { entity in
            [rowLoss(entity, kept)].compactMap(\.self) + slotLosses(entity, kept) + toManyLosses(entity, kept)
        }
    }

    /// The entities that are kept, and the names of their properties that are kept.
    private struct KeptProperties {
        /// The names by the number of the entity.
        private var names: [Int: Set<String>] = [:]
        /// By the number of an entity, the names that an entity of its subtree keeps.
        private var namesInSubtree: [Int: Set<String>] = [:]

        init(_ pairs: [MappedPair]) {
            for pair in pairs {
                let own = Set(pair.pair.names.values)
                names[pair.from.number] = own
                var entity: EntityLayout? = pair.from.layout
                while let next = entity {
                    namesInSubtree[next.number, default: []].formUnion(own)
                    entity = next.parent
                }
            }
        }

        /// The names of the properties that an entity keeps; `nil` if the entity is dropped.
        subscript(_ number: Int) -> Set<String>? { names[number] }

        /// Whether a relationship, or its inverse, is kept.
        func contains(_ relationship: Relationship) -> Bool {
            [relationship, relationship.inverse].compactMap(\.self).contains { side in
                namesInSubtree[side.entity.number]?.contains(side.name) ?? false
            }
        }

        /// Whether an entity, or a sub-entity, is kept.
        func contains(_ entity: EntityLayout) -> Bool { namesInSubtree[entity.number] != nil }
    }

    private func rowLoss(_ entity: EntityMapping, _ kept: KeptProperties) -> RowCheck? {
        guard !entity.layout.isAbstract, kept[entity.number] == nil else { return nil }
        return RowCheck(
            noRowOf: entity.table,
            where: "\(naming.entity) = \(entity.number)",
            entity: entity.layout.name,
            property: nil,
            reason: "the entity goes, with %d objects"
        )
    }

    private func slotLosses(_ entity: EntityMapping, _ kept: KeptProperties) -> [RowCheck] {
        let members = pairs.map(\.from).filter { entity.subtree.contains($0.number) && !$0.layout.isAbstract }
        return entity.layout.ownSlots.compactMap { slot in
            guard !slot.isDerived, let column = entity.columns[slot.index].name else { return nil }
            if let relationship = slot.relationship, kept.contains(relationship) { return nil }
            let losing = members.filter { kept[$0.number]?.contains(slot.name) == false }
            guard !losing.isEmpty else { return nil }
            let numbers = losing.map { "\($0.number)" }.joined(separator: ", ")
            return RowCheck(
                noRowOf: entity.table,
                where: "\(naming.entity) IN (\(numbers)) AND \(column) IS NOT NULL",
                entity: entity.layout.name,
                property: slot.name,
                reason:
                    "the \(slot.kind == .reference ? "relationship" : "attribute") goes, with the values of %d objects"
            )
        }
    }

    private func toManyLosses(_ entity: EntityMapping, _ kept: KeptProperties) -> [RowCheck] {
        entity.layout.ownToMany.compactMap { slot in
            let relationship = slot.relationship
            // Members of an entity whose rows are dropped are lost together with these rows.
            guard !kept.contains(relationship), kept.contains(relationship.entity),
                relationship.destination.map(kept.contains) ?? false
            else { return nil }
            let reason = "the relationship goes, with %d links"
            switch entity.toMany[slot.index] {
            case .join(let side):
                let isFirst = source.joinTables.contains { $0.name == side.table && $0.first == side.owner }
                guard isFirst else { return nil }
                return RowCheck(
                    sql: "SELECT COUNT(*) FROM \(side.table)",
                    entity: entity.layout.name,
                    property: slot.name,
                    reason: reason
                )
            case .key(let key) where key.isWithoutInverse:
                return RowCheck(
                    noRowOf: key.table,
                    where: "\(key.column) IS NOT NULL",
                    entity: entity.layout.name,
                    property: slot.name,
                    reason: reason
                )
            case .key, .absent: return nil
            }
        }
    }
}
