import StrataPredicates
import StrataRows

/// The changes of a migration to the tables of a file, derived from the two mappings without reading rows.
package struct MigrationLayout: Sendable {
    package let tables: [TableMigration]
    package let joins: [JoinMigration]
    /// The conditions that rows must fulfil.
    package let checks: [RowCheck]
    /// The checks for rows and values that would be dropped, because they have no place in the destination.
    package let losses: [RowCheck]

    /// Derives the changes.
    ///
    /// - Parameters:
    ///   - migration: The targets of entities and properties.
    ///   - source: The present tables of the file.
    ///   - destination: The tables that the file will have.
    package init(_ migration: SchemaMigration, from source: SQLMapping, to destination: SQLMapping) {
        var mapper = MigrationMapper(migration, from: source, to: destination)
        tables = destination.tables.map { mapper.migrate($0) }
        joins = destination.joinTables.map { mapper.migrate($0) }
        mapper.checkRows()
        checks = mapper.checks
        losses = mapper.losses()
    }
}

/// Derives a ``MigrationLayout``.
struct MigrationMapper {
    let source: SQLMapping
    let destination: SQLMapping
    /// The names that the database gives to the columns of both mappings.
    var naming: SQLNaming { destination.dialect.naming }
    /// The pairs of entities that both mappings hold.
    let pairs: [MappedPair]
    private(set) var checks: [RowCheck] = []
    /// The tables of the source whose rows go to more than one table of the destination.
    private let sharedSources: Set<SQLName>

    /// A pair of entities with their mappings.
    struct MappedPair {
        let pair: EntityPair
        let from: EntityMapping
        let to: EntityMapping
    }

    init(_ migration: SchemaMigration, from source: SQLMapping, to destination: SQLMapping) {
        self.source = source
        self.destination = destination
        let pairs = migration.pairs.compactMap { pair in
            source.entity(pair.source).flatMap { from in
                destination.entity(pair.destination).map { MappedPair(pair: pair, from: from, to: $0) }
            }
        }
        self.pairs = pairs
        let targets = Dictionary(grouping: pairs, by: \.from.table).mapValues { Set($0.map(\.to.table)) }
        sharedSources = Set(targets.filter { $0.value.count > 1 }.keys)
    }

    mutating func add(_ check: RowCheck) { checks.append(check) }

    // MARK: - Tables

    mutating func migrate(_ table: SQLTable) -> TableMigration {
        let members = pairs.filter { $0.to.table == table.name }
        guard let name = members.first?.from.table, let from = source.tables.first(where: { $0.name == name }) else {
            return TableMigration(
                destination: table,
                naming: naming,
                source: nil,
                numbers: [],
                leavesRowsBehind: false,
                sharesSource: false,
                values: table.columns.map { _ in .null },
                tagChanges: [],
                derived: [],
                refolds: false
            )
        }
        let rows = members.filter { $0.from.table == name && !$0.from.layout.isAbstract }
        let kept = Set(rows.map(\.from.number))
        let leaves = from.entities.contains { !$0.layout.isAbstract && !kept.contains($0.number) }
        var values: [SQLName: MigratedValue] = [:]
        var tags: [TableMigration.TagChange] = []
        var derived: [SQLName] = []
        var refolds = false
        for entity in table.entities {
            for slot in entity.layout.ownSlots {
                let column = entity.columns[slot.index]
                guard let name = column.name else { continue }
                if slot.kind == .reference {
                    values[name] = combine(entity, of: rows) { reference(of: $0, in: slot, part: .key) }
                    if let name = column.entity {
                        values[name] = combine(entity, of: rows) { reference(of: $0, in: slot, part: .entity) }
                    }
                    if let name = column.order {
                        values[name] = combine(entity, of: rows) { reference(of: $0, in: slot, part: .order) }
                    }
                    checkSingle(slot, of: entity, in: rows)
                } else {
                    values[name] = combine(entity, of: rows) {
                        attribute($0, slot, isTagged: wasTagged(slot, in: $0) ?? column.isTagged)
                    }
                    let changed = rows.filter {
                        entity.subtree.contains($0.to.number) && wasTagged(slot, in: $0) == !column.isTagged
                    }
                    if !changed.isEmpty {
                        tags.append(.init(column: name, isTagged: column.isTagged, numbers: changed.map(\.to.number)))
                    }
                    if slot.isDerived, needsComputing(slot, of: entity, in: rows) { derived.append(name) }
                    for column in column.folded {
                        let value = combine(entity, of: rows) { folded(from: $0, for: slot, by: column.folding) }
                        values[column.name] = value
                        if !value.isPlain { refolds = true }
                    }
                }
            }
        }
        addInverseless(to: table, from: rows, into: &values)
        let isShared = sharedSources.contains(name)
        let ordered = table.columns.map { values[$0.name] ?? .null }
        return TableMigration(
            destination: table,
            naming: naming,
            source: from,
            numbers: rows.map { ($0.from.number, $0.to.number) },
            leavesRowsBehind: leaves || isShared,
            sharesSource: isShared,
            values: ordered,
            tagChanges: tags,
            derived: derived,
            refolds: refolds
        )
    }

