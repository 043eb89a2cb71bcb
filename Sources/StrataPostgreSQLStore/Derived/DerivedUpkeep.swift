import Foundation
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Keeps derived attributes up to date in one transaction of READ COMMITTED: gathers the rows whose values may be outdated, and computes
/// these anew when everything else is written.
///
/// Of several transactions that give one owner members, each locks the owner before it counts, and so sees what those before it have
/// committed. Of a row that is copied from, nobody changes the value until the copies are committed, and who has changed it finds them.
///
/// Used by one thread.
final class DerivedUpkeep {
    let plan: DerivedPlan
    let queries: RowQueries
    let connection: Connection
    var naming: SQLNaming { queries.naming }
    /// By the root entity's number in the model, and the key: whether the row itself was written, or only what it is computed from.
    private var outdated: [Int: [Int64: Bool]] = [:]
    private let now = Date().timeIntervalSinceReferenceDate
    /// Whether rows are locked before they are looked at; not where nothing is written.
    private let locks: Bool

    /// How often attributes may be derived from derived ones, one behind the other.
    private static let deepest = 1000

    init(_ plan: DerivedPlan, _ queries: RowQueries, _ connection: Connection, locks: Bool = true) {
        self.locks = locks
        self.plan = plan
        self.queries = queries
        self.connection = connection
    }

    // MARK: - What is outdated

    func note(_ key: Int64, root: Int, isWritten: Bool = false) {
        if isWritten {
            outdated[root, default: [:]][key] = true
        } else if outdated[root]?[key] == nil {
            outdated[root, default: [:]][key] = false
        }
    }

    /// Notes the owners that members have now.
    func noteOwners(of members: [Int64], _ root: Int) throws {
        guard !members.isEmpty else { return }
        for key in plan.memberKeys[root] ?? [] {
            try note(
                "SELECT DISTINCT \(key.column) FROM \(key.table) WHERE \(naming.key) = ANY($1) AND \(key.column) IS NOT NULL",
                members,
                key.owners
            )
        }
    }

    /// Notes who counts pairs with rows that are about to be deleted.
    func noteCounts(with members: [Int64], _ root: Int) throws {
        for pair in plan.pairKeys where pair.members == root {
            try note(
                "SELECT DISTINCT \(pair.owner) FROM \(pair.table) WHERE \(pair.member) = ANY($1)",
                members,
                pair.owners
            )
        }
    }

    /// Notes who copies values of changed rows.
    func noteCopiers(of keys: [Int64], _ root: Int) throws {
        guard !keys.isEmpty else { return }
        for copy in plan.copyKeys[root] ?? [] {
            try note("SELECT \(naming.key) FROM \(copy.table) WHERE \(copy.column) = ANY($1)", keys, copy.copiers)
        }
    }

    private func note(_ sql: String, _ keys: [Int64], _ root: Int) throws {
        for row in try connection.query(sql, [.array(PostgreSQLArray(keys))]).rows { note(row.int64(0), root: root) }
    }

    // MARK: - Computing

    /// Brings all that is outdated up to date; the versions of the rows stay.
    ///
    /// - Returns: The keys of the rows that have changed, by the root entity's number in the model.
    @discardableResult
    func settle() throws -> [Int: Set<Int64>] {
        var changed: [Int: Set<Int64>] = [:]
        var round = 0
        while !outdated.isEmpty, round < Self.deepest {
            round += 1
            let current = outdated.sorted { $0.key < $1.key }
            outdated = [:]
            for (root, keys) in current {
                // The transaction has those that it has written.
                try lock(keys.filter { !$0.value }.map(\.key), root, "NO KEY UPDATE")
            }
            for (root, keys) in current {
                let written = try settle(keys, root)
                guard !written.isEmpty else { continue }
                changed[root, default: []].formUnion(written)
                guard plan.isChained else { continue }
                for key in written { note(key, root: root) }
                try noteOwners(of: written, root)
                try noteCopiers(of: written, root)
            }
        }
        return changed
    }

    /// Locks rows, those that are there, in the order of their keys.
    private func lock(_ keys: [Int64], _ root: Int, _ strength: String) throws {
        guard locks, !keys.isEmpty, let entity = queries.mapping.entity(modelNumber: root) else { return }
        try connection.query(
            "SELECT \(naming.key) FROM \(entity.table) WHERE \(naming.key) = ANY($1) ORDER BY \(naming.key) FOR \(strength)",
            [.array(PostgreSQLArray(keys))]
        )
    }

    /// Computes the derived attributes of rows of one hierarchy.
    ///
    /// - Returns: The keys of those that have changed.
    private func settle(_ keys: [Int64: Bool], _ root: Int) throws -> [Int64] {
        var changed: [Int64] = []
        for (entity, rows) in try computed(keys, root) {
            try write(rows, plan.attributes[entity.layout.number], entity)
            changed += rows.map(\.key)
        }
        return changed
    }

    /// The keys of rows of one hierarchy whose derived attributes are not what they should be, in an order of their own; the moments of their
    /// last saves are believed.
    func differing(_ keys: [Int64], _ root: Int) throws -> [Int64] {
        let keys = Dictionary(keys.map { ($0, false) }, uniquingKeysWith: { first, _ in first })
        return try computed(keys, root).flatMap { $0.rows.map(\.key) }
    }

