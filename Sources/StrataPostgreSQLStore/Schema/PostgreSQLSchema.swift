import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The statements that create a store for a model.
package struct PostgreSQLSchema {
    /// The statements, each without a semicolon at its end.
    package var statements: [String] { tables + indexes }

    /// The statements that make the tables and sequences, and the bookkeeping with its indexes.
    let tables: [String]
    /// The statements that make the indexes of the tables, which come after the rows if there are many.
    let indexes: [String]

    /// The number of keys that a process draws from a sequence at a time.
    static let keyBlock = 1000

    /// The statements for a model.
    ///
    /// - Parameters:
    ///   - mapping: The tables of the model.
    ///   - keys: The order of the keys that the rows of a table get.
    package init(_ mapping: SQLMapping, keys: (SQLTable) -> KeyOrder = { _ in .consecutive }) {
        let taken = Self.takenNames(mapping)
        tables =
            Self.bookkeeping
            + mapping.tables.flatMap {
                [Self.createSequence(Self.sequence($0), keys($0)), Self.create($0, as: $0.name, besides: taken)]
            }
            + mapping.joinTables.map { Self.create($0, as: $0.name, besides: taken) }
        indexes = Self.indexes(mapping).map(\.sql)
    }

    /// Creates the tables, sequences and indexes, in one round trip.
    func create(on connection: Connection) throws { try Self.make(statements, on: connection) }

    /// Runs statements that make something, in one round trip.
    ///
    /// Each statement is a separate message, because some engines refuse messages that create several tables.
    static func make(_ statements: [String], on connection: Connection) throws {
        for statement in statements { try connection.post(statement, isKept: false, mayWait: true) }
        try connection.readPostedAnswers()
    }

    /// A digest of the tables with their columns; it changes when one of them changes.
    static func digest(_ mapping: SQLMapping) -> Data {
        let taken = takenNames(mapping)
        let tables =
            mapping.tables.map { create($0, as: $0.name, besides: taken) }
            + mapping.joinTables.map { create($0, as: $0.name, besides: taken) }
        return Data(SHA2.sha256(Data(tables.joined(separator: ";").utf8)))
    }

    /// The names of the tables and sequences of a store, without its bookkeeping tables.
    static func names(_ mapping: SQLMapping) -> [String] {
        (mapping.tables.flatMap { [$0.name, sequence($0)] } + mapping.joinTables.map(\.name)).map(\.raw).sorted()
    }

    // MARK: - Books

    /// A table in which a store keeps its own records: a bookkeeping table.
    struct Book {
        let name: String
        /// The columns, each with its name, its type, and the text that follows the type.
        let columns: [(name: String, type: String, rest: String)]
        /// The columns of the primary key.
        let key: [String]

        fileprivate var sql: String {
            let columns = columns.map { [$0.name, $0.type, $0.rest].filter { !$0.isEmpty }.joined(separator: " ") }
            return
                "CREATE TABLE \(name) (\(columns.joined(separator: ", ")), PRIMARY KEY (\(key.joined(separator: ", "))))"
        }
    }

    static let books = [
        Book(
            name: "strata_store",
            columns: [
                ("singleton", "boolean", "DEFAULT true CHECK (singleton)"), ("format", "integer", "NOT NULL"),
                ("uuid", "text", "NOT NULL"), ("metadata", "bytea", "NOT NULL"), ("model", "bytea", ""),
            ],
            key: ["singleton"]
        ),
        Book(
            name: "strata_transaction",
            columns: [
                ("seq", "bigserial", ""), ("number", "bigint", ""), ("id", "uuid", "NOT NULL"),
                ("time", "double precision", "NOT NULL"), ("author", "text", ""), ("bundle", "text", ""),
                ("context", "text", ""), ("process", "text", ""),
            ],
            key: ["seq"]
        ),
        Book(
            name: "strata_change",
            columns: [
                ("seq", "bigint", "NOT NULL"), ("place", "bigint", "NOT NULL"), ("kind", "smallint", "NOT NULL"),
                ("entity", "integer", "NOT NULL"), ("keys", "bigint[]", "NOT NULL"), ("mask", "bytea", ""),
                ("tombstone", "bytea", ""),
            ],
            key: ["seq", "place"]
        ),
        Book(
            name: "strata_history",
            columns: [
                ("singleton", "boolean", "DEFAULT true CHECK (singleton)"), ("last", "bigint", "NOT NULL"),
                // The number from which on nothing was purged, once transactions were picked out; 0 before that.
                ("purged", "bigint", "NOT NULL"),
            ],
            key: ["singleton"]
        ),
        Book(
            name: "strata_consumer",
            columns: [
                ("name", "text COLLATE \"C\"", ""), ("number", "bigint", "NOT NULL"),
                ("seen", "double precision", "NOT NULL"),
            ],
            key: ["name"]
        ),
    ]

    /// The indexes of the table of transactions, by their names, each with its column, and with a condition if it
    /// contains only some rows.
    static let bookIndexes: [(name: String, isUnique: Bool, column: String, condition: String?)] = [
        ("strata_transaction_number", true, "number", nil),
        ("strata_transaction_new", false, "seq", "number IS NULL"),
        ("strata_transaction_id", false, "id", nil),
    ]

    /// The names of the bookkeeping tables, and of their indexes and sequences.
    static var bookNames: [String] {
        (books.map(\.name) + PortableTables.names).flatMap { [$0, $0 + "_pkey"] } + bookIndexes.map(\.name)
            + ["strata_transaction_seq_seq"]
    }

    private static var bookkeeping: [String] {
        books.map(\.sql)
            + bookIndexes.map { index in
                let rows = index.condition.map { " WHERE \($0)" } ?? ""
                let kind = index.isUnique ? "UNIQUE INDEX" : "INDEX"
                return "CREATE \(kind) \(index.name) ON strata_transaction (\(index.column))\(rows)"
            }
    }

    // MARK: - Tables

    /// The names of tables, sequences and unique indexes, which share a name space with the indexes of primary keys.
    static func takenNames(_ mapping: SQLMapping) -> Set<SQLName> {
        Set(
            mapping.tables.flatMap { [$0.name, sequence($0)] + $0.constraints.map(\.index) }
                + mapping.joinTables.map(\.name)
        )
    }

    /// The text before a primary key.
    ///
    /// The server names the index of the key after the table, `foo_pkey`. If a table has that name, then the key gets
    /// another name.
    private static func keyName(_ table: SQLName, besides taken: Set<SQLName>) -> String {
        guard taken.contains(SQLName(table.raw + "_pkey")) else { return "" }
        var names = UniqueNames(taken: taken.map(\.raw), naming: { SQLName($0, isQuoted: true) })
        return "CONSTRAINT \(names.name(PostgreSQLName.limited("strata_primary_" + table.raw))) "
    }

    /// Whether a constraint that has refused a row is the primary key of its table, and not a unique index.
    static func isPrimaryKey(_ constraint: String) -> Bool {
        constraint.hasPrefix("strata_primary_")
            || constraint.hasSuffix("_pkey") && !constraint.hasPrefix("strata_unique_")
    }

    /// The statement that makes a table of rows.
    static func create(_ table: SQLTable, as name: SQLName, besides taken: Set<SQLName>) -> String {
        let naming = SQLNaming.postgresql
        let columns =
            [
                "\(naming.key) bigint \(keyName(name, besides: taken))PRIMARY KEY", "\(naming.entity) integer NOT NULL",
                "\(naming.version) bigint NOT NULL",
            ]
            + table.columns.map { "\($0.name) \($0.type)" }
        return "CREATE TABLE \(name) (\(columns.joined(separator: ", ")))"
    }

    /// The statement that makes a sequence of keys.
    static func createSequence(_ name: SQLName, _ keys: KeyOrder, from start: Int64 = 1) -> String {
        "CREATE SEQUENCE \(name) \(keys.properties) START WITH \(start)"
    }

    /// The sequence that gives a hierarchy its keys, in blocks.
    static func sequence(_ table: SQLTable) -> SQLName {
        SQLName(PostgreSQLName.sequence(table.name.raw), isQuoted: true)
    }

    /// The statement that makes a table of pairs.
    static func create(_ join: SQLJoinTable, as name: SQLName, besides taken: Set<SQLName>) -> String {
        let columns = ([join.first, join.second].map { "\($0) bigint NOT NULL" }) + join.orders.map { "\($0) bigint" }
        let key = "\(keyName(name, besides: taken))PRIMARY KEY (\(join.first), \(join.second))"
        return "CREATE TABLE \(name) (\(columns.joined(separator: ", ")), \(key))"
    }

    /// A table with its columns.
    typealias Contents = (table: SQLName, columns: [SQLName])

    /// The tables of a store with their columns, the bookkeeping tables first.
    static func contents(_ mapping: SQLMapping) -> [Contents] {
        let naming = mapping.dialect.naming
        let rows = mapping.tables.map { table -> Contents in
            (table.name, [naming.key, naming.entity, naming.version] + table.columns.map(\.name))
        }
        let pairs = mapping.joinTables.map { join -> Contents in (join.name, [join.first, join.second] + join.orders) }
        let books = books.map { book -> Contents in
            (naming.name(book.name), book.columns.map { naming.name($0.name) })
        }
        // Whoever locks all of them locks the table of the metadata first, as transactions that read do.
        return books + rows + pairs
    }

    /// The sequences of a store.
    static func sequences(_ mapping: SQLMapping) -> [SQLName] {
        mapping.tables.map(sequence) + [mapping.dialect.naming.name("strata_transaction_seq_seq")]
    }

    /// The columns of all tables of a store, including its bookkeeping tables.
    static func columns(_ mapping: SQLMapping) -> [SQLName: Set<SQLName>] {
        Dictionary(contents(mapping).map { ($0.table, Set($0.columns)) }) { $1 }
    }

    // MARK: - Indexes

    /// An index, and its purpose.
    struct Index {
        let name: SQLName
        let table: SQLName
        let sql: String
        /// The columns, in their order; `nil` if the index also has anything else.
        let columns: [SQLName]?
        /// Whether it contains only some rows.
        var isPartial = false
        /// The constraint that it enforces; `nil` for an index that makes reads fast.
        var constraint: SQLConstraint?
    }

    static func indexes(_ mapping: SQLMapping) -> [Index] {
        // Tables and indexes have one name space.
        var names = UniqueNames(
            taken: mapping.tables.flatMap { [$0.name.raw, sequence($0).raw] + $0.constraints.map(\.index.raw) }
                + mapping.joinTables.map(\.name.raw),
            naming: { SQLName($0, isQuoted: true) }
        )
        var indexes: [Index] = []
        var known: Set<String> = []
        func add(_ name: String, on table: SQLName, definition: String, columns: [SQLName]?, isPartial: Bool = false) {
            guard known.insert("\(table) \(definition)").inserted else { return }
            let name = names.name(PostgreSQLName.limited(name))
            let sql = "CREATE INDEX \(name) ON \(table) \(definition)"
            indexes.append(Index(name: name, table: table, sql: sql, columns: columns, isPartial: isPartial))
        }
        for table in mapping.tables {
            for entity in table.entities {
                for slot in entity.layout.ownSlots where slot.kind == .reference {
                    guard let column = entity.columns[slot.index].name else { continue }
                    add(
                        "\(table.name.raw)_\(column.raw)_index",
                        on: table.name,
                        definition: "(\(column))",
                        columns: [column]
                    )
                }
            }
            for column in table.inverselessKeys {
                add(
                    "\(table.name.raw)_\(column.raw)_index",
                    on: table.name,
                    definition: "(\(column))",
                    columns: [column]
                )
            }
            if table.entities.count > 1 {
                let column = SQLNaming.postgresql.entity
                add("\(table.name.raw)_entity_index", on: table.name, definition: "(\(column))", columns: [column])
            }
            for entity in table.entities {
                for index in FetchIndexes(entity, mapping).definitions {
                    add(
                        index.name,
                        on: entity.table,
                        definition: index.text,
                        columns: index.columns,
                        isPartial: index.isPartial
                    )
                }
            }
            for constraint in table.constraints {
                let columns = constraint.columns.map { "\($0) NULLS FIRST" }.joined(separator: ", ")
                indexes.append(
                    Index(
                        name: constraint.index,
                        table: table.name,
                        sql: "CREATE UNIQUE INDEX \(constraint.index) ON \(table.name) (\(columns))",
                        columns: constraint.columns,
                        constraint: constraint
                    )
                )
            }
        }
        for join in mapping.joinTables {
            let columns = [join.second, join.first]
            add(
                "\(join.name.raw)_inverse_index",
                on: join.name,
                definition: "(\(join.second), \(join.first))",
                columns: columns
            )
        }
        return indexes
    }
}
