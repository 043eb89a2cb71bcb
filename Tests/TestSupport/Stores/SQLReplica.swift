import CoreData
import Expectations
import Foundation
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite
import StrataSQLiteStore
import StrataStoreChecks
import Testing

/// The rows of a store, copied into separate tables, so that nothing stands between a compiled query and SQLite.
package final class SQLReplica {
    package let connection: Connection
    package let mapping: SQLMapping

    /// Copies the rows of a store.
    ///
    /// - Parameters:
    ///   - source: The store whose rows are copied.
    ///   - model: The store's model.
    /// - Throws: Errors of SQLite or the store.
    package init(copying source: any RowStore, _ model: FrozenModel) throws {
        var options = Connection.Options()
        options.functions = PredicateFunctions.all
        options.aggregates = PredicateFunctions.aggregates
        options.collations = PredicateCollations.all
        connection = try Connection(path: ":memory:", access: .readWriteCreate, options: options)
        mapping = try SQLMapping(model.schema)
        for statement in SQLiteSchema(mapping).statements { try connection.execute(statement) }
        for entity in mapping.entities where entity.number == entity.rootNumber {
            let everything = FetchPlan(
                layout: entity.layout,
                entityNumbers: [],
                coversHierarchy: true,
                predicate: nil,
                sort: nil,
                limit: 0,
                offset: 0
            )
            for row in try source.rows(for: everything) { try insert(row, source) }
        }
    }

    // MARK: - Writing

    private func insert(_ row: Row, _ source: any RowStore) throws {
        let entity = try require(mapping.entity(row.layout))
        try run(
            "INSERT INTO \(entity.table) (Z_PK, Z_ENT, Z_OPT) VALUES (?, ?, 1)",
            [.integer(row.key), .integer(Int64(entity.number))]
        )
        for slot in row.layout.slots {
            guard let column = entity.columns[slot.index].name, let value = binding(row, slot) else { continue }
            try run("UPDATE \(entity.table) SET \(column) = ? WHERE Z_PK = ?", [value, .integer(row.key)])
        }
        for relationship in row.layout.toMany {
            let owner = ObjectReference(key: row.key, entity: row.layout.number)
            let members = try source.members(of: relationship, ownedBy: owner)
            switch entity.toMany[relationship.index] {
            case .join(let side):
                for member in members {
                    let pair: [SQLBinding] = [.integer(row.key), .integer(member.key)]
                    try run("INSERT OR IGNORE INTO \(side.table) (\(side.owner), \(side.member)) VALUES (?, ?)", pair)
                }
            case .key(let key) where key.isWithoutInverse:
                pending.append { replica in
                    for member in members {
                        try replica.run(
                            "UPDATE \(key.table) SET \(key.column) = ? WHERE Z_PK = ?",
                            [.integer(row.key), .integer(member.key)]
                        )
                    }
                }
            case .key, .absent: break
            }
        }
    }

    /// Work that needs rows which are not there yet.
    private var pending: [(SQLReplica) throws -> Void] = []

    /// Does the work that needs all rows.
    package func finish() throws {
        for action in pending { try action(self) }
        pending = []
    }

    private func binding(_ row: Row, _ slot: Slot) -> SQLBinding? {
        guard !row.isNull(slot.index) else { return nil }
        if slot.kind == .reference { return row.reference(slot).map { .integer($0.key) } }
        let attribute = PredicateAttribute(name: slot.name, type: slot.type.predicateType, slot: slot.index)
        return SQLBinding(row.predicateValue(of: attribute))
    }

    private func run(_ text: String, _ bindings: [SQLBinding]) throws {
        let statement = try connection.statement(SQL(text))
        try statement.bind(bindings)
        try statement.run()
    }

    // MARK: - Reading

    /// The keys of the rows that a plan asks for, in order.
    package func keys(for plan: FetchPlan) throws -> [Int64] {
        guard let query = try text(for: plan) else { return [] }
        let statement = try connection.statement(SQL(query.text))
        try statement.bind(query.bindings)
        var keys: [Int64] = []
        while try statement.step() { keys.append(statement[0].int64) }
        return keys
    }

    /// The statement for a plan, and its values.
    package func text(for plan: FetchPlan) throws -> (text: String, bindings: [SQLBinding])? {
        guard let entity = mapping.entity(plan.layout) else { return nil }
        let query = try QueryCompiler.compile(plan, for: entity, in: mapping)
        var conditions = query.condition.map { [$0] } ?? []
        if !plan.coversHierarchy {
            let numbers = plan.entityNumbers.compactMap { mapping.entity(modelNumber: $0)?.number }
            conditions.append("t0.Z_ENT IN (\(numbers.map(String.init).joined(separator: ", ")))")
        }
        var text = "SELECT t0.Z_PK FROM \(entity.table) t0\(query.joins)"
        if !conditions.isEmpty { text += " WHERE \(conditions.joined(separator: " AND "))" }
        if let order = query.order { text += " ORDER BY \(order)" }
        var bindings = query.bindings
        if plan.limit > 0 || plan.offset > 0 {
            text += " LIMIT ? OFFSET ?"
            bindings += [.integer(Int64(plan.limit > 0 ? plan.limit : -1)), .integer(Int64(plan.offset))]
        }
        return (text, bindings)
    }
}
