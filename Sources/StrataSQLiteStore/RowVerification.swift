import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// Checks the rows of a store whose tables fit the model.
struct RowVerification {
    private let mapping: SQLMapping
    private let external: ExternalData
    private let connection: Connection

    init(of mapping: SQLMapping, external: ExternalData, on connection: Connection) {
        self.mapping = mapping
        self.external = external
        self.connection = connection
    }

    func run(_ report: inout VerificationReport) throws {
        for table in mapping.tables {
            try checkEntities(table, &report)
            try checkCounter(table, &report)
            for entity in table.entities {
                try checkTypes(entity, &report)
                try checkRelationships(entity, &report)
            }
            for constraint in table.constraints { try check(constraint, of: table, report: &report) }
        }
        try checkTriggers(&report)
        for join in mapping.joinTables { try check(join, &report) }
        try checkExternalFiles(&report)
    }

    /// The first column of each row of a query.
    private func keys(_ query: String) throws -> [String] { try connection.strings(SQL(query)) }

    // MARK: - Rows by themselves

    private func checkEntities(_ table: SQLTable, _ report: inout VerificationReport) throws {
        let numbers = table.entities.filter { !$0.layout.isAbstract }.map { "\($0.number)" }
        let known = numbers.isEmpty ? "NULL" : numbers.joined(separator: ", ")
        report.add(
            table.name.raw,
            rows: try keys("SELECT Z_PK FROM \(table.name) WHERE Z_ENT IS NULL OR NOT (Z_ENT IN (\(known)))"),
            "of no entity that the table may hold"
        )
        report.add(
            table.name.raw,
            rows: try keys("SELECT Z_PK FROM \(table.name) WHERE Z_OPT IS NULL OR Z_OPT < 1"),
            "without a version"
        )
    }

    private func checkCounter(_ table: SQLTable, _ report: inout VerificationReport) throws {
        for entity in table.entities {
            let name = entity.layout.name
            let statement = try connection.statement("SELECT Z_SUPER, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?")
            try statement.bind(entity.number, at: 1)
            guard try statement.step() else {
                report.add("Z_PRIMARYKEY: entity \(name) (\(entity.number)) is missing")
                continue
            }
            let parent = entity.layout.parent.flatMap { mapping.entity(modelNumber: $0.number) }
            if statement[0].int64 != parent?.number ?? 0 {
                report.add("Z_PRIMARYKEY: entity \(name) has Z_SUPER \(statement[0].int64), not \(parent?.number ?? 0)")
            }
            guard entity.number == entity.rootNumber else { continue }
            let last = statement[1].int64
            let largest = try connection.firstInt64(SQL("SELECT MAX(Z_PK) FROM \(table.name)")) ?? 0
            if last < largest {
                report.add("Z_PRIMARYKEY: the counter of \(name) is \(last), but there is a row \(largest)")
            }
        }
    }

    /// Checks for values that SQLite accepts in a column, but that the attribute cannot have.
    private func checkTypes(_ entity: EntityMapping, _ report: inout VerificationReport) throws {
        for slot in entity.layout.ownSlots {
            guard let column = entity.columns[slot.index].name else { continue }
            let fits =
                switch slot.kind {
                case .int, .reference: "typeof(\(column)) = 'integer'"
                case .double: "typeof(\(column)) IN ('real', 'integer')"
                // A decimal that no number can represent may be a text.
                case .decimal: "typeof(\(column)) IN ('real', 'integer', 'text')"
                case .string: "typeof(\(column)) = 'text'"
                case .uuid: "typeof(\(column)) = 'blob' AND length(\(column)) = 16"
                case .data: "typeof(\(column)) = 'blob'"
                }
            report.add(
                entity.table.raw,
                rows: try keys("SELECT Z_PK FROM \(entity.table) WHERE \(column) NOT NULL AND NOT (\(fits))"),
                "whose \(slot.name) is of another type"
            )
            try checkPresence(of: slot, in: entity, report: &report)
        }
    }

