import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Finds faults of a store: in its tables, between its rows, and in its history.
///
/// All checks see one moment, and change nothing. They read all tables.
package struct PostgreSQLVerifier {
    private let connection: Connection
    private let mapping: SQLMapping
    private var naming: SQLNaming { mapping.dialect.naming }
    private var problems: [String] = []

    private init(_ connection: Connection, _ mapping: SQLMapping) {
        self.connection = connection
        self.mapping = mapping
    }

    /// Checks a store.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - schema: The model that it was made with.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    /// - Returns: The faults, one sentence each; empty for a sound store.
    /// - Throws: `fileReadNoSuchFile` (260) if there is no store, and errors of reading.
    package static func problems(at url: URL, _ schema: Schema, configuration: String?) throws -> [String] {
        try PostgreSQLEngine.withConnection(to: url, .reading, timeout: 600) { connection, place in
            return try connection.inSnapshot {
                let metadata = try PostgreSQLEngine.existing(connection, place)
                let mapping = try SQLMapping(
                    schema,
                    configuration: configuration,
                    generation: metadata.generations.current
                )
                var verification = PostgreSQLVerifier(connection, mapping)
                verification.problems += try StoreTables.problems(mapping, in: connection)
                // Missing tables cannot be examined.
                guard verification.problems.isEmpty else { return verification.problems }
                let sequences = try StoreSequences(mapping, connection)
                verification.problems += try StoreIndexes(mapping, connection).problems + sequences.problems
                verification.problems += try ForeignKeys(mapping, connection).problems()
                for table in mapping.tables {
                    try verification.checkRows(table)
                    if sequences.has(table) { try verification.checkKeys(table) }
                }
                for entity in mapping.entities {
                    try verification.checkPresence(entity)
                    try verification.checkReferences(entity)
                }
                for join in mapping.joinTables { try verification.checkPairs(join) }
                try verification.checkFolded()
                // Derived attributes are computed from rows, which have to be readable.
                if try verification.checkDecimals() { try verification.checkDerived(place) }
                try verification.checkHistory()
                return verification.problems
            }
        }
    }

    /// Adds a problem if the query counts anything.
    private mutating func count(_ sql: String, _ what: (Int64) -> String) throws {
        let number = try connection.query(sql).firstInt64 ?? 0
        if number > 0 { problems.append(what(number)) }
    }

    // MARK: - Rows

    private mutating func checkRows(_ table: SQLTable) throws {
        let concrete = table.entities.filter { !$0.layout.isAbstract }.map { "\($0.number)" }.joined(separator: ", ")
        try count(
            "SELECT pg_catalog.count(*) FROM \(table.name) WHERE \(naming.entity) NOT IN (\(concrete.isEmpty ? "0" : concrete))"
        ) { "\($0) rows of \(table.name.raw) are of no entity of the model" }
        try count("SELECT pg_catalog.count(*) FROM \(table.name) WHERE \(naming.version) < 1") {
            "\($0) rows of \(table.name.raw) have no version"
        }
    }

    /// Reads all decimals as a fetch does.
    ///
    /// - Returns: Whether a `Decimal` can hold all of them.
    private mutating func checkDecimals() throws -> Bool {
        var areSound = true
        for table in mapping.tables {
            let columns = table.entities.flatMap { entity in
                entity.layout.ownSlots.filter { $0.kind == .decimal }.compactMap { entity.columns[$0.index].name }
            }
            guard !columns.isEmpty else { continue }
            var counts = columns.map { _ in 0 }
            let names = columns.map(\.description).joined(separator: ", ")
            try connection.each("SELECT \(names) FROM \(table.name)") { row in
                for index in columns.indices where !row.isNull(index) && row.decimal(index) == nil {
                    counts[index] += 1
                }
                return true
            }
            for (column, count) in zip(columns, counts) where count > 0 {
                areSound = false
                problems.append("\(count) rows of \(table.name.raw) have at \(column.raw) what no Decimal can hold")
            }
        }
        return areSound
    }

    private mutating func checkKeys(_ table: SQLTable) throws {
        let sequence = PostgreSQLSchema.sequence(table)
        let number = try KeyOrder.order(of: table, connection).greatestNumber(
            of: naming.key.description,
            last: "s.last_value"
        )
        // The sequence gives the number of a block. If it was not asked yet, then its value is the next one.
        try count(
            """
            SELECT pg_catalog.count(*) FROM \(table.name), \(sequence) AS s WHERE \(naming.key) < 1
            OR \(number) >= s.last_value + CASE WHEN s.is_called THEN \(PostgreSQLSchema.keyBlock) ELSE 0 END
            """
        ) { "\($0) rows of \(table.name.raw) have keys that were not given yet" }
    }

    /// The condition that the row `alias` belongs to an entity, or to one that inherits from it.
    private func isKind(_ alias: String, of entity: EntityMapping) -> String {
        "\(alias).\(naming.entity) BETWEEN \(entity.subtree.lowerBound) AND \(entity.subtree.upperBound)"
    }

    /// Counts rows that lack a value which the model requires.
    private mutating func checkPresence(_ entity: EntityMapping) throws {
        for slot in entity.layout.ownSlots {
            guard let lack = entity.lack(of: slot) else { continue }
            try count(
                "SELECT pg_catalog.count(*) FROM \(entity.table) AS t WHERE \(isKind("t", of: entity)) AND \(lack)"
            ) { "\($0) rows of \(entity.table.raw) have no \(slot.name), which is required" }
        }
    }

    private mutating func checkReferences(_ entity: EntityMapping) throws {
        for slot in entity.layout.ownSlots where slot.kind == .reference {
            let column = entity.columns[slot.index]
            guard let key = column.name, let target = mapping.entity(modelNumber: slot.destinationNumber) else {
                continue
            }
            let what = "\(entity.layout.name).\(slot.name)"
            let number = column.entity.map { " AND d.\(naming.entity) = t.\($0)" } ?? ""
            try count(
                """
                SELECT pg_catalog.count(*) FROM \(entity.table) AS t WHERE \(isKind("t", of: entity)) AND t.\(key) IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM \(target.table) AS d WHERE d.\(naming.key) = t.\(key) AND \(isKind("d", of: target))\(number))
                """
            ) { "\($0) objects have an object at \(what) that is not there, or not what it says" }
            if let inverse = slot.relationship?.inverse, !inverse.isToMany, inverse !== slot.relationship {
                try count(
                    """
                    SELECT pg_catalog.count(*) FROM (SELECT 1 FROM \(entity.table) AS t WHERE \(isKind("t", of: entity))
                    AND t.\(key) IS NOT NULL GROUP BY t.\(key) HAVING pg_catalog.count(*) > 1) AS u
                    """
                ) { "\($0) objects are at \(what) of several, and may be of one only" }
            }
        }
        for relationship in entity.layout.ownToMany {
            guard case .key(let key) = entity.toMany[relationship.index], key.isWithoutInverse else { continue }
            try count(
                """
                SELECT pg_catalog.count(*) FROM \(key.table) AS t WHERE t.\(key.column) IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM \(entity.table) AS o WHERE o.\(naming.key) = t.\(key.column) AND \(isKind("o", of: entity)))
                """
            ) { "\($0) members of \(entity.layout.name).\(relationship.name) have an owner that is not there" }
        }
    }

    private mutating func checkPairs(_ join: SQLJoinTable) throws {
        let ends = [
            (join.first, join.firstTable, join.ownerNumber), (join.second, join.secondTable, join.memberNumber),
        ]
        for (column, table, number) in ends {
            if let entity = mapping.entity(storeNumber: Int64(number)) {
                try count(
                    """
                    SELECT pg_catalog.count(*) FROM \(join.name) AS t JOIN \(table) AS d ON d.\(naming.key) = t.\(column)
                    WHERE NOT (\(isKind("d", of: entity)))
                    """
                ) { "\($0) pairs of \(join.name.raw) have an object in \(column.raw) that is no \(entity.layout.name)" }
            }
            try count(
                """
                SELECT pg_catalog.count(*) FROM \(join.name) AS t
                WHERE NOT EXISTS (SELECT 1 FROM \(table) AS d WHERE d.\(naming.key) = t.\(column))
                """
            ) { "\($0) pairs of \(join.name.raw) have an object in \(column.raw) that is not there" }
        }
        guard join.isSymmetric else { return }
        try count(
            """
            SELECT pg_catalog.count(*) FROM \(join.name) AS t WHERE NOT EXISTS
            (SELECT 1 FROM \(join.name) AS u WHERE u.\(join.first) = t.\(join.second) AND u.\(join.second) = t.\(join.first))
            """
        ) { "\($0) pairs of \(join.name.raw) are there in one direction only" }
    }

    // MARK: - Folded texts and derived attributes

    private mutating func checkFolded() throws {
        for table in mapping.tables {
            var differing = 0
            try FoldedColumns(table, naming)?.eachDiffering(connection) { differing += $0[0].count }
            if differing > 0 {
                problems.append("\(differing) rows of \(table.name.raw) have folded texts of something else")
            }
        }
    }

    /// Computes derived attributes anew, in pieces.
    private mutating func checkDerived(_ place: String) throws {
        guard let plan = DerivedPlan(mapping) else { return }
        let upkeep = DerivedUpkeep(plan, reading: RowQueries(mapping, place: place), on: connection, locks: false)
        for table in mapping.tables where table.entities.contains(where: \.layout.hasDerivedSlots) {
            var (last, outdated) = (Int64.min, 0)
            while true {
                let found = try connection.query(
                    "SELECT \(naming.key) FROM \(table.name) WHERE \(naming.key) > $1 ORDER BY 1 LIMIT 10000",
                    [.int8(last)]
                )
                let keys = found.rows.map { $0.int64(0) }
                guard let greatest = keys.last else { break }
                last = greatest
                outdated += try upkeep.differing(keys, table.entities[0].layout.rootNumber).count
            }
            if outdated > 0 {
                problems.append("\(outdated) rows of \(table.name.raw) have derived values that are out of date")
            }
        }
    }

    // MARK: - History

    private mutating func checkHistory() throws {
        let sequence = try connection.query("SELECT pg_catalog.pg_get_serial_sequence('strata_transaction', 'seq')")
        if let name = sequence[0].optionalString(0) {
            try count(
                """
                SELECT pg_catalog.count(*) FROM strata_transaction AS t, \(name) AS s
                WHERE t.seq > s.last_value OR t.seq = s.last_value AND NOT s.is_called
                """
            ) { "history: \($0) transactions have places that were not given yet" }
        } else {
            problems.append("history: no sequence gives transactions their places")
        }
        try count(
            "SELECT pg_catalog.count(*) FROM strata_change AS c WHERE NOT EXISTS (SELECT 1 FROM strata_transaction AS t WHERE t.seq = c.seq)"
        ) { "history: \($0) changes are of no transaction" }
        try count(
            "SELECT pg_catalog.count(*) FROM strata_change WHERE entity NOT BETWEEN 1 AND \(mapping.entities.count)"
        ) { "history: \($0) changes are of no entity of the model" }
        try count(
            """
            SELECT pg_catalog.count(*) FROM strata_transaction WHERE number > (SELECT last FROM strata_history) OR number < 1
            """
        ) { "history: \($0) transactions have numbers that were not given yet" }
        // Transactions are purged from the oldest on. Once a transaction was picked out, `purged` is not 0 any more,
        // and any number may be missing.
        try count(
            """
            SELECT COALESCE(pg_catalog.max(number) - pg_catalog.min(number) + 1 - pg_catalog.count(number), 0)
            FROM strata_transaction WHERE number IS NOT NULL AND EXISTS (SELECT FROM strata_history WHERE purged = 0)
            """
        ) { "history: \($0) numbers are missing between others" }
    }
}
