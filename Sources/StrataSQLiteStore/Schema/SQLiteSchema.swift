import Foundation
import StrataRows
import StrataSQL

/// The statements that create a store for a model, in the order and spelling of Apple's framework.
package struct SQLiteSchema {
    /// The statements, without semicolons at their ends.
    package let statements: [String]

    /// Makes the schema for the contents of a store.
    package init(_ mapping: SQLMapping) {
        statements =
            Self.tables(mapping) + Self.indexes(mapping).map(\.sql) + DerivedTriggers(mapping).statements
            + Self.bookkeeping
    }

    private static let bookkeeping = [
        "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
        "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
        modelCache,
    ]

    /// Creates the table with the copy of the model.
    package static let modelCache = "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)"

    // MARK: - Tables

    private static func tables(_ mapping: SQLMapping) -> [String] {
        let joins = mapping.joinTablesByOwner
        return mapping.tables.flatMap { table in
            [create(table, as: table.name)]
                + table.entities.flatMap { joins[$0.number] ?? [] }.map { create($0, as: $0.name) }
        }
    }

    /// Creates the table of a hierarchy, perhaps under another name at first.
    package static func create(_ table: SQLTable, as name: SQLName) -> String {
        let columns =
            ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"]
            + table.columns.map { "\($0.name) \($0.type)" }
        return "CREATE TABLE \(name) ( \(columns.joined(separator: ", ")) )"
    }

    /// Creates the table of a many-to-many relationship, perhaps under another name at first.
    package static func create(_ join: SQLJoinTable, as name: SQLName) -> String {
        let columns = ([join.first, join.second] + join.orders).map { "\($0) INTEGER" }.joined(separator: ", ")
        return "CREATE TABLE \(name) ( \(columns), PRIMARY KEY (\(join.first), \(join.second)) )"
    }

    // MARK: - Indexes

    /// An index with the statement that creates it.
    package struct Index {
        package let name: String
        package let table: SQLName
        package let sql: String
        /// The constraint that the index enforces; `nil` for one that only speeds up fetches.
        package let constraint: SQLConstraint?
    }

    /// All indexes, in the order of creation.
    package static func indexes(_ mapping: SQLMapping) -> [Index] {
        let joins = mapping.joinTablesByOwner
        // The indexes that saves need keep their names.
        var names = UniqueNames(taken: mapping.tables.flatMap { $0.constraints.map(\.index.raw) })
        var known: Set<String> = []
        return mapping.tables.flatMap { table in
            var indexes: [(name: String, table: SQLName, on: String)] = []
            for entity in table.entities {
                for slot in entity.layout.ownSlots where slot.kind == .reference {
                    if let column = entity.columns[slot.index].name { indexes.append(keyIndex(table, column)) }
                }
            }
            for column in table.inverselessKeys { indexes.append(keyIndex(table, column)) }
            if table.entities.count > 1 { indexes.append(keyIndex(table, .entity)) }
            for join in table.entities.flatMap({ joins[$0.number] ?? [] }) {
                let on = "\(join.name) (\(join.second), \(join.first))"
                indexes.append(("\(join.name.raw)_\(join.second.raw)_INDEX", join.name, on))
            }
            for entity in table.entities { indexes += fetchIndexes(entity) }
            // The same index may be asked for twice. If different indexes have one name, they get numbers.
            let plain = indexes.filter { known.insert("\($0.name) \($0.on)").inserted }
                .map { index in
                    let name = names.name(index.name)
                    return Index(
                        name: name.raw,
                        table: index.table,
                        sql: "CREATE INDEX \(name) ON \(index.on)",
                        constraint: nil
                    )
                }
            let unique = table.constraints.map { constraint in
                let columns = constraint.columns.map { "\($0) COLLATE BINARY ASC" }.joined(separator: ", ")
                return Index(
                    name: constraint.index.raw,
                    table: table.name,
                    sql: "CREATE UNIQUE INDEX \(constraint.index) ON \(table.name) (\(columns))",
                    constraint: constraint
                )
            }
            return plain + unique
        }
    }

    private static func keyIndex(
        _ table: SQLTable,
        _ column: SQLName
    ) -> (name: String, table: SQLName, on: String) {
        ("\(table.name.raw)_\(column.raw)_INDEX", table.name, "\(table.name) (\(column))")
    }

    /// The indexes that the model declares.
    private static func fetchIndexes(_ mapping: EntityMapping) -> [(name: String, table: SQLName, on: String)] {
        mapping.layout.indexes.compactMap { index in
            let found = index.columns.compactMap { column in
                mapping.columns(named: column.name)?
                    .map { "\($0) COLLATE BINARY \(column.isAscending ? "ASC" : "DESC")" }
            }
            // There is an expression, or a relationship without a column. The index is left out, which costs only
            // speed.
            guard !found.isEmpty, found.count == index.columns.count else { return nil }
            let columns = found.flatMap(\.self)
            return (
                "Z_\(mapping.layout.name)_\(index.name)", mapping.table,
                "\(mapping.table) (\(columns.joined(separator: ", ")))"
            )
        }
    }
}

extension SQLMapping {
    /// The join tables by the number of the entity that declares the relationship.
    fileprivate var joinTablesByOwner: [Int: [SQLJoinTable]] { Dictionary(grouping: joinTables, by: \.ownerNumber) }
}
