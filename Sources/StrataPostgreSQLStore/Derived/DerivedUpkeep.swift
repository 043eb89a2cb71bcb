import Foundation
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Keeps derived attributes up to date in one transaction of READ COMMITTED.
///
/// It collects the rows whose values may be outdated, and computes these anew when everything else is written.
///
/// If several transactions add members to one owner, then each of them locks the owner before it counts. So it sees
/// what the earlier ones have committed. If a value is copied from a row, then no other transaction changes it until
/// the copies are committed. A transaction that changes it later finds the copies.
///
/// Queries go to the server with the statements that were posted before. One round trip finds the outdated rows, and
/// another one reads all that the values are computed from, whatever the number of rows.
///
/// It is used by one thread.
final class DerivedUpkeep {
    let plan: DerivedPlan
    let queries: RowQueries
    let connection: Connection
    var naming: SQLNaming { queries.naming }
    /// The outdated rows, by the root entity's number in the model and the key.
    ///
    /// The value is true if the row itself was written, and false if only a row was written that it is computed from.
    private var outdated: [Int: [Int64: Bool]] = [:]
    /// The rows of another store whose copies keep the times of their last saves, in the same way.
    private var originals: [Int: [Int64: Row]] = [:]
    /// The queries for the keys of rows that may be outdated, each with the number of their root entity.
    private var questions: [(keys: PostedStatement, root: Int)] = []
    private let now: Double
    /// Whether rows are locked before they are read; false if nothing is written.
    private let locks: Bool

    /// The most rounds of derivation: a derived attribute may be derived from another derived attribute.
    private static let deepest = 1000

    init(
        _ plan: DerivedPlan,
        reading queries: RowQueries,
        on connection: Connection,
        locks: Bool = true,
        now: Double = Date().timeIntervalSinceReferenceDate
    ) {
        self.locks = locks
        self.now = now
        self.plan = plan
        self.queries = queries
        self.connection = connection
    }

    // MARK: - What is outdated

    func markOutdated(_ key: Int64, root: Int, isWritten: Bool = false) {
        if isWritten {
            outdated[root, default: [:]][key] = true
        } else if outdated[root]?[key] == nil {
            outdated[root, default: [:]][key] = false
        }
    }

    /// Notes that a row is a copy of a row of another store.
    func markCopy(_ key: Int64, of row: Row) { originals[row.layout.rootNumber, default: [:]][key] = row }

    /// Asks for the current owners of members.
    func askForOwners(of members: [Int64], _ root: Int) throws {
        guard !members.isEmpty else { return }
        for key in plan.memberKeys[root] ?? [] {
            try ask(
                "SELECT DISTINCT \(key.column) FROM \(key.table) WHERE \(naming.key) = ANY($1) AND \(key.column) IS NOT NULL",
                of: members,
                root: key.owners
            )
        }
    }

    /// Asks for the owners that count pairs with rows that are about to be deleted.
    func askForCounts(with members: [Int64], _ root: Int) throws {
        for pair in plan.pairKeys where pair.members == root {
            try ask(
                "SELECT DISTINCT \(pair.owner) FROM \(pair.table) WHERE \(pair.member) = ANY($1)",
                of: members,
                root: pair.owners
            )
        }
    }

    /// Asks for the rows that copy values of changed rows.
    func askForCopiers(of keys: [Int64], _ root: Int) throws {
        guard !keys.isEmpty else { return }
        for copy in plan.copyKeys[root] ?? [] {
            try ask(
                "SELECT \(naming.key) FROM \(copy.table) WHERE \(copy.column) = ANY($1)",
                of: keys,
                root: copy.copiers
            )
        }
    }

    private func ask(_ sql: String, of keys: [Int64], root: Int) throws {
        questions.append((try connection.post(sql, [.array(PostgreSQLArray(keys))]), root))
    }

    /// Marks the rows that the queries have found.
    func markFound() throws {
        for (keys, root) in questions {
            for row in try connection.answer(keys).rows { markOutdated(row.int64(0), root: root) }
        }
        questions = []
    }

    // MARK: - Computing

    /// Brings all outdated values up to date; the versions of the rows do not change.
    ///
    /// - Returns: The current state of the rows that were written before or have changed, by the root entity's number
    ///   in the model and the key.
    @discardableResult
    func bringUpToDate() throws -> [Int: [Int64: Row]] {
        var upToDate: [Int: [Int64: Row]] = [:]
        var round = 0
        while !outdated.isEmpty, round < Self.deepest {
            round += 1
            let current = outdated.sorted { $0.key < $1.key }
            outdated = [:]
            for sources in try sources(of: current) {
                let root = sources.root
                let rows = try computed(sources)
                var written: [Int64] = []
                for (entity, rows) in rows {
                    let changed = rows.filter(\.hasChanged).map(\.row)
                    if !changed.isEmpty { try write(changed, to: plan.attributes[entity.layout.number], of: entity) }
                    written += changed.map(\.key)
                    for (row, hasChanged) in rows
                    where hasChanged || sources.keys[row.key] == true || upToDate[root]?[row.key] != nil {
                        upToDate[root, default: [:]][row.key] = row
                    }
                }
                guard plan.isChained, !written.isEmpty else { continue }
                for key in written { markOutdated(key, root: root) }
                try askForOwners(of: written, root)
                try askForCopiers(of: written, root)
            }
            try markFound()
        }
        return upToDate
    }

