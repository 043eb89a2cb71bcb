import StrataRows

// Values of the source that have no place in the destination.

extension MigrationMapper {
    /// The data that a migration would drop: the rows of dropped entities, and the values of dropped properties.
    ///
    /// Derived values are left out, because they can be computed again. Links are left out if they stay by the inverse of
    /// their relationship.
    ///
    /// - Complexity: O(properties of the source, with those that entities inherit), and for each relationship O(entities
    ///   at one end × entities at the other end).
    func losses() -> [RowCheck] {
        let kept = KeptProperties(pairs)
        return source.entities.flatMap { entity in
            [rowLoss(entity, kept)].compactMap(\.self) + slotLosses(entity, kept) + toManyLosses(entity, kept)
        }
    }

    /// The entities that are kept, and the new names of their properties.
    private struct KeptProperties {
        /// The new names by the former one, by the number of the entity.
        private var names: [Int: [String: [String]]] = [:]

        init(_ pairs: [MappedPair]) {
            for pair in pairs {
                names[pair.from.number] = Dictionary(grouping: pair.pair.names.keys) { pair.pair.names[$0] ?? "" }
            }
        }

        /// Whether an entity is kept.
        func keeps(_ entity: EntityMapping) -> Bool { names[entity.number] != nil }

        /// Whether an entity that is kept loses a property.
        func loses(_ name: String, _ entity: EntityMapping) -> Bool {
            names[entity.number].map { $0[name] == nil } ?? false
        }

        /// The entities to which a relationship of the objects of an entity leads from now on; empty if it goes.
        func destinations(_ relationship: Relationship, _ owner: MappedPair) -> [EntityLayout] {
            names[owner.from.number]?[relationship.name]?.compactMap { owner.to.layout.relationships[$0]?.destination }
                ?? []
        }
    }

    private func rowLoss(_ entity: EntityMapping, _ kept: KeptProperties) -> RowCheck? {
        guard !entity.layout.isAbstract, !kept.keeps(entity) else { return nil }
        return RowCheck(
            noRowOf: entity.table,
            where: "\(naming.entity) = \(entity.number)",
            entity: entity.layout.name,
            property: nil,
            reason: "the entity goes, with %d objects"
        )
    }

    private func slotLosses(_ entity: EntityMapping, _ kept: KeptProperties) -> [RowCheck] {
        let members = keptPairs(entity).map(\.from)
        return entity.layout.ownSlots.compactMap { slot in
            guard !slot.isDerived, let column = entity.columns[slot.index].name else { return nil }
            if let relationship = slot.relationship {
                return loss(of: relationship, in: entity.columns[slot.index], entity, kept)
            }
            let losing = members.filter { kept.loses(slot.name, $0) }
            guard !losing.isEmpty else { return nil }
            return RowCheck(
                noRowOf: entity.table,
                where: "\(naming.entity) IN (\(list(losing.map(\.number)))) AND \(column) IS NOT NULL",
                entity: entity.layout.name,
                property: slot.name,
                reason: "the attribute goes, with the values of %d objects"
            )
        }
    }

    // MARK: - Relationships

    /// Links of a relationship that have no place in the destination.
    private struct LostLinks {
        /// The numbers of the entities whose objects lose links.
        var owners: [Int]
        /// The numbers of the entities to whose objects they lose them; `nil` for all, because the relationship goes.
        let members: [Int]?
    }

    /// The links of a relationship that are lost; none if each of them stays, by the relationship or by its inverse.
    ///
    /// Links to objects of an entity that is dropped are lost together with these, which are another loss.
    private func lostLinks(_ relationship: Relationship, _ kept: KeptProperties) -> [LostLinks] {
        guard let owner = source.entity(relationship.entity),
            let target = relationship.destination.flatMap({ source.entity($0) })
        else { return [] }
        let members = keptPairs(target)
        let inverses = members.map { member in relationship.inverse.map { kept.destinations($0, member) } ?? [] }
        var lost: [LostLinks] = []
        for owner in keptPairs(owner) {
            let destinations = kept.destinations(relationship, owner)
            let others = zip(members, inverses).filter { member, inverse in
                !destinations.contains { member.to.layout.isKind(of: $0) }
                    && !inverse.contains { owner.to.layout.isKind(of: $0) }
            }
            let goes = destinations.isEmpty && others.count == members.count
            guard goes || !others.isEmpty else { continue }
            let numbers = goes ? nil : others.map(\.0.from.number)
            if let index = lost.firstIndex(where: { $0.members == numbers }) {
                lost[index].owners.append(owner.from.number)
            } else {
                lost.append(LostLinks(owners: [owner.from.number], members: numbers))
            }
        }
        return lost
    }