    /// The rows of one hierarchy as they should be, by entity, without those that are so.
    private func computed(_ keys: [Int64: Bool], _ root: Int) throws -> [(entity: EntityMapping, rows: [Row])] {
        guard let hierarchy = queries.mapping.entity(modelNumber: root) else { return [] }
        var result: [(EntityMapping, [Row])] = []
        let rows = try queries.rows(keys.keys.sorted(), hierarchy, connection)
        for (number, rows) in Dictionary(grouping: rows, by: \.layout.number).sorted(by: { $0.key < $1.key }) {
            let attributes = plan.attributes[number]
            guard !attributes.isEmpty, let entity = queries.mapping.entity(modelNumber: number) else { continue }
            var pairs = rows.map { (old: $0, new: $0.copy()) }
            for attribute in attributes {
                let value = try values(of: attribute.source, rows, entity)
                for (old, new) in pairs {
                    if case .now? = attribute.source, keys[old.key] != true { continue }
                    new.setDerived(value(old), attribute.slot)
                    new.clearUnlessStorable(attribute.slot)
                }
            }
            pairs.removeAll { old, new in attributes.allSatisfy { old.hasSameValue(as: new, in: $0.slot) } }
            if !pairs.isEmpty { result.append((entity, pairs.map(\.new))) }
        }
        return result
    }

    private func write(_ rows: [Row], _ attributes: [DerivedPlan.Attribute], _ entity: EntityMapping) throws {
        let columns = attributes.compactMap { attribute in
            entity.columns[attribute.slot.index].name.map { (slot: attribute.slot, name: $0) }
        }
        let types = [.int8] + columns.map(\.slot.columnType)
        let assignments = columns.enumerated().map { "\($1.name) = u.c\($0 + 1)" }.joined(separator: ", ")
        let names = types.indices.map { "c\($0)" }.joined(separator: ", ")
        let sql =
            "UPDATE \(entity.table) AS t SET \(assignments) FROM \(unnested(types, from: 1)) AS u (\(names)) WHERE t.\(naming.key) = u.c0"
        var arrays = ColumnArrays(types)
        for row in rows.sorted(by: { $0.key < $1.key }) {
            arrays.append(row.key, to: 0)
            for (index, column) in columns.enumerated() {
                arrays.append(PostgreSQLValue(row, column.slot), to: index + 1)
            }
            if arrays.endRow() { try connection.post(sql, arrays.take()) }
        }
        if arrays.rowCount > 0 { try connection.post(sql, arrays.take()) }
    }

    // MARK: - Values

    /// The values of an attribute for rows of one entity.
    private func values(of source: DerivedSource?, _ rows: [Row], _ entity: EntityMapping) throws -> (Row) ->
        PredicateValue
    {
        switch source {
        case nil: return { _ in .null }
        case .now?:
            let now = now
            return { _ in .date(now) }
        case .function(let function, let slot)?: return { function.apply([$0.predicateValue(slot)]) }
        case .copy(let slot, let name)?:
            let copied = try copied(rows, slot)
            return { row in row.reference(slot).flatMap { copied[$0.key]?.predicateValue(named: name) } ?? .null }
        case .count(let relationship)?:
            let counts = try counts(relationship, rows.map(\.key), entity)
            return { .int(counts[$0.key] ?? 0) }
        case .aggregate(let function, let relationship, let name)?:
            let values = try aggregates(function, relationship, name, rows.map(\.key), entity)
            return { values[$0.key] ?? (function == .sum ? .int(0) : .null) }
        }
    }

    /// The rows that a relationship leads to, which nobody else may change until the transaction ends.
    private func copied(_ rows: [Row], _ slot: Slot) throws -> [Int64: Row] {
        let keys = Set(rows.compactMap { $0.reference(slot)?.key }).sorted()
        guard !keys.isEmpty, let destination = queries.mapping.entity(modelNumber: slot.destinationNumber) else {
            return [:]
        }
        try lock(keys, destination.layout.rootNumber, "SHARE")
        let found = try queries.rows(keys, destination, connection)
        return Dictionary(found.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
    }

    private func counts(_ relationship: ToManySlot, _ owners: [Int64], _ entity: EntityMapping) throws -> [Int64: Int64]
    {
        let (table, column): (SQLName, SQLName)
        switch entity.toMany[relationship.index] {
        case .key(let key): (table, column) = (key.table, key.column)
        case .join(let side): (table, column) = (side.table, side.owner)
        case .absent: return [:]
        }
        let found = try connection.query(
            "SELECT \(column), pg_catalog.count(*) FROM \(table) WHERE \(column) = ANY($1) GROUP BY 1",
            [.array(PostgreSQLArray(owners))]
        )
        return Dictionary(found.rows.map { ($0.int64(0), $0.int64(1)) }, uniquingKeysWith: { first, _ in first })
    }
}

extension Row {
    /// Sets a whole number that the column cannot hold to nil.
    fileprivate func clearUnlessStorable(_ slot: Slot) {
        guard !isNull(slot.index), slot.kind == .int else { return }
        let number = int(slot.word)
        let isStorable =
            switch slot.type {
            case .integer16: Int16(exactly: number) != nil
            case .integer32: Int32(exactly: number) != nil
            default: true
            }
        if !isStorable { setNull(slot) }
    }
}