    /// The keys of rows of one hierarchy whose derived attributes are wrong, in any order.
    ///
    /// The times of their last saves are not checked.
    func differing(_ keys: [Int64], _ root: Int) throws -> [Int64] {
        let keys = Dictionary(keys.map { ($0, false) }, uniquingKeysWith: { first, _ in first })
        return try sources(of: [(root, keys)]).flatMap { try computed($0) }.flatMap { $0.rows }.filter(\.hasChanged)
            .map(\.row.key)
    }

    /// The rows of one hierarchy with their correct values, by entity, and whether these differ from the stored ones.
    private func computed(_ sources: Sources) throws -> [(entity: EntityMapping, rows: [(row: Row, hasChanged: Bool)])]
    {
        guard let hierarchy = queries.mapping.entity(modelNumber: sources.root) else { return [] }
        var result: [(EntityMapping, [(Row, Bool)])] = []
        let rows = try sources.rows.flatMap { try queries.rows(try connection.answer($0), hierarchy) }
        for (number, rows) in Dictionary(grouping: rows, by: \.layout.number).sorted(by: { $0.key < $1.key }) {
            let attributes = plan.attributes[number]
            guard !attributes.isEmpty, let entity = queries.mapping.entity(modelNumber: number) else { continue }
            let pairs = rows.map { (old: $0, new: $0.copy()) }
            for attribute in attributes {
                let value = try values(of: attribute.source, entity, sources)
                for (old, new) in pairs {
                    if case .now? = attribute.source {
                        guard sources.keys[old.key] == true else { continue }
                        if let original = originals[sources.root]?[old.key] {
                            new.take(attribute.slot, from: original)
                            continue
                        }
                    }
                    new.setDerived(value(old), attribute.slot)
                    new.clearUnlessStorable(attribute.slot)
                }
            }
            result.append(
                (
                    entity,
                    pairs.map { old, new in
                        (new, !attributes.allSatisfy { old.hasSameValue(as: new, in: $0.slot) })
                    }
                )
            )
        }
        return result
    }

    private func write(_ rows: [Row], to attributes: [DerivedPlan.Attribute], of entity: EntityMapping) throws {
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
            if arrays.endRow() { try connection.post(sql, arrays.removeRows()) }
        }
        if arrays.rowCount > 0 { try connection.post(sql, arrays.removeRows()) }
    }
}

// MARK: - What values are computed from

extension DerivedUpkeep {
    /// Rows of one hierarchy, and the queries for the values that they are computed from.
    struct Sources {
        let root: Int
        /// The keys of the rows, each with whether the row itself was written.
        let keys: [Int64: Bool]
        /// The queries for the rows.
        fileprivate(set) var rows: [PostedStatement] = []
        /// The other queries about all of the rows, by the statement.
        fileprivate(set) var answers: [String: PostedStatement] = [:]
        /// The statements that list values for sums in the process, by the statement whose sum may be too large for the
        /// database.
        fileprivate(set) var sums: [String: String] = [:]

        fileprivate var parameter: PostgreSQLValue { .array(PostgreSQLArray(keys.keys.sorted())) }
    }

    /// Asks for rows and all that their values are computed from, in one round trip unless a sum is too large.
    ///
    /// Locks come first. So later counts include all that earlier holders of the locks have committed.
    private func sources(of outdated: [(key: Int, value: [Int64: Bool])]) throws -> [Sources] {
        var all = outdated.map { Sources(root: $0.key, keys: $0.value) }
        for index in all.indices { try askForRows(&all[index]) }
        for index in all.indices { try askForValues(&all[index]) }
        guard all.contains(where: { !$0.sums.isEmpty }) else { return all }
        let savepoint = try connection.post("SAVEPOINT strata_sum", isKept: false)
        for index in all.indices {
            let parameter = all[index].parameter
            for sql in all[index].sums.keys.sorted() {
                all[index].answers[sql] = try connection.post(sql, [parameter])
            }
        }
        try connection.post("RELEASE SAVEPOINT strata_sum", isKept: false)
        do {
            try connection.readPostedAnswers()
        } catch let error as PostgreSQLError where error.sqlState == "22003" && savepoint.isDone {
            try connection.command("ROLLBACK TO SAVEPOINT strata_sum; RELEASE SAVEPOINT strata_sum")
            for index in all.indices {
                let parameter = all[index].parameter
                for (sum, values) in all[index].sums {
                    all[index].answers[sum] = nil
                    all[index].answers[values] = try connection.post(values, [parameter])
                }
            }
        }
        return all
    }