    /// Combines the values of all entities that have a column.
    private func combine(
        _ declaring: EntityMapping,
        of rows: [MappedPair],
        _ value: (MappedPair) -> MigratedValue
    ) -> MigratedValue {
        var groups: [(value: MigratedValue, numbers: [Int])] = []
        for row in rows {
            let value = declaring.subtree.contains(row.to.number) ? value(row) : .null
            if let index = groups.firstIndex(where: { $0.value == value }) {
                groups[index].numbers.append(row.from.number)
            } else {
                groups.append((value, [row.from.number]))
            }
        }
        guard let first = groups.first else { return .null }
        if groups.count == 1 { return first.value }
        // The column is already NULL in rows of entities that do not have it.
        let others = groups.filter { !$0.value.isNull }
        if others.count == 1, let base = others[0].value.base, others[0].value.isStrict {
            let without = groups.filter(\.value.isNull).flatMap(\.numbers)
            let isFree = without.allSatisfy { number in
                source.entity(storeNumber: Int64(number)).map { !$0.has(base) } ?? false
            }
            if isFree { return others[0].value }
        }
        return MigratedValue.cases(groups, entity: naming.entity)
    }

    // MARK: - Attributes

    private func attribute(_ row: MappedPair, _ slot: Slot, isTagged: Bool) -> MigratedValue {
        if let elements = row.to.layout.optionalElements[slot.index] {
            return element(of: row, at: slot, known: formerColumns(row, elements), isTagged: isTagged)
        }
        let fallback = slot.isDerived ? .null : defaultValue(row.to.layout.defaults, slot, isTagged: isTagged)
        guard let (name, old) = formerColumn(row, slot) else { return .constant(fallback, slot.type) }
        if let elements = row.from.layout.optionalElements[old.index] {
            // The composite attribute around the element could be without a value, and must have one now.
            let known = elements.compactMap { row.from.columns[$0].name }
            return .column(name, orElse: slot.isOptional ? nil : fallback, ifAny: known, missing: fallback, slot.type)
        }
        return old.isOptional && !slot.isOptional ? .column(name, orElse: fallback, slot.type) : .column(name)
    }

    /// An element of an optional composite attribute.
    ///
    /// Its default value counts only if the whole has a value.
    private func element(of row: MappedPair, at slot: Slot, known: [SQLName], isTagged: Bool) -> MigratedValue {
        guard !known.isEmpty else {
            // The whole attribute is new.
            return .constant(defaultValue(row.to.layout.defaults, slot, isTagged: isTagged), slot.type)
        }
        let fallback = defaultValue(row.to.layout.elementDefaults, slot, isTagged: isTagged)
        guard let (name, old) = formerColumn(row, slot) else { return .constant(fallback, ifAny: known, slot.type) }
        guard old.isOptional, !slot.isOptional else { return .column(name) }
        return .column(name, orElse: fallback, ifAny: known, missing: .null, slot.type)
    }

    /// The column with the former attribute, and the former slot.
    func formerColumn(_ row: MappedPair, _ slot: Slot) -> (SQLName, Slot)? {
        guard let old = row.pair.source(of: slot), old.kind != .reference,
            let name = row.from.columns[old.index].name
        else { return nil }
        return (name, old)
    }

    /// The columns with former attributes.
    func formerColumns(_ row: MappedPair, _ slots: Range<Int>) -> [SQLName] {
        slots.compactMap { formerColumn(row, row.to.layout.slots[$0])?.0 }
    }

    /// The folded text of an attribute, if it can be taken over; otherwise NULL, and it has to be computed.
    private func folded(from row: MappedPair, for slot: Slot, by folding: StringFolding) -> MigratedValue {
        guard attribute(row, slot, isTagged: false).isPlain, let old = row.pair.source(of: slot),
            let known = row.from.columns[old.index].folded.first(where: { $0.folding == folding })
        else { return .null }
        return .column(known.name)
    }

    private func defaultValue(_ defaults: Row, _ slot: Slot, isTagged: Bool) -> SQLBinding {
        // A sub-entity has the slots of its super-entity at the same places.
        let value = SQLBinding(valueOf: slot, in: defaults, destination.dialect.forms)
        guard isTagged, case .blob(let data) = value else { return value }
        return .blob(Data([1]) + data)
    }

    /// Whether the column that a slot's values come from has tags; `nil` if they come from no column.
    ///
    /// Entities whose columns become one may differ.
    private func wasTagged(_ slot: Slot, in row: MappedPair) -> Bool? {
        formerColumn(row, slot).map { row.from.columns[$0.1.index].isTagged }
    }

