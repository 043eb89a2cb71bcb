import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

extension BatchTransaction {
    /// Changes the rows of an update with one statement, and then the other sides of the relationships that it sets.
    func update(_ update: BatchUpdate, _ entity: EntityMapping) throws {
        var rows = try RowSelection(update.rows, entity, file.queries)
        let clearsOtherSide = update.constantSlots.contains {
            $0.relationship?.inverse.map { !$0.isToMany } ?? false
        }
        // The other side changes first, and the predicate may read it.
        if clearsOtherSide { rows = try fixed(rows, entity) }
        try noteObsoleteFiles(update, entity, rows)
        for slot in update.constantSlots where slot.kind == .reference {
            try requireTarget(slot, update.constants, entity)
            try leave(slot, entity, rows)
        }
        let assignments = try BatchAssignments(update, entity, mapping)
        do {
            try change(assignments, rows, update, entity)
        } catch let error as SQLiteError where error.message.contains(BatchAssignments.rangeMessage) {
            throw CocoaError.batchValueOutOfRange(entity.layout)
        } catch let error as SQLiteError where error.message.contains(BatchAssignments.numberMessage) {
            throw CocoaError.batchValueIsNoNumber(entity.layout)
        } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
            throw uniquenessError(error, entity)
        }
        for slot in update.constantSlots where slot.kind == .reference { try joinOwner(slot, update, entity) }
    }

    /// Changes the rows.
    ///
    /// One statement is enough, unless a row gets a unique value that another row still has.
    private func change(
        _ assignments: BatchAssignments,
        _ rows: RowSelection,
        _ update: BatchUpdate,
        _ entity: EntityMapping
    ) throws {
        let unique = Set(mapping.table(of: entity)?.constraints.flatMap(\.columns) ?? [])
        let freed = assignments.computedColumns.filter(unique.contains)
        do {
            try change(assignments.statement(rows, entity), update, entity)
        } catch let error as SQLiteError where error.extendedCode == .constraintUnique && !freed.isEmpty {
            // All rows give up their values before the first one gets a new one.
            let values = assignments.values(of: rows, entity)
            try run("DROP TABLE IF EXISTS temp.strata_new")
            try run("CREATE TABLE temp.strata_new AS \(values.sql)", values.bindings)
            let cleared = freed.map { "\($0) = NULL" }.joined(separator: ", ")
            try run("UPDATE \(entity.table) SET \(cleared) WHERE Z_PK IN (SELECT k FROM temp.strata_new)")
            try change(assignments.statement(from: ("SELECT * FROM temp.strata_new", []), entity), update, entity)
            try run("DROP TABLE temp.strata_new")
        }
    }

    private func change(_ statement: BatchAssignments.Bound, _ update: BatchUpdate, _ entity: EntityMapping) throws {
        changes.count += try change(
            statement.sql,
            statement.bindings,
            \.changed,
            root: entity.layout.rootNumber,
            properties: update.propertyNames
        )
    }

    /// The same rows, selected by their keys in a temporary table, so that changes cannot alter the selection.
    private func fixed(_ rows: RowSelection, _ entity: EntityMapping) throws -> RowSelection {
        try run("CREATE TABLE IF NOT EXISTS temp.strata_meant (k INTEGER PRIMARY KEY)")
        try run("DELETE FROM temp.strata_meant")
        try run("INSERT INTO temp.strata_meant (k) \(rows.select("t0.Z_PK"))", rows.bindings)
        return RowSelection(keysOf: "SELECT k FROM temp.strata_meant", entity)
    }

    private func noteObsoleteFiles(_ update: BatchUpdate, _ entity: EntityMapping, _ rows: RowSelection) throws {
        let columns = update.constantSlots.map { entity.columns[$0.index] }.filter(\.isTagged).compactMap(\.name)
        guard !columns.isEmpty else { return }
        try noteObsoleteFiles(rows.select(columns.map { "t0.\($0)" }.joined(separator: ", ")), rows.bindings)
    }

    private func uniquenessError(_ error: SQLiteError, _ entity: EntityMapping) -> CocoaError {
        let table = mapping.table(of: entity)
        let constraint = table?.constraints.first { constraint in
            constraint.columns.allSatisfy { error.message.contains("\(entity.table.raw).\($0.raw)") }
        }
        return .batchUpdateBreaksConstraint(constraint?.attributes ?? [], entity.layout, error)
    }

    // MARK: - Relationships

    /// Removes rows from the relationships that their columns hold now, before these are overwritten.
    func leave(_ slot: Slot, _ entity: EntityMapping, _ rows: RowSelection) throws {
        let place = entity.columns[slot.index]
        guard let column = place.name, let inverse = slot.inverse,
            let owners = mapping.entity(modelNumber: slot.destinationNumber)
        else { return }
        let root = owners.layout.rootNumber
        if !inverse.isToMany {
            guard let back = owners.column(named: inverse.name), let name = back.name else { return }
            try change(
                "UPDATE \(owners.table) SET \(back.cleared(name)), Z_OPT = Z_OPT + 1 WHERE \(name) IN (\(rows.select("t0.Z_PK")))",
                rows.bindings,
                \.followed,
                root: root,
                properties: [inverse.name]
            )
        } else if place.order != nil {
            try change(
                "UPDATE \(owners.table) SET Z_OPT = Z_OPT + 1 WHERE Z_PK IN (\(rows.select("t0.\(column)")))",
                rows.bindings,
                \.followed,
                root: root,
                properties: [inverse.name]
            )
        } else if listsRows {
            try list(
                "SELECT Z_PK, Z_ENT FROM \(owners.table) WHERE Z_PK IN (\(rows.select("t0.\(column)")))",
                rows.bindings,
                \.related,
                [inverse.name]
            )
        }
    }

    /// Refuses a relationship to a missing row.
    private func requireTarget(_ slot: Slot, _ values: Row, _ entity: EntityMapping) throws {
        guard let target = values.reference(slot), let owners = mapping.entity(modelNumber: slot.destinationNumber)
        else {
            return
        }
        let found = try firstKey("SELECT Z_PK FROM \(owners.table) WHERE Z_PK = ?", [.integer(target.key)])
        if found == nil { throw CocoaError.missingBatchTarget(slot, target.key, entity.layout) }
    }

    /// Puts the rows at the end of the ordered relationship of their new destination.
    private func joinOwner(_ slot: Slot, _ update: BatchUpdate, _ entity: EntityMapping) throws {
        guard let target = update.constants.reference(slot) else { return }
        try join([target.key], slot, entity)
    }

    /// Adds new members to relationships, at the end of ordered ones.
    ///
    /// The owners of ordered ones get a new version.
    func join(_ targets: [Int64], _ slot: Slot, _ entity: EntityMapping) throws {
        let place = entity.columns[slot.index]
        guard let column = place.name, let inverse = slot.inverse, inverse.isToMany,
            let owners = mapping.entity(modelNumber: slot.destinationNumber)
        else { return }
        let list = SQLBinding.list(targets.map { .integer($0) })
        let these = "Z_PK IN (SELECT value FROM \(ValueList.tableFunction)(?))"
        if let order = place.order {
            for target in targets { try appendMembers(of: target, entity.table, column, order) }
            try change(
                "UPDATE \(owners.table) SET Z_OPT = Z_OPT + 1 WHERE \(these)",
                [list],
                \.followed,
                root: owners.layout.rootNumber,
                properties: [inverse.name]
            )
        } else if listsRows {
            try self.list(
                "SELECT Z_PK, Z_ENT FROM \(owners.table) WHERE \(these)",
                [list],
                \.related,
                [inverse.name]
            )
        }
    }

    /// Gives the members of an owner that have no position yet positions after the others.
    private func appendMembers(of owner: Int64, _ table: SQLName, _ column: SQLName, _ order: SQLName) throws {
        let start = try firstKey(
            "SELECT IFNULL(MAX(\(order)), ?) FROM \(table) WHERE \(column) = ?",
            [.integer(OrderKeys.first - OrderKeys.step), .integer(owner)]
        )
        try run(
            """
            UPDATE \(table) SET \(order) = ? + ? * n.place FROM (SELECT Z_PK AS member, ROW_NUMBER() OVER (ORDER BY Z_PK) \
            AS place FROM \(table) WHERE \(column) = ? AND \(order) IS NULL) AS n WHERE \(table).Z_PK = n.member
            """,
            [.integer(start ?? 0), .integer(OrderKeys.step), .integer(owner)]
        )
    }
}

extension SlotColumn {
    /// The assignments that clear a to-one relationship.
    func cleared(_ name: SQLName) -> String {
        [name, entity, order].compactMap { $0.map { "\($0) = NULL" } }.joined(separator: ", ")
    }
}
