import Foundation
import StrataRows

/// How a model, or one configuration of it, is stored in the tables of a SQL store.
///
/// The names are those of Apple's framework, derived from the model alone. If Apple's rule leaves a choice, the present
/// tables of a file decide. It is made once when a store is opened, and is immutable.
package final class SQLMapping: Sendable {
    package let schema: Schema
    /// The dialect of the statements.
    package let dialect: Dialect
    /// The mappings by the number in this store, from 1 at index 0.
    package let entities: [EntityMapping]
    /// The tables of the hierarchies, in the order of the entities' numbers.
    package let tables: [SQLTable]
    package let joinTables: [SQLJoinTable]
    /// The name of a table or an index in the store, by the name that the model gives it.
    package let stored: @Sendable (String) -> String
    private let byModelNumber: [EntityMapping?]
    /// The positions of the tables, by the number of the root entity.
    private let tableOfRoot: [Int: Int]

    /// Maps a model.
    ///
    /// - Parameters:
    ///   - schema: The model.
    ///   - configuration: The configuration whose entities the store holds, or `nil` for all.
    ///   - catalog: The tables and columns of a file, which decide if a name is not certain.
    ///   - prefersFormerNames: Whether names of a former rule are tried first, if there is one.
    ///   - dialect: The dialect of the statements.
    ///   - stored: The names of tables and indexes in the store, by those that the model gives them.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if two tables of the model would have the same name.
    package init(
        _ schema: Schema,
        configuration: String? = nil,
        catalog: SQLCatalog? = nil,
        prefersFormerNames: Bool = false,
        dialect: Dialect,
        stored: @escaping @Sendable (String) -> String = { $0 }
    ) throws {
        var builder = MappingBuilder(
            schema,
            configuration: configuration,
            catalog: catalog,
            prefersFormerNames: prefersFormerNames,
            dialect: dialect,
            stored: stored
        )
        try builder.build()
        self.stored = stored
        self.schema = schema
        self.dialect = dialect
        entities = builder.mappings
        tables = builder.tables
        joinTables = builder.joinTables
        byModelNumber = builder.mappingsByModelNumber
        tableOfRoot = Dictionary(
            uniqueKeysWithValues: builder.tables.enumerated().map { ($1.entities[0].rootNumber, $0) }
        )
    }

    /// The mapping of an entity by its layout; `nil` if the store does not hold the entity.
    package func entity(_ layout: EntityLayout) -> EntityMapping? { byModelNumber[layout.number] }

    /// The mapping of an entity by its number in the model; `nil` if the store does not hold it.
    package func entity(modelNumber: Int) -> EntityMapping? {
        byModelNumber.indices.contains(modelNumber) ? byModelNumber[modelNumber] : nil
    }

    /// The mapping of an entity by its number in the store; `nil` for a number that no entity has.
    @inline(__always)
    package func entity(storeNumber: Int64) -> EntityMapping? {
        storeNumber > 0 && storeNumber <= entities.count ? entities[Int(storeNumber) - 1] : nil
    }

    /// The table of an entity's hierarchy.
    package func table(of mapping: EntityMapping) -> SQLTable? { tableOfRoot[mapping.rootNumber].map { tables[$0] } }

    /// The tables and columns that the mapping needs and a file lacks: `ZTABLE` or `ZTABLE.ZCOLUMN`.
    package func missing(in catalog: SQLCatalog) -> [String] {
        var missing: [String] = []
        func require(_ columns: [SQLName], of table: SQLName) {
            guard catalog.hasTable(table.raw) else { return missing.append(table.raw) }
            for column in columns where !catalog.hasColumn(column.raw, in: table.raw) {
                missing.append("\(table.raw).\(column.raw)")
            }
        }
        if !catalog.hasTable("Z_PRIMARYKEY") { missing.append("Z_PRIMARYKEY") }
        for table in tables { require([.key, .entity, .version] + table.columns.map(\.name), of: table.name) }
        for join in joinTables { require([join.first, join.second] + join.orders, of: join.name) }
        return missing
    }
}

/// The tables and columns of a file.
///
/// Names are compared without regard to case, as SQLite does.
package struct SQLCatalog: Sendable {
    private let columns: [String: [String]]

    /// - Parameter columns: The columns by table.
    package init(_ columns: [String: [String]]) {
        self.columns = Dictionary(columns.map { ($0.key.uppercased(), $0.value) }, uniquingKeysWith: +)
    }

    package var isEmpty: Bool { columns.isEmpty }
    package var tables: [String] { columns.keys.sorted() }

    package func hasTable(_ name: String) -> Bool { columns[name.uppercased()] != nil }

    package func hasColumn(_ name: String, in table: String) -> Bool {
        let name = name.uppercased()
        return columns[table.uppercased()]?.contains { $0.uppercased() == name } ?? false
    }

    package func columns(of table: String) -> [String] { columns[table.uppercased()] ?? [] }
}
