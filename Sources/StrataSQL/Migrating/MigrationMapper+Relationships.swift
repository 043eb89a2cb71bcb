import StrataRows

// This moves relationships between foreign keys and join tables.

/// Selects the pairs of one relationship in the file before the migration.
///
/// The columns are the owner `o`, the member `m`, the position `fo` of the member among the owner's members, and the
/// position `fi` of the owner among the member's.
struct Link {
    let sql: String
    /// The join table that has the pairs, seen from the owner; `nil` if they are not in one.
    let join: (table: SQLJoinTable, owner: SQLName, member: SQLName, order: SQLName?, inverseOrder: SQLName?)?
    /// Whether pairs are left out.
    let isFiltered: Bool
    /// The entity of the members, in the source.
    let members: EntityMapping
    /// Whether an owner, or a member, is in at most one pair.
    let isSingle: (owner: Bool, member: Bool)

    static func union(_ links: [Link]) -> String? {
        links.isEmpty ? nil : links.map(\.sql).joined(separator: " UNION ALL ")
    }
}

extension MigrationMapper {
    /// The part of a to-one relationship in a column.
    enum ReferencePart {
        case key, entity, order
    }

    /// The value for a column of a to-one relationship.
    func reference(of row: MappedPair, in slot: Slot, part: ReferencePart) -> MigratedValue {
        guard let relationship = slot.relationship, let target = destination.entity(modelNumber: slot.destinationNumber)
        else { return .null }
        if let old = row.pair.source(of: slot), old.kind == .reference, let key = row.from.columns[old.index].name,
            let oldTarget = source.entity(modelNumber: old.destinationNumber)
        {
            return reference(
                in: row.from.columns[old.index],
                key: key,
                to: successors(of: oldTarget, in: target),
                part: part
            )
        }
        let links = links(relationship, ownedBy: [row])
        guard let pairs = Link.union(links), let members = links.first?.members else { return .null }
        let found = "SELECT m FROM (\(pairs)) AS p WHERE o = t.\(naming.key) ORDER BY m LIMIT 1"
        switch part {
        case .key: return .query(found)
        case .entity:
            let arms = successors(of: members, in: target).map { "WHEN \($0.from) THEN \($0.to ?? 0)" }
            return .query(
                "SELECT CASE x.\(naming.entity) \(arms.joined(separator: " ")) END FROM \(members.table) AS x WHERE x.\(naming.key) = (\(found))"
            )
        case .order:
            return .query(
                "SELECT COALESCE(fi, (t.\(naming.key) + 1) * 1024) FROM (\(pairs)) AS p WHERE o = t.\(naming.key) ORDER BY m LIMIT 1"
            )
        }
    }

    private func reference(
        in column: SlotColumn,
        key: SQLName,
        to targets: [(from: Int, to: Int?)],
        part: ReferencePart
    ) -> MigratedValue {
        let lost = targets.filter { $0.to == nil }.map { "\($0.from)" }
        if lost.count == targets.count { return .null }
        let isLost = lost.isEmpty ? nil : column.entity.map { "\($0) IN (\(lost.joined(separator: ", ")))" }
        /// A column that loses its value together with the reference.
        func unlessLost(_ name: SQLName) -> MigratedValue {
            guard let isLost else { return .column(name) }
            return .expression("CASE WHEN \(isLost) THEN NULL ELSE \(name) END", base: name, isStrict: true)
        }
        switch part {
        case .key: return unlessLost(key)
        case .entity:
            guard let entity = column.entity else {
                let number = targets.compactMap(\.to).first ?? 0
                return .expression("CASE WHEN \(key) IS NOT NULL THEN \(number) END", base: nil)
            }
            if targets.allSatisfy({ $0.from == $0.to }) { return .column(entity) }
            let arms = targets.compactMap { target in target.to.map { "WHEN \(target.from) THEN \($0)" } }
            return .expression("CASE \(entity) \(arms.joined(separator: " ")) END", base: entity, isStrict: true)
        case .order:
            if let order = column.order { return unlessLost(order) }
            let stays = isLost.map { " AND NOT (\($0))" } ?? ""
            return .expression("CASE WHEN \(key) IS NOT NULL\(stays) THEN (\(naming.key) + 1) * 1024 END", base: nil)
        }
    }

    /// The new numbers of the entities that a relationship can lead to; `nil` for those whose rows are dropped.
    private func successors(of old: EntityMapping, in target: EntityMapping) -> [(from: Int, to: Int?)] {
        old.subtree.compactMap { number in
            guard let entity = source.entity(storeNumber: Int64(number)), !entity.layout.isAbstract else { return nil }
            let pair = pairs.first { $0.from.number == number }
            return (number, pair.flatMap { target.subtree.contains($0.to.number) ? $0.to.number : nil })
        }
    }

    // MARK: - Pairs