    /// Checks for rows without a value that the model requires.
    private func checkPresence(of slot: Slot, in entity: EntityMapping, report: inout VerificationReport) throws {
        guard let lack = entity.lack(of: slot) else { return }
        let own = "Z_ENT BETWEEN \(entity.subtree.lowerBound) AND \(entity.subtree.upperBound)"
        report.add(
            entity.table.raw,
            rows: try keys("SELECT Z_PK FROM \(entity.table) WHERE \(own) AND \(lack)"),
            "whose \(slot.name) is required, and has no value"
        )
    }

    /// Checks the triggers.
    ///
    /// Without them a derived attribute does not change.
    private func checkTriggers(_ report: inout VerificationReport) throws {
        let present = Set(try keys("SELECT upper(name) FROM sqlite_schema WHERE type = 'trigger'"))
        for name in DerivedTriggers(mapping).names where !present.contains(name.uppercased()) {
            report.add("schema: trigger \(name) is missing")
        }
    }

    /// Checks for the index, which saves need; its name does not matter.
    private func checkIndex(of constraint: SQLConstraint, on table: SQLTable, report: inout VerificationReport) throws {
        let statement = try connection.statement(
            """
            SELECT (SELECT group_concat(upper(name), ' ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno))
            FROM pragma_index_list(?) AS i WHERE i."unique" AND NOT i.partial
            """
        )
        try statement.bind(table.name.raw, at: 1)
        let columns = constraint.columns.map { $0.raw.uppercased() }
        while try statement.step() {
            if Set(statement[0].string.split(separator: " ").map(String.init)) == Set(columns) { return }
        }
        report.add("schema: \(table.name.raw) has no unique index on \(columns.joined(separator: ", "))")
    }

    private func check(_ constraint: SQLConstraint, of table: SQLTable, report: inout VerificationReport) throws {
        try checkIndex(of: constraint, on: table, report: &report)
        let columns = constraint.columns.map(\.description)
        let present = columns.map { "\($0) NOT NULL" }.joined(separator: " AND ")
        let groups = try keys(
            """
            SELECT group_concat(Z_PK, ' = ') FROM \(table.name) WHERE \(present)
            GROUP BY \(columns.joined(separator: ", ")) HAVING COUNT(*) > 1
            """
        )
        report.add(
            table.name.raw,
            rows: groups,
            "with equal values of \(constraint.attributes.joined(separator: ", "))"
        )
    }

    // MARK: - Relationships

    private func checkRelationships(_ entity: EntityMapping, _ report: inout VerificationReport) throws {
        for slot in entity.layout.ownSlots where slot.kind == .reference {
            try checkToOne(slot, of: entity, report: &report)
        }
        for slot in entity.layout.ownToMany {
            guard case .key(let key) = entity.toMany[slot.index] else { continue }
            if key.isWithoutInverse {
                report.add(
                    key.table.raw,
                    rows: try keys(
                        """
                        SELECT m.Z_PK FROM \(key.table) AS m WHERE m.\(key.column) NOT NULL
                        AND NOT EXISTS (SELECT 1 FROM \(entity.table) AS o WHERE o.Z_PK = m.\(key.column))
                        """
                    ),
                    "in \(slot.name) of an object that does not exist"
                )
            }
            guard let order = key.order else { continue }
            // Equal positions are no damage: files of Apple's framework may have them.
            report.add(
                key.table.raw,
                rows: try keys("SELECT Z_PK FROM \(key.table) WHERE \(key.column) IS NULL AND \(order) NOT NULL"),
                "with a position in \(slot.name) of no object"
            )
            report.add(
                key.table.raw,
                rows: try keys(
                    "SELECT Z_PK FROM \(key.table) WHERE \(key.column) NOT NULL AND typeof(\(order)) <> 'integer'"
                ),
                "without a position in \(slot.name)"
            )
        }
    }

