import Foundation

/// The statements that create a store for a model, in the order and spelling of Apple's framework.
package struct SQLiteSchema {
    /// Each without a semicolon at its end.
    package let statements: [String]

    /// The schema for a model, which is put to use by that and cannot be changed any more.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - configuration: The configuration whose entities the store holds, or `nil` for all.
    /// - Throws: What is wrong with the model.
    package init(for model: NSManagedObjectModel, configuration: String? = nil) throws {
        try model.tryFreeze()
        self.init(try SQLMapping(model.frozen, configuration: configuration))
    }

    init(_ mapping: SQLMapping) {
        statements =
            Self.tables(mapping) + Self.indexes(mapping) + DerivedTriggers(mapping).statements + Self.bookkeeping
    }

    private static let bookkeeping = [
        "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
        "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
        "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
    ]

    // MARK: - Tables

    private static func tables(_ mapping: SQLMapping) -> [String] {
        mapping.tables.flatMap { table in
            let columns =
                ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"]
                + table.columns.map { "\($0.name) \($0.type)" }
            let numbers = Set(table.entities.map(\.number))
            return ["CREATE TABLE \(table.name) ( \(columns.joined(separator: ", ")) )"]
                + mapping.joinTables.filter { numbers.contains($0.ownerNumber) }.map(join)
        }
    }

    private static func join(_ join: SQLJoinTable) -> String {
        let columns = ([join.first, join.second] + join.orders).map { "\($0) INTEGER" }.joined(separator: ", ")
        return "CREATE TABLE \(join.name) ( \(columns), PRIMARY KEY (\(join.first), \(join.second)) )"
    }

    // MARK: - Indexes

    private static func indexes(_ mapping: SQLMapping) -> [String] {
        var taken: Set<String> = []
        return mapping.tables.flatMap { table in
            var indexes: [(name: String, statement: String)] = []
            for entity in table.entities {
                let inherited = entity.layout.entity.superentity?.layout.slots.count ?? 0
                for slot in entity.layout.slots.dropFirst(inherited) where slot.kind == .reference {
                    if let column = entity.columns[slot.index].name { indexes.append(keyIndex(table, column)) }
                }
            }
            for column in table.inverselessKeys { indexes.append(keyIndex(table, column)) }
            if table.entities.count > 1 { indexes.append(keyIndex(table, .entity)) }
            let numbers = Set(table.entities.map(\.number))
            for join in mapping.joinTables where numbers.contains(join.ownerNumber) {
                let name = "\(join.name.raw)_\(join.second.raw)_INDEX"
                let on = "\(join.name) (\(join.second), \(join.first))"
                indexes.append((name, "CREATE INDEX \(SQLName(name)) ON \(on)"))
            }
            for entity in table.entities { indexes += fetchIndexes(entity) }
            for constraint in table.constraints {
                let columns = constraint.columns.map { "\($0) COLLATE BINARY ASC" }.joined(separator: ", ")
                indexes.append(
                    (
                        constraint.index.raw,
                        "CREATE UNIQUE INDEX \(constraint.index) ON \(table.name) (\(columns))"
                    )
                )
            }
            return indexes.filter { taken.insert($0.name.uppercased()).inserted }.map(\.statement)
        }
    }

    private static func keyIndex(_ table: SQLTable, _ column: SQLName) -> (name: String, statement: String) {
        let name = "\(table.name.raw)_\(column.raw)_INDEX"
        return (name, "CREATE INDEX \(SQLName(name)) ON \(table.name) (\(column))")
    }

    /// The indexes that the model asks for: of single attributes first, then compound ones, then those with names.
    private static func fetchIndexes(_ mapping: EntityMapping) -> [(name: String, statement: String)] {
        let entity = mapping.layout.entity
        func index(_ name: String, _ columns: [(name: String, isAscending: Bool)]) -> (name: String, statement: String)?
        {
            let found = columns.compactMap { column in
                mapping.column(named: column.name)?.name.map {
                    "\($0) COLLATE BINARY \(column.isAscending ? "ASC" : "DESC")"
                }
            }
            // An expression, or a relationship that no column holds: the index is left out, which costs speed only.
            guard !columns.isEmpty, found.count == columns.count else { return nil }
            let name = "Z_\(entity.name ?? "")_\(name)"
            let columns = found.joined(separator: ", ")
            return (name, "CREATE INDEX \(SQLName(name)) ON \(mapping.table) (\(columns))")
        }
        let named = entity.indexes.map { index in
            (index.name, index.elements.map { (name: $0.propertyName ?? "", isAscending: $0.isAscending) })
        }
        let singles =
            entity.ownProperties.filter(\.isIndexed).map(\.name).sorted()
            + named.filter { $0.1.count == 1 }.map { $0.1[0].name }
        return singles.compactMap { name in
            entity.attributesByName[name] == nil ? nil : index(name, [(name, true)])
        }
            + entity.compoundIndexNames.compactMap { names in
                index(names.joined(separator: "_"), names.map { ($0, true) })
            }
            + named.compactMap { index($0.0, $0.1) }
    }
}