    /// The places of a relationship's pairs; empty if it has none at first.
    func links(_ relationship: Relationship, ownedBy owners: [MappedPair]? = nil) -> [Link] {
        let owners = owners ?? pairs.filter { $0.to.layout.isKind(of: relationship.entity) }
        let own = links(relationship, owners, isReversed: false)
        if !own.isEmpty { return own }
        // A new relationship may be the inverse of one that existed.
        guard let inverse = relationship.inverse, inverse !== relationship else { return [] }
        return links(inverse, pairs.filter { $0.to.layout.isKind(of: inverse.entity) }, isReversed: true)
    }

    private func links(_ relationship: Relationship, _ owners: [MappedPair], isReversed: Bool) -> [Link] {
        var found: [(relationship: Relationship, owners: [MappedPair])] = []
        for owner in owners {
            guard let old = owner.pair.source(of: relationship), !old.isTransient else { continue }
            if let index = found.firstIndex(where: { $0.relationship === old }) {
                found[index].owners.append(owner)
            } else {
                found.append((old, [owner]))
            }
        }
        return found.compactMap {
            link(to: $0.relationship, of: $0.owners, now: relationship.destination, isReversed: isReversed)
        }
    }

    /// The pairs of a relationship of the source.
    ///
    /// - Parameters:
    ///   - old: The relationship.
    ///   - owners: The entities of the owners.
    ///   - destination: The entity that the relationship leads to from now on.
    ///   - isReversed: Whether the members are the owners.
    /// - Returns: The pairs; `nil` if they are not stored.
    private func link(
        to old: Relationship,
        of owners: [MappedPair],
        now destination: EntityLayout?,
        isReversed: Bool
    ) -> Link? {
        guard let owner = source.entity(old.entity), let target = old.destination.flatMap({ source.entity($0) }) else {
            return nil
        }
        var columns: (owner: String, member: String, order: String?, inverseOrder: String?)
        var table: SQLName
        var join: (table: SQLJoinTable, owner: SQLName, member: SQLName, order: SQLName?, inverseOrder: SQLName?)?
        if let slot = owner.layout.slot(named: old.name) {
            let column = owner.columns[slot.index]
            guard let key = column.name else { return nil }
            table = owner.table
            columns = (naming.key.description, key.description, nil, column.order?.description)
        } else if let slot = owner.layout.toMany(named: old.name) {
            switch owner.toMany[slot.index] {
            case .key(let key):
                table = key.table
                columns = (key.column.description, naming.key.description, key.order?.description, nil)
            case .join(let side):
                guard let found = source.joinTables.first(where: { $0.name == side.table }) else { return nil }
                table = side.table
                columns = (
                    side.owner.description, side.member.description, side.order?.description,
                    side.inverseOrder?.description
                )
                join =
                    isReversed
                    ? (found, side.member, side.owner, side.inverseOrder, side.order)
                    : (found, side.owner, side.member, side.order, side.inverseOrder)
            case .absent: return nil
            }
        } else {
            return nil
        }
        // It has a type, because some databases require one.
        let absent = "CAST(NULL AS bigint)"
        var sql =
            "SELECT \(columns.owner) AS o, \(columns.member) AS m, \(columns.order ?? absent) AS fo, \(columns.inverseOrder ?? absent) AS fi FROM \(table) WHERE \(columns.owner) IS NOT NULL AND \(columns.member) IS NOT NULL"
        // Pairs are left out if one of the rows is dropped, or no longer belongs to the entity at its end.
        let kept = Set(owners.map(\.from.number))
        let ends = [(columns.owner, owner, kept), (columns.member, target, survivors(target, in: destination))]
        var isFiltered = false
        for (column, entity, kept) in ends {
            let all = entity.subtree.filter {
                source.entity(storeNumber: Int64($0)).map { !$0.layout.isAbstract } ?? false
            }
            guard !all.allSatisfy(kept.contains) else { continue }
            isFiltered = true
            let numbers = kept.sorted().map(String.init).joined(separator: ", ")
            sql +=
                kept.isEmpty
                ? " AND 1 = 0"
                : " AND \(column) IN (SELECT \(naming.key) FROM \(entity.table) WHERE \(naming.entity) IN (\(numbers)))"
        }
        if isReversed { sql = "SELECT m AS o, o AS m, fi AS fo, fo AS fi FROM (\(sql)) AS p" }
        let single = (owner: !old.isToMany, member: old.inverse.map { !$0.isToMany } ?? old.isToMany)
        return Link(
            sql: sql,
            join: join,
            isFiltered: isFiltered,
            members: isReversed ? owner : target,
            isSingle: isReversed ? (single.member, single.owner) : single
        )
    }

    /// The numbers of the entities of a subtree whose rows belong to an entity of the destination.
    private func survivors(_ entity: EntityMapping, in destination: EntityLayout?) -> Set<Int> {
        guard let destination else { return [] }
        let kept = pairs.filter { entity.subtree.contains($0.from.number) && $0.to.layout.isKind(of: destination) }
        return Set(kept.map(\.from.number))
    }

    // MARK: - Keys of owners without an inverse