    /// Locks the existing rows that this transaction has not written, in the order of their keys, and reads all.
    private func askForRows(_ sources: inout Sources) throws {
        guard let entity = queries.mapping.entity(modelNumber: sources.root) else { return }
        let written = sources.keys.filter { !locks || $0.value }.keys.sorted()
        let others = sources.keys.filter { locks && !$0.value }.keys.sorted()
        if !others.isEmpty {
            sources.rows.append(
                try connection.post(
                    "SELECT \(queries.rootShape(entity).plan.columns) FROM \(entity.table) AS t0 WHERE t0.\(naming.key) = ANY($1) ORDER BY t0.\(naming.key) FOR NO KEY UPDATE",
                    [.array(PostgreSQLArray(others))],
                    mayWait: true
                )
            )
        }
        if !written.isEmpty { sources.rows.append(try queries.askForRows(written, of: entity, on: connection)) }
    }

    /// Asks for the sources of the attributes of all entities of the hierarchy, because only the answers show the
    /// entity of each row.
    private func askForValues(_ sources: inout Sources) throws {
        guard let hierarchy = queries.mapping.entity(modelNumber: sources.root) else { return }
        for number in hierarchy.subtree {
            guard let entity = queries.mapping.entity(storeNumber: Int64(number)) else { continue }
            for attribute in plan.attributes[entity.layout.number] {
                switch attribute.source {
                case .copy(let slot, _)?: try ask(copying(slot, entity), &sources, mayWait: locks)
                case .count(let relationship)?: try ask(counting(relationship, entity), &sources)
                case .aggregate(let function, let relationship, let name)?:
                    guard let aggregate = aggregate(function, over: relationship, attribute: name, of: entity) else {
                        continue
                    }
                    if aggregate.mayBeTooLarge, let sql = aggregate.computing {
                        sources.sums[sql] = aggregate.listing
                    } else {
                        try ask(aggregate.computing ?? aggregate.listing, &sources)
                    }
                case .function?, .now?, nil: break
                }
            }
        }
    }

    private func ask(_ sql: String?, _ sources: inout Sources, mayWait: Bool = false) throws {
        guard let sql, sources.answers[sql] == nil else { return }
        sources.answers[sql] = try connection.post(sql, [sources.parameter], mayWait: mayWait)
    }

    /// The statement that reads the rows which a relationship leads to; no other transaction may change them until this
    /// one ends.
    private func copying(_ slot: Slot, _ entity: EntityMapping) -> String? {
        guard let column = entity.columns[slot.index].name,
            let destination = queries.mapping.entity(modelNumber: slot.destinationNumber)
        else { return nil }
        let lock = locks ? " ORDER BY t0.\(naming.key) FOR SHARE OF t0" : ""
        return """
            SELECT \(queries.rootShape(destination).plan.columns) FROM \(destination.table) AS t0
            WHERE t0.\(naming.key) IN (SELECT c.\(column) FROM \(entity.table) AS c WHERE c.\(naming.key) = ANY($1))\(lock)
            """
    }

    /// The statement that counts members by owner.
    private func counting(_ relationship: ToManySlot, _ entity: EntityMapping) -> String? {
        let (table, column): (SQLName, SQLName)
        switch entity.toMany[relationship.index] {
        case .key(let key): (table, column) = (key.table, key.column)
        case .join(let side): (table, column) = (side.table, side.owner)
        case .absent: return nil
        }
        return "SELECT \(column), pg_catalog.count(*) FROM \(table) WHERE \(column) = ANY($1) GROUP BY 1"
    }

    /// The values of an attribute for rows of one entity.
    private func values(of source: DerivedSource?, _ entity: EntityMapping, _ sources: Sources) throws -> (Row) ->
        PredicateValue
    {
        func answer(_ sql: String?) throws -> QueryResult? {
            try sql.flatMap { sources.answers[$0] }.map { try connection.answer($0) }
        }
        switch source {
        case nil: return { _ in .null }
        case .now?:
            let now = now
            return { _ in .date(now) }
        case .function(let function, let slot)?: return { function.apply([$0.predicateValue(slot)]) }
        case .copy(let slot, let name)?:
            var copied: [Int64: Row] = [:]
            if let destination = queries.mapping.entity(modelNumber: slot.destinationNumber),
                let found = try answer(copying(slot, entity))
            {
                for row in try queries.rows(found, destination) { copied[row.key] = row }
            }
            return { row in row.reference(slot).flatMap { copied[$0.key]?.predicateValue(named: name) } ?? .null }
        case .count(let relationship)?:
            var counts: [Int64: Int64] = [:]
            if let found = try answer(counting(relationship, entity)) {
                for row in found.rows { counts[row.int64(0)] = row.int64(1) }
            }
            return { .int(counts[$0.key] ?? 0) }
        case .aggregate(let function, let relationship, let name)?:
            var values: [Int64: PredicateValue] = [:]
            if let aggregate = aggregate(function, over: relationship, attribute: name, of: entity) {
                if let found = try answer(aggregate.computing) {
                    values = aggregate.computed(found)
                } else if let found = try answer(aggregate.listing) {
                    values = aggregate.evaluated(found)
                }
            }
            return { values[$0.key] ?? (function == .sum ? .int(0) : .null) }
        }
    }
}

extension Row {
    /// Sets a whole number to nil if the column cannot hold it.
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