    // MARK: - Derived attributes

    /// Whether a derived value cannot be taken over, because its derivation or the value of its source changes.
    private func needsComputing(_ slot: Slot, of entity: EntityMapping, in rows: [MappedPair]) -> Bool {
        rows.contains { entity.subtree.contains($0.to.number) && !keepsDerived(slot, of: $0) }
    }

    /// The longest chain of derived values that may be taken over.
    private static let longestChain = 8

    private func keepsDerived(_ slot: Slot, of row: MappedPair, length: Int = 0) -> Bool {
        guard length < Self.longestChain, let old = row.pair.source(of: slot), old.isDerived, old.type == slot.type,
            old.traits?.derivation == slot.traits?.derivation
        else { return false }
        switch slot.traits?.derivation {
        case .function(_, let attribute)?: return keeps(attribute, of: row, length: length)
        case .copy(let name, let attribute)?:
            return keeps(row.to.layout.slot(named: name)?.relationship, of: row, attribute: attribute, length: length)
        case .aggregate(_, let name, let attribute)?:
            return keeps(row.to.layout.toMany(named: name)?.relationship, of: row, attribute: attribute, length: length)
        case .now?, nil: return true
        }
    }

    /// Whether the values of an attribute stay the same, under their name.
    private func keeps(_ attribute: String, of row: MappedPair, length: Int) -> Bool {
        guard let slot = row.to.layout.slot(named: attribute), let old = row.pair.source(of: slot),
            old.name == attribute, old.type == slot.type, old.isDerived == slot.isDerived
        else { return false }
        return slot.isDerived
            ? keepsDerived(slot, of: row, length: length + 1) : self.attribute(row, slot, isTagged: false).isPlain
    }

    /// Whether a relationship leads to the same objects as before.
    ///
    /// If an attribute matters, these objects must also keep its values.
    private func keeps(_ relationship: Relationship?, of row: MappedPair, attribute: String?, length: Int) -> Bool {
        guard let relationship, let target = relationship.destination else { return false }
        let owners = pairs.filter { $0.to.layout.isKind(of: relationship.entity) }
        let members = pairs.filter { $0.to.layout.isKind(of: target) }
        let isSame =
            owners.allSatisfy { keepsName(of: relationship, $0) }
            && (relationship.inverse.map { inverse in members.allSatisfy { keepsName(of: inverse, $0) } } ?? true)
        // The members at the other end change if rows are dropped.
        guard isSame, links(relationship, ownedBy: owners).allSatisfy({ !$0.isFiltered }) else { return false }
        return attribute.map { name in members.allSatisfy { keeps(name, of: $0, length: length) } } ?? true
    }

    private func keepsName(of relationship: Relationship, _ row: MappedPair) -> Bool {
        guard let old = row.pair.source(of: relationship) else { return false }
        return old.name == relationship.name && old.isToMany == relationship.isToMany
    }

    // MARK: - Joins

    mutating func migrate(_ join: SQLJoinTable) -> JoinMigration {
        for entity in destination.entities {
            for slot in entity.layout.ownToMany {
                guard case .join(let side) = entity.toMany[slot.index], side.table == join.name,
                    side.owner == join.first
                else { continue }
                return migrate(join, of: slot.relationship, side: side)
            }
        }
        return JoinMigration(destination: join, kept: nil, pairs: nil, columns: (join.first, join.second, nil, nil))
    }

    private func migrate(
        _ join: SQLJoinTable,
        of relationship: Relationship,
        side: ToManyMapping.JoinSide
    ) -> JoinMigration {
        let links = links(relationship)
        var kept: (SQLJoinTable, [(from: SQLName, to: SQLName)])?
        if links.count == 1, let old = links[0].join, !links[0].isFiltered, old.table.isSymmetric == join.isSymmetric,
            old.owner == old.table.first, (old.order == nil) == (side.order == nil),
            (old.inverseOrder == nil) == (side.inverseOrder == nil)
        {
            var names = [(old.owner, side.owner), (old.member, side.member)]
            if let from = old.order, let to = side.order { names.append((from, to)) }
            if let from = old.inverseOrder, let to = side.inverseOrder { names.append((from, to)) }
            let changed = names.filter { $0.0 != $0.1 }
            let existing = Set(names.map { $0.0.raw.uppercased() })
            if changed.allSatisfy({ !existing.contains($0.1.raw.uppercased()) }) {
                kept = (old.table, changed.map { (from: $0.0, to: $0.1) })
            }
        }
        return JoinMigration(
            destination: join,
            kept: kept,
            pairs: Link.union(links),
            columns: (side.owner, side.member, side.order, side.inverseOrder)
        )
    }
}

extension EntityMapping {
    /// Whether rows of the entity use a column.
    fileprivate func has(_ name: SQLName) -> Bool {
        columns.contains { $0.name == name || $0.entity == name || $0.order == name }
    }
}
