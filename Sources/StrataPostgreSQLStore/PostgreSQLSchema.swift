import Foundation
import StrataRows
import StrataSQL

/// The statements that create a store for a model.
package struct PostgreSQLSchema {
    /// Each without a semicolon at its end.
    package let statements: [String]

    /// How many keys a process draws from a sequence at a time.
    static let keyBlock = 1000

    package init(_ mapping: SQLMapping) {
        statements =
            Self.bookkeeping + mapping.tables.flatMap(Self.tables) + mapping.joinTables.flatMap(Self.tables)
            + Self.indexes(mapping)
    }

    /// The tables in which a store keeps its books.
    private static let bookkeeping = [
        """
        CREATE TABLE strata_store (
            singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
            format integer NOT NULL, uuid text NOT NULL, metadata bytea NOT NULL, model bytea
        )
        """,
        """
        CREATE TABLE strata_transaction (
            seq bigserial PRIMARY KEY, number bigint, id uuid NOT NULL, time double precision NOT NULL,
            author text, bundle text, context text, process text
        )
        """,
        "CREATE UNIQUE INDEX strata_transaction_number ON strata_transaction (number)",
        "CREATE INDEX strata_transaction_new ON strata_transaction (seq) WHERE number IS NULL",
        "CREATE INDEX strata_transaction_id ON strata_transaction (id)",
        """
        CREATE TABLE strata_change (
            seq bigint NOT NULL, place bigint NOT NULL, kind smallint NOT NULL, entity integer NOT NULL, key bigint NOT NULL,
            mask bytea, tombstone bytea, PRIMARY KEY (seq, place)
        )
        """,
        "CREATE TABLE strata_history (singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton), last bigint NOT NULL, purged bigint NOT NULL)",
        "CREATE TABLE strata_consumer (name text COLLATE \"C\" PRIMARY KEY, number bigint NOT NULL, seen double precision NOT NULL)",
    ]

    // MARK: - Tables

    private static func tables(_ table: SQLTable) -> [String] {
        let naming = SQLNaming.postgresql
        let columns =
            [
                "\(naming.key) bigint PRIMARY KEY", "\(naming.entity) integer NOT NULL",
                "\(naming.version) bigint NOT NULL",
            ]
            + table.columns.map { "\($0.name) \($0.type)" }
        return [
            "CREATE SEQUENCE \(sequence(table)) INCREMENT BY \(keyBlock)",
            "CREATE TABLE \(table.name) (\(columns.joined(separator: ", ")))",
        ]
    }

    /// The sequence that gives a hierarchy its keys, in blocks.
    static func sequence(_ table: SQLTable) -> SQLName {
        SQLName(PostgreSQLName.limited("strata_keys_" + table.name.raw), isQuoted: true)
    }

    private static func tables(_ join: SQLJoinTable) -> [String] {
        let columns = ([join.first, join.second].map { "\($0) bigint NOT NULL" }) + join.orders.map { "\($0) bigint" }
        return [
            "CREATE TABLE \(join.name) (\(columns.joined(separator: ", ")), PRIMARY KEY (\(join.first), \(join.second)))"
        ]
    }

    // MARK: - Indexes

    private static func indexes(_ mapping: SQLMapping) -> [String] {
        // Tables and indexes have one name space.
        var names = UniqueNames(
            taken: mapping.tables.flatMap { [$0.name.raw, sequence($0).raw] + $0.constraints.map(\.index.raw) }
                + mapping.joinTables.map(\.name.raw),
            naming: { SQLName($0, isQuoted: true) }
        )
        var statements: [String] = []
        var known: Set<String> = []
        func add(_ name: String, _ on: String) {
            guard known.insert(on).inserted else { return }
            statements.append("CREATE INDEX \(names.name(PostgreSQLName.limited(name))) ON \(on)")
        }
        for table in mapping.tables {
            for entity in table.entities {
                for slot in entity.layout.ownSlots where slot.kind == .reference {
                    guard let column = entity.columns[slot.index].name else { continue }
                    add("\(table.name.raw)_\(column.raw)_index", "\(table.name) (\(column))")
                }
            }
            for column in table.inverselessKeys {
                add("\(table.name.raw)_\(column.raw)_index", "\(table.name) (\(column))")
            }
            if table.entities.count > 1 {
                add("\(table.name.raw)_entity_index", "\(table.name) (\(SQLNaming.postgresql.entity))")
            }
            for entity in table.entities { addFetchIndexes(entity, add) }
            for constraint in table.constraints {
                let columns = constraint.columns.map(\.description).joined(separator: ", ")
                statements.append("CREATE UNIQUE INDEX \(constraint.index) ON \(table.name) (\(columns))")
            }
        }
        for join in mapping.joinTables {
            add("\(join.name.raw)_inverse_index", "\(join.name) (\(join.second), \(join.first))")
        }
        return statements
    }

    /// The indexes that the model asks for.
    private static func addFetchIndexes(_ entity: EntityMapping, _ add: (String, String) -> Void) {
        for index in entity.layout.indexes {
            let columns = index.columns.compactMap { column -> String? in
                guard let slot = entity.layout.slot(named: column.name), slot.kind != .data,
                    let name = entity.columns[slot.index].name
                else { return nil }
                return "\(name) \(column.isAscending ? "NULLS FIRST" : "DESC NULLS LAST")"
            }
            // An expression, or bytes: the index is left out, which costs speed only.
            guard !columns.isEmpty, columns.count == index.columns.count else { continue }
            let name = "\(PostgreSQLName.folded(entity.layout.name))_\(PostgreSQLName.folded(index.name))_index"
            add(name, "\(entity.table) (\(columns.joined(separator: ", ")))")
        }
    }
}