    private func checkToOne(_ slot: Slot, of entity: EntityMapping, report: inout VerificationReport) throws {
        let column = entity.columns[slot.index]
        guard let key = column.name, let destination = mapping.entity(modelNumber: slot.destinationNumber) else {
            return
        }
        let own = "m.Z_ENT BETWEEN \(entity.subtree.lowerBound) AND \(entity.subtree.upperBound)"
        let range = "\(destination.subtree.lowerBound) AND \(destination.subtree.upperBound)"
        report.add(
            entity.table.raw,
            rows: try keys(
                """
                SELECT m.Z_PK FROM \(entity.table) AS m WHERE \(own) AND m.\(key) NOT NULL AND NOT EXISTS
                (SELECT 1 FROM \(destination.table) AS d WHERE d.Z_PK = m.\(key) AND d.Z_ENT BETWEEN \(range))
                """
            ),
            "whose \(slot.name) does not exist"
        )
        if let number = column.entity {
            report.add(
                entity.table.raw,
                rows: try keys(
                    """
                    SELECT m.Z_PK FROM \(entity.table) AS m JOIN \(destination.table) AS d ON d.Z_PK = m.\(key)
                    WHERE \(own) AND m.\(number) IS NOT d.Z_ENT
                    """
                ),
                "whose \(slot.name) is of another entity than \(number.raw) says"
            )
        }
        guard let inverse = slot.inverse, !inverse.isToMany,
            let back = destination.column(named: inverse.name)?.name
        else { return }
        report.add(
            entity.table.raw,
            rows: try keys(
                """
                SELECT m.Z_PK FROM \(entity.table) AS m JOIN \(destination.table) AS d ON d.Z_PK = m.\(key)
                WHERE \(own) AND d.\(back) IS NOT m.Z_PK
                """
            ),
            "whose \(slot.name) does not lead back by \(inverse.name)"
        )
    }

    private func check(_ join: SQLJoinTable, _ report: inout VerificationReport) throws {
        for (column, table, number) in [
            (join.first, join.firstTable, join.ownerNumber), (join.second, join.secondTable, join.memberNumber),
        ] {
            guard let entity = mapping.entity(storeNumber: Int64(number)) else { continue }
            let range = "\(entity.subtree.lowerBound) AND \(entity.subtree.upperBound)"
            report.add(
                join.name.raw,
                rows: try keys(
                    """
                    SELECT j.\(join.first) || '-' || j.\(join.second) FROM \(join.name) AS j WHERE NOT EXISTS
                    (SELECT 1 FROM \(table) AS t WHERE t.Z_PK = j.\(column) AND t.Z_ENT BETWEEN \(range))
                    """
                ),
                "with an object in \(column.raw) that does not exist"
            )
        }
        for order in join.orders {
            report.add(
                join.name.raw,
                rows: try keys(
                    "SELECT \(join.first) || '-' || \(join.second) FROM \(join.name) WHERE typeof(\(order)) <> 'integer'"
                ),
                "without a position in \(order.raw)"
            )
        }
        guard join.isSymmetric else { return }
        report.add(
            join.name.raw,
            rows: try keys(
                """
                SELECT j.\(join.first) || '-' || j.\(join.second) FROM \(join.name) AS j WHERE NOT EXISTS
                (SELECT 1 FROM \(join.name) AS b WHERE b.\(join.first) = j.\(join.second) AND b.\(join.second) = j.\(join.first))
                """
            ),
            "in one direction only"
        )
    }

    // MARK: - External files

    private func checkExternalFiles(_ report: inout VerificationReport) throws {
        let files = Set(external.names())
        var named: Set<String> = []
        for table in mapping.tables {
            for entity in table.entities {
                for slot in entity.layout.ownSlots where entity.columns[slot.index].isTagged {
                    guard let column = entity.columns[slot.index].name else { continue }
                    // Only the head of the value is needed, or the name of a file.
                    let statement = try connection.statement(
                        SQL("SELECT Z_PK, substr(\(column), 1, 40) FROM \(table.name) WHERE \(column) NOT NULL")
                    )
                    while try statement.step() {
                        let place = "\(table.name.raw) row \(statement[0].int64)"
                        switch ExternalData.content(statement[1].bytes) {
                        case .inline: break
                        case .malformed: report.add("\(place): \(slot.name) has no tag that is known")
                        case .file(let name):
                            named.insert(name)
                            guard !files.contains(name) else { continue }
                            report.add("\(place): the external file \(name) of \(slot.name) is missing")
                        }
                    }
                }
            }
        }
        for name in files.subtracting(named).sorted() {
            report.add("the external file \(name) belongs to no row")
        }
    }
}
