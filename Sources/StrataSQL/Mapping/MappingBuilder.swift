import Foundation
import StrataKeys
import StrataRows

/// Makes a ``SQLMapping``.
///
/// Numbers come first, then the columns of each hierarchy, then join tables, then the mapping of each entity.
package struct MappingBuilder {
    private let schema: Schema
    private let catalog: SQLCatalog?
    private let prefersFormerNames: Bool
    private let rules: SQLColumnRules
    private let naming: SQLNaming
    private let hints: SQLHints?
    /// The names of tables and indexes in the store, by those that the model gives them.
    private let stored: @Sendable (String) -> String
    /// The names that the model itself gives to tables, by the number of the root entity.
    private var givenTables: [Int: String] = [:]
    /// The entities in the order of their numbers in the store.
    private let members: [EntityLayout]
    /// Numbers in the store by numbers in the model; 0 for an entity that the store does not hold.
    private let storeNumbers: [Int]

    private var slotColumns: [[SlotColumn]]
    private var hierarchies: [Hierarchy] = []
    private var hierarchyOfRoot: [Int: Int] = [:]
    private var indexNames: UniqueNames
    private var toManyMappings: [ObjectIdentifier: ToManyMapping] = [:]

    package private(set) var mappings: [EntityMapping] = []
    package private(set) var mappingsByModelNumber: [EntityMapping?]
    package private(set) var tables: [SQLTable] = []
    package private(set) var joinTables: [SQLJoinTable] = []

    /// The entities of one hierarchy and the columns of their table.
    private struct Hierarchy {
        let table: SQLName
        let entities: [EntityLayout]
        var names: UniqueNames
        var inverselessKeys: [SQLName] = []
        var orders: [SQLName] = []
    }

    package init(
        _ schema: Schema,
        configuration: String?,
        catalog: SQLCatalog?,
        prefersFormerNames: Bool = false,
        dialect: Dialect,
        stored: @escaping @Sendable (String) -> String = { $0 }
    ) {
        self.schema = schema
        self.stored = stored
        self.catalog = catalog
        self.prefersFormerNames = prefersFormerNames
        rules = dialect.columns
        naming = dialect.naming
        hints = dialect.hints
        indexNames = UniqueNames(naming: dialect.naming.name)
        let all = schema.entities
        // A hierarchy has one table and one counter of keys, so an entity is included together with its super-entities.
        var closed: Set<Int> = []
        for entity in schema.entities(inConfiguration: configuration) {
            var next: EntityLayout? = entity
            while let current = next, closed.insert(current.number).inserted { next = current.parent }
        }
        members = all.filter { closed.contains($0.number) }
        var numbers = [Int](repeating: 0, count: all.count + 1)
        for (index, entity) in members.enumerated() { numbers[entity.number] = index + 1 }
        storeNumbers = numbers
        slotColumns = Array(repeating: [], count: all.count + 1)
        mappingsByModelNumber = Array(repeating: nil, count: all.count + 1)
    }

    private func number(_ entity: EntityLayout?) -> Int { entity.map { storeNumbers[$0.number] } ?? 0 }

    package mutating func build() throws {
        let byRoot = Dictionary(grouping: members, by: \.rootNumber)
        try readGivenTables()
        hierarchies = try members.filter { $0.parent == nil }.map { root in
            let entities = byRoot[root.number] ?? [root]
            return Hierarchy(
                table: table(of: root),
                entities: entities,
                names: UniqueNames(
                    taken: [naming.key.raw, naming.entity.raw, naming.version.raw] + naming.reservedColumns.sorted()
                        + (try givenColumns(entities)),
                    naming: naming.name
                )
            )
        }
        for (index, hierarchy) in hierarchies.enumerated() {
            hierarchyOfRoot[hierarchy.entities[0].number] = index
        }
        for index in hierarchies.indices { try nameSlots(of: index) }
        for index in hierarchies.indices { mapOwnedToMany(of: index) }
        try mapJoins()
        for hierarchy in hierarchies { makeMappings(hierarchy) }
        // Tables and indexes share one name space.
        indexNames = UniqueNames(
            taken: hierarchies.map(\.table.raw) + joinTables.map(\.name.raw),
            naming: naming.name
        )
        for hierarchy in hierarchies {
            let mappings = hierarchy.entities.compactMap { mappingsByModelNumber[$0.number] }
            tables.append(
                SQLTable(
                    name: hierarchy.table,
                    entities: mappings,
                    columns: declaredColumns(hierarchy, mappings),
                    inverselessKeys: hierarchy.inverselessKeys,
                    constraints: constraints(mappings)
                )
            )
        }
        try requireDistinctTables()
        try requireFewColumns()
    }

    private func requireFewColumns() throws {
        for table in tables where table.columns.count + 3 > rules.most {
            throw CocoaError.described(
                .persistentStoreIncompatibleSchema,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The entity \(table.entities[0].layout.name) and its sub-entities need \(table.columns.count + 3) columns in table \(table.name.raw), but a table may have \(rules.most). Move attributes to entities of their own."
                ]
            )
        }
    }

    private func requireDistinctTables() throws {
        // These names belong to the store itself.
        var seen = naming.reserved
        for table in tables {
            if let sequence = naming.sequence?(table.name.raw) { seen.insert(sequence.uppercased()) }
        }
        for name in tables.map(\.name) + joinTables.map(\.name) where !seen.insert(name.raw.uppercased()).inserted {
            throw CocoaError.described(
                .persistentStoreIncompatibleSchema,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "Two entities or relationships of the model would both be kept in table \(name.raw), or the store has something of its own by that name. Rename one: SQL does not tell upper from lower case."
                ]
            )
        }
    }

    // MARK: - Names that the model gives

    private mutating func readGivenTables() throws {
        guard let hints else { return }
        for entity in members {
            guard let name = try hints.name(for: \.table, in: entity.userInfo, of: "entity \(entity.name)") else {
                continue
            }
            guard entity.parent == nil else {
                throw CocoaError.described(
                    .persistentStoreIncompatibleSchema,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            "\"\(hints.table)\" of entity \(entity.name): its rows are in the table of \(entity.root.name), so that entity has to have it."
                    ]
                )
            }
            givenTables[entity.number] = name
        }
    }

    /// The names that the model gives to columns of a hierarchy.
    private func givenColumns(_ entities: [EntityLayout]) throws -> [String] {
        guard let hints else { return [] }
        var names: [String] = []
        var known: Set<String> = []
        for entity in entities {
            for slot in entity.ownSlots {
                guard let name = try given(slot, entity) else { continue }
                guard known.insert(name.uppercased()).inserted else {
                    throw CocoaError.described(
                        .persistentStoreIncompatibleSchema,
                        userInfo: [
                            NSLocalizedDescriptionKey:
                                "\"\(hints.column)\" of \(entity.name).\(slot.name): another property of the hierarchy has the column \(name)."
                        ]
                    )
                }
                names.append(name)
            }
        }
        return names
    }

    private func given(_ slot: Slot, _ entity: EntityLayout) throws -> String? {
        try hints?.name(for: \.column, in: entity.propertyInfo[slot.name], of: "\(entity.name).\(slot.name)")
    }

    // MARK: - Columns of slots

    private mutating func nameSlots(of index: Int) throws {
        let unnamed = hierarchies[index]
        if let catalog, let former = naming.formerLeaf, hasLeaves(unnamed) {
            // The table may have been made when the leaves of composite attributes had other names.
            for attribute in prefersFormerNames ? [former, naming.attribute] : [naming.attribute, former] {
                try nameSlots(of: index, attribute)
                if !lacksColumns(index, catalog) { return }
                hierarchies[index] = unnamed
            }
        }
        try nameSlots(of: index, naming.attribute)
    }

    private mutating func nameSlots(of index: Int, _ attribute: (String) -> String) throws {
        for entity in hierarchies[index].entities {
            var columns = entity.parent.map { slotColumns[$0.number] } ?? []
            for slot in entity.ownSlots {
                columns.append(try column(of: slot, in: entity, hierarchy: &hierarchies[index], attribute: attribute))
            }
            slotColumns[entity.number] = columns
        }
    }

    /// Whether entities of a hierarchy have composite attributes, whose leaves have paths for names.
    private func hasLeaves(_ hierarchy: Hierarchy) -> Bool {
        hierarchy.entities.contains { $0.ownSlots.contains { $0.name.contains(".") } }
    }

    /// Whether the table of a hierarchy in a file lacks columns of slots.
    private func lacksColumns(_ index: Int, _ catalog: SQLCatalog) -> Bool {
        let hierarchy = hierarchies[index]
        let existing = Set(catalog.columns(of: hierarchy.table.raw).map { $0.uppercased() })
        return hierarchy.entities.contains { entity in
            entity.ownSlots.contains { slot in
                let column = slotColumns[entity.number][slot.index]
                return [column.name, column.entity, column.order].compactMap(\.self)
                    .contains { !existing.contains($0.raw.uppercased()) }
            }
        }
    }

    private func column(
        of slot: Slot,
        in entity: EntityLayout,
        hierarchy: inout Hierarchy,
        attribute: (String) -> String
    ) throws -> SlotColumn {
        let given = try given(slot, entity)
        // The leaf of a composite attribute has a path for a name.
        guard let relationship = slot.relationship else {
            let name = given.map(naming.name) ?? hierarchy.names.name(attribute(slot.name))
            var column = SlotColumn(name: name)
            column.isDerived = slot.isDerived
            column.isTagged = rules.tagsExternalData && slot.kind == .data && slot.allowsExternalStorage
            for folding in try hints?.foldings(of: slot, in: entity) ?? [] {
                column.folded.append((folding, hierarchy.names.name(naming.folded(name.raw, folding))))
            }
            return column
        }
        let destination = number(relationship.destination)
        guard destination > 0 else { return SlotColumn(name: nil) }
        let base = naming.toOne(slot.name)
        let suffix = given == nil ? hierarchy.names.suffix(for: base) : ""
        var column = SlotColumn(name: naming.name(given ?? base + suffix))
        if hasSubentities(relationship.destination) {
            column.entity = hierarchy.names.name(naming.destination(destination, slot.name, suffix))
        }
        if let inverse = relationship.inverse, inverse.isToMany, inverse.isOrdered, !inverse.isTransient {
            let order = hierarchy.names.name(naming.order(slot.name, suffix))
            column.order = order
            hierarchy.orders.append(order)
        }
        return column
    }

    private func hasSubentities(_ entity: EntityLayout?) -> Bool {
        entity?.subtree.dropFirst().contains { storeNumbers[$0] > 0 } ?? false
    }

    // MARK: - To-many relationships kept in the members' rows

    private mutating func mapOwnedToMany(of index: Int) {
        for entity in hierarchies[index].entities {
            for slot in entity.ownToMany where !slot.isTransient {
                let relationship = slot.relationship
                guard let destination = relationship.destination, number(destination) > 0,
                    let target = hierarchyOfRoot[destination.rootNumber]
                else { continue }
                if let inverse = relationship.inverse {
                    guard !inverse.isToMany, !inverse.isTransient,
                        let position = inverse.entity.slot(named: inverse.name)?.index
                    else { continue }
                    let column = slotColumns[inverse.entity.number][position]
                    guard let name = column.name else { continue }
                    toManyMappings[ObjectIdentifier(relationship)] = .key(
                        .init(
                            table: hierarchies[target].table,
                            column: name,
                            order: relationship.isOrdered ? column.order : nil,
                            isWithoutInverse: false
                        )
                    )
                } else {
                    let owner = number(entity)
                    let column = hierarchies[target].names.name(naming.owner(relationship, owner))
                    var order: SQLName?
                    if relationship.isOrdered {
                        let name = hierarchies[target].names.name(naming.ownerOrder(relationship, owner))
                        hierarchies[target].orders.append(name)
                        order = name
                    }
                    hierarchies[target].inverselessKeys.append(column)
                    toManyMappings[ObjectIdentifier(relationship)] = .key(
                        .init(
                            table: hierarchies[target].table,
                            column: column,
                            order: order,
                            isWithoutInverse: true
                        )
                    )
                }
            }
        }
    }

    // MARK: - Join tables

    private mutating func mapJoins() throws {
        let namer = JoinNamer(
            members: members,
            storeNumbers: storeNumbers,
            catalog: catalog,
            naming: naming,
            hints: hints
        )
        for join in try namer.joins() {
            let tables = (table(of: join.owning.entity), table(of: join.inverse.entity))
            let name = naming.name(stored(join.table.raw))
            joinTables.append(
                SQLJoinTable(
                    name: name,
                    ownerNumber: number(join.owning.entity),
                    memberNumber: number(join.owning.destination),
                    first: join.first,
                    second: join.second,
                    orders: [join.firstOrder, join.secondOrder].compactMap { $0 },
                    firstTable: tables.0,
                    secondTable: tables.1,
                    isSymmetric: join.isSymmetric
                )
            )
            // A column with the name of a relationship holds the destination of the relationship.
            toManyMappings[ObjectIdentifier(join.owning)] = .join(
                .init(
                    table: name,
                    owner: join.first,
                    member: join.second,
                    order: join.secondOrder,
                    inverseOrder: join.firstOrder,
                    memberTable: tables.1,
                    isSymmetric: join.isSymmetric
                )
            )
            guard !join.isSymmetric else { continue }
            toManyMappings[ObjectIdentifier(join.inverse)] = .join(
                .init(
                    table: name,
                    owner: join.second,
                    member: join.first,
                    order: join.firstOrder,
                    inverseOrder: join.secondOrder,
                    memberTable: tables.0,
                    isSymmetric: false
                )
            )
        }
    }

    private func table(of entity: EntityLayout) -> SQLName {
        naming.name(stored(givenTables[entity.rootNumber] ?? naming.table(entity.root.name)))
    }

    // MARK: - By entity

    private mutating func makeMappings(_ hierarchy: Hierarchy) {
        // Sub-entities are numbered directly after their super-entity.
        var last: [Int: Int] = [:]
        for entity in hierarchy.entities.reversed() {
            let own = number(entity)
            let end = last[own] ?? own
            if let parent = entity.parent { last[number(parent)] = max(end, last[number(parent)] ?? 0) }
            last[own] = end
        }
        for entity in hierarchy.entities {
            let own = number(entity)
            let mapping = EntityMapping(
                layout: entity,
                number: own,
                rootNumber: number(hierarchy.entities[0]),
                table: hierarchy.table,
                subtree: own...(last[own] ?? own),
                isShared: hierarchy.entities.count > 1,
                columns: slotColumns[entity.number],
                toMany: entity.toMany.map { toManyMappings[ObjectIdentifier($0.relationship)] ?? .absent }
            )
            mappings.append(mapping)
            mappingsByModelNumber[entity.number] = mapping
        }
    }

    private mutating func constraints(_ mappings: [EntityMapping]) -> [SQLConstraint] {
        var constraints: [SQLConstraint] = []
        for mapping in mappings {
            var seen: Set<[SQLName]> = []
            for constraint in mapping.layout.uniquenessConstraints {
                let (names, slots) = (constraint.properties, constraint.slots)
                let columns = slots.compactMap { mapping.columns[$0.index].name }
                guard columns.count == slots.count, seen.insert(columns).inserted else { continue }
                constraints.append(
                    SQLConstraint(
                        layout: mapping.layout,
                        attributes: names,
                        slots: slots,
                        columns: columns,
                        // Two constraints may have the same name: {a, b} and {a_b}.
                        index: naming.name(stored(indexNames.name(naming.uniqueIndex(mapping.layout, names)).raw))
                    )
                )
            }
        }
        return constraints
    }

    // MARK: - Order of columns

    /// The order of the columns: integers and relationships, keys of owners and positions, then the other types.
    ///
    /// Integers and relationships come entity by entity, the other types each for all entities.
    private func declaredColumns(_ hierarchy: Hierarchy, _ mappings: [EntityMapping]) -> [SQLColumn] {
        var result: [SQLColumn] = []
        func add(_ mapping: EntityMapping, _ isIncluded: (Slot) -> Bool) {
            for slot in mapping.layout.ownSlots where isIncluded(slot) {
                let column = mapping.columns[slot.index]
                if let name = column.name { result.append(SQLColumn(name: name, type: declaredType(slot))) }
                for folded in column.folded { result.append(SQLColumn(name: folded.name, type: declaredType(slot))) }
                if let name = column.entity { result.append(SQLColumn(name: name, type: rules.keyType)) }
            }
        }
        for mapping in mappings {
            add(mapping) { $0.kind == .int }
            add(mapping) { $0.kind == .reference }
        }
        for name in hierarchy.inverselessKeys + hierarchy.orders {
            result.append(SQLColumn(name: name, type: rules.keyType))
        }
        for group in rules.groups {
            for mapping in mappings { add(mapping) { $0.kind != .reference && group.contains($0.type) } }
        }
        return result
    }

    private func declaredType(_ slot: Slot) -> String {
        slot.kind == .reference ? rules.keyType : rules.type(slot.type)
    }
}