    /// Fills the columns of to-many relationships without an inverse in a table of members.
    mutating func addInverseless(
        to table: SQLTable,
        from rows: [MappedPair],
        into values: inout [SQLName: MigratedValue]
    ) {
        for entity in destination.entities {
            for slot in entity.layout.ownToMany {
                guard case .key(let key) = entity.toMany[slot.index], key.isWithoutInverse, key.table == table.name
                else {
                    continue
                }
                let links = links(slot.relationship)
                guard let pairs = Link.union(links) else { continue }
                if links.count == 1, !links[0].isFiltered, let old = plainKey(slot.relationship, rows) {
                    values[key.column] = .column(old.column)
                    if let order = key.order {
                        values[order] =
                            old.order.map { .column($0) }
                            ?? .expression(
                                "CASE WHEN \(old.column) IS NOT NULL THEN (\(naming.key) + 1) * 1024 END",
                                base: nil
                            )
                    }
                    continue
                }
                let found = "FROM (\(pairs)) AS p WHERE m = t.\(naming.key) ORDER BY o LIMIT 1"
                values[key.column] = .query("SELECT o \(found)")
                if let order = key.order {
                    values[order] = .query("SELECT COALESCE(fo, (t.\(naming.key) + 1) * 1024) \(found)")
                }
                if links.count > 1 || links.contains(where: { !$0.isSingle.member }) {
                    add(
                        RowCheck(
                            sql:
                                "SELECT COUNT(*) FROM (SELECT 1 FROM (\(pairs)) AS p GROUP BY m HAVING COUNT(DISTINCT o) > 1) AS q",
                            entity: entity.layout.name,
                            property: slot.name,
                            reason:
                                "%d objects have several owners, but the relationship has no inverse, so each can have one only"
                        )
                    )
                }
            }
        }
    }

    /// The column that already has the keys of the owners, in the table that the rows come from.
    private func plainKey(_ relationship: Relationship, _ rows: [MappedPair]) -> ToManyMapping.KeyColumn? {
        for pair in pairs where pair.to.layout.isKind(of: relationship.entity) {
            guard let old = pair.pair.source(of: relationship), let slot = pair.from.layout.toMany(named: old.name),
                case .key(let key) = pair.from.toMany[slot.index], key.isWithoutInverse,
                key.table == rows.first?.from.table
            else { continue }
            return key
        }
        return nil
    }

    // MARK: - Conditions that rows must fulfil

    /// Checks that no row has more than one member, if a to-many relationship becomes a to-one.
    mutating func checkSingle(_ slot: Slot, of entity: EntityMapping, in rows: [MappedPair]) {
        guard let relationship = slot.relationship else { return }
        let owners = rows.filter { entity.subtree.contains($0.to.number) }
        let links = links(relationship, ownedBy: owners)
        guard links.contains(where: { !$0.isSingle.owner }), let pairs = Link.union(links) else { return }
        add(
            RowCheck(
                sql:
                    "SELECT COUNT(*) FROM (SELECT 1 FROM (\(pairs)) AS p GROUP BY o HAVING COUNT(DISTINCT m) > 1) AS q",
                entity: entity.layout.name,
                property: slot.name,
                reason:
                    "%d objects have more than one object there, but the relationship becomes one to a single object"
            )
        )
    }

    /// Checks that rows have the required values and entities.
    mutating func checkRows() {
        for pair in pairs where !pair.from.layout.isAbstract {
            let table = pair.from.table
            let rows = "\(naming.entity) = \(pair.from.number)"
            let entity = pair.to.layout
            guard !entity.isAbstract else {
                add(
                    RowCheck(
                        noRowOf: table,
                        where: rows,
                        entity: entity.name,
                        property: nil,
                        reason: "there are %d objects of this entity, which becomes abstract"
                    )
                )
                continue
            }
            for slot in entity.slots where slot.kind != .reference && !slot.isOptional && !slot.isDerived {
                var rows = rows
                let whole = entity.optionalElements[slot.index]
                guard (whole == nil ? entity.defaults : entity.elementDefaults).isNull(slot.index) else { continue }
                if let whole {
                    // If the composite attribute has no value, its elements need none.
                    let known = formerColumns(pair, whole)
                    guard !known.isEmpty else { continue }
                    rows += " AND " + MigratedValue.hasAny(known)
                }
                guard let (column, old) = formerColumn(pair, slot) else {
                    add(
                        RowCheck(
                            noRowOf: table,
                            where: rows,
                            entity: entity.name,
                            property: slot.name,
                            reason:
                                "missing attribute values on mandatory destination attribute: it is new and required, has no default value, and there are %d objects"
                        )
                    )
                    continue
                }
                let mayLack = whole == nil && pair.from.layout.optionalElements[old.index] != nil
                guard old.isOptional || mayLack else { continue }
                add(
                    RowCheck(
                        noRowOf: table,
                        where: rows + " AND \(column) IS NULL",
                        entity: entity.name,
                        property: slot.name,
                        reason:
                            "missing attribute values on mandatory destination attribute: it becomes required, has no default value, and %d objects have none"
                    )
                )
            }
        }
    }
}