    /// The pairs of the entities of a subtree that can have objects, and are kept.
    private func keptPairs(_ entity: EntityMapping) -> [MappedPair] {
        pairs.filter { entity.subtree.contains($0.from.number) && !$0.from.layout.isAbstract }
    }

    private func loss(
        of relationship: Relationship,
        in column: SlotColumn,
        _ entity: EntityMapping,
        _ kept: KeptProperties
    ) -> RowCheck? {
        let lost = lostLinks(relationship, kept)
        guard let name = column.name, !lost.isEmpty else { return nil }
        let condition = condition(lost) {
            "\(naming.entity) IN (\($0))"
        } members: { numbers in
            // Without this column there is only one entity that the relationship can lead to.
            column.entity.map { "\($0) IN (\(numbers))" }
        }
        return RowCheck(
            noRowOf: entity.table,
            where: "\(condition) AND \(name) IS NOT NULL",
            entity: entity.layout.name,
            property: relationship.name,
            reason: reason(lost, "the values of %d objects", "%d objects have such a value")
        )
    }

    private func toManyLosses(_ entity: EntityMapping, _ kept: KeptProperties) -> [RowCheck] {
        entity.layout.ownToMany.compactMap { slot in
            let relationship = slot.relationship
            let lost = lostLinks(relationship, kept)
            guard !lost.isEmpty, let target = relationship.destination.flatMap({ source.entity($0) }),
                !keptPairs(target).isEmpty
            else { return nil }
            /// Whether all links are lost, whichever objects they are between.
            let isWhole = lost.count == 1 && lost[0].members == nil && lost[0].owners.count == keptPairs(entity).count
            let reason = reason(lost, "%d links", "there are %d such links")
            func keys(_ entity: EntityMapping, _ numbers: String) -> String {
                "(SELECT \(naming.key) FROM \(entity.table) WHERE \(naming.entity) IN (\(numbers)))"
            }
            func check(_ table: SQLName, where condition: String) -> RowCheck {
                RowCheck(
                    sql: "SELECT COUNT(*) FROM \(table) WHERE \(condition)",
                    entity: entity.layout.name,
                    property: slot.name,
                    reason: reason
                )
            }
            switch entity.toMany[slot.index] {
            case .join(let side):
                let isFirst = source.joinTables.contains { $0.name == side.table && $0.first == side.owner }
                guard isFirst else { return nil }
                if isWhole { return check(side.table, where: "1 = 1") }
                let condition = condition(lost) {
                    "\(side.owner) IN \(keys(entity, $0))"
                } members: {
                    "\(side.member) IN \(keys(target, $0))"
                }
                return check(side.table, where: condition)
            case .key(let key) where key.isWithoutInverse:
                guard !isWhole else {
                    return RowCheck(
                        noRowOf: key.table,
                        where: "\(key.column) IS NOT NULL",
                        entity: entity.layout.name,
                        property: slot.name,
                        reason: reason
                    )
                }
                let condition = condition(lost) {
                    "\(key.column) IN \(keys(entity, $0))"
                } members: {
                    "\(naming.entity) IN (\($0))"
                }
                return check(key.table, where: condition)
            case .key, .absent: return nil
            }
        }
    }

    /// The condition that a link is lost.
    ///
    /// - Parameters:
    ///   - lost: The links.
    ///   - owners: Returns the condition for owners whose entities have the numbers in a list.
    ///   - members: Returns the condition for members; `nil` if there is only one entity of members.
    /// - Returns: The condition.
    private func condition(
        _ lost: [LostLinks],
        owners: (String) -> String,
        members: (String) -> String?
    ) -> String {
        let conditions = lost.map { links in
            [owners(list(links.owners)), links.members.flatMap { members(list($0)) }].compactMap(\.self)
                .joined(separator: " AND ")
        }
        return conditions.count == 1 ? conditions[0] : "(\(conditions.joined(separator: " OR ")))"
    }

    /// The reason of a loss, with what is lost, or with how much of it there is.
    private func reason(_ lost: [LostLinks], _ lostLinks: String, _ count: String) -> String {
        guard lost.allSatisfy({ $0.members != nil }) else { return "the relationship goes, with \(lostLinks)" }
        let names = Set(lost.flatMap { $0.members ?? [] }).sorted().compactMap { number in
            source.entity(storeNumber: Int64(number))?.layout.name
        }
        return "the relationship does not lead to \(names.joined(separator: ", ")) any more, and \(count)"
    }

    private func list(_ numbers: [Int]) -> String { numbers.map(String.init).joined(separator: ", ") }
}
