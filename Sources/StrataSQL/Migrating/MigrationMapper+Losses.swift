import StrataRows

// Values of the source that have no place in the destination.

extension MigrationMapper {
    /// What a migration would drop: the rows of entities that go, and values of properties that go.
    ///
    /// Derived values are left out, as they can be computed again. So are relationships whose inverse goes on, which has the same members.
    func losses() -> [RowCheck] {
        source.entities.flatMap { [rowLoss($0)].compactMap(\.self) + slotLosses($0) + toManyLosses($0) }
    }

    private func rowLoss(_ entity: EntityMapping) -> RowCheck? {
        guard !entity.layout.isAbstract, !pairs.contains(where: { $0.from.number == entity.number }) else { return nil }
        return RowCheck(
            sql: "SELECT COUNT(*) FROM \(entity.table) WHERE \(naming.entity) = \(entity.number)",
            entity: entity.layout.name,
            property: nil,
            reason: "the entity goes, with %d objects"
        )
    }

    private func slotLosses(_ entity: EntityMapping) -> [RowCheck] {
        entity.layout.ownSlots.compactMap { slot in
            guard !slot.isDerived, let column = entity.columns[slot.index].name else { return nil }
            if let relationship = slot.relationship, isKept(relationship) { return nil }
            let losing = pairs.filter { pair in
                entity.subtree.contains(pair.from.number) && !pair.from.layout.isAbstract
                    && !pair.pair.names.values.contains(slot.name)
            }
            guard !losing.isEmpty else { return nil }
            let numbers = losing.map { "\($0.from.number)" }.joined(separator: ", ")
            return RowCheck(
                sql:
                    "SELECT COUNT(*) FROM \(entity.table) WHERE \(naming.entity) IN (\(numbers)) AND \(column) IS NOT NULL",
                entity: entity.layout.name,
                property: slot.name,
                reason: "the \(slot.kind == .reference ? "relationship" : "attribute") goes, with the values of %d objects"
            )
        }
    }

    private func toManyLosses(_ entity: EntityMapping) -> [RowCheck] {
        entity.layout.ownToMany.compactMap { slot in
            let relationship = slot.relationship
            // Members of an entity whose rows go are lost with these.
            guard !isKept(relationship), hasPair(relationship.entity), relationship.destination.map(hasPair) ?? false
            else { return nil }
            let sql: String
            switch entity.toMany[slot.index] {
            case .join(let side):
                let isFirst = source.joinTables.contains { $0.name == side.table && $0.first == side.owner }
                guard isFirst else { return nil }
                sql = "SELECT COUNT(*) FROM \(side.table)"
            case .key(let key) where key.isWithoutInverse:
                sql = "SELECT COUNT(*) FROM \(key.table) WHERE \(key.column) IS NOT NULL"
            case .key, .absent: return nil
            }
            return RowCheck(
                sql: sql,
                entity: entity.layout.name,
                property: slot.name,
                reason: "the relationship goes, with %d links"
            )
        }
    }

    /// Whether a relationship of the source, or its inverse, goes on.
    private func isKept(_ relationship: Relationship) -> Bool {
        [relationship, relationship.inverse].compactMap(\.self).contains { side in
            pairs.contains { $0.from.layout.isKind(of: side.entity) && $0.pair.names.values.contains(side.name) }
        }
    }

    private func hasPair(_ entity: EntityLayout) -> Bool { pairs.contains { $0.from.layout.isKind(of: entity) } }
}
