import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

extension BatchTransaction {
    /// Changes the rows of an update with one statement, and then the other sides of the relationships that it sets.
    func update(_ update: BatchUpdate, _ entity: EntityMapping) throws {
        var rows = try RowSelection(update.rows, of: entity, queries: file.queries)
        let changesOtherSide = update.constantSlots.contains { slot in
            // The owners of an ordered relationship get a new version, and the time of it.
            entity.columns[slot.index].order != nil || slot.relationship?.inverse.map { !$0.isToMany } ?? false
        }
        // The other side changes first, and the predicate may read it.
        if changesOtherSide { rows = try fixed(rows, entity) }
        try listObsoleteFiles(of: update, to: entity, from: rows)
        for slot in update.constantSlots where slot.kind == .reference {
            try requireTarget(of: slot, in: update.constants, entity: entity)
        }
        let assignments = try BatchAssignments(for: update, to: entity, in: mapping)
        do {
            // Expressions see the rows as they were, too.
            let isComputed = changesOtherSide && !assignments.computedColumns.isEmpty
            if isComputed { try compute(assignments, of: rows, entity) }
            for slot in update.constantSlots where slot.kind == .reference { try leave(slot, of: entity, from: rows) }
            try change(assignments, to: rows, isComputed: isComputed, for: update, of: entity)
        } catch let error as SQLiteError where error.message.contains(BatchAssignments.rangeMessage) {
            throw CocoaError.batchValueOutOfRange(entity.layout)
        } catch let error as SQLiteError where error.message.contains(BatchAssignments.numberMessage) {
            throw CocoaError.batchValueIsNoNumber(entity.layout)
        } catch let error as SQLiteError where error.extendedCode == .constraintUnique {
            throw uniquenessError(error, entity)
        }
        for slot in update.constantSlots where slot.kind == .reference {
            try joinOwner(of: slot, in: update, entity: entity)
        }
    }

    /// Changes the rows.
    ///
    /// One statement is enough, unless a row gets a unique value that another row still has, or the values of the rows
    /// were computed before.
    private func change(
        _ assignments: BatchAssignments,
        to rows: RowSelection,
        isComputed: Bool,
        for update: BatchUpdate,
        of entity: EntityMapping
    ) throws {
        let unique = Set(mapping.table(of: entity)?.constraints.flatMap(\.columns) ?? [])
        let freed = assignments.computedColumns.filter(unique.contains)
        let changing = assignments.statement(from: ("SELECT * FROM temp.strata_new", []), entity)
        do {
            let statement = isComputed ? changing : assignments.statement(rows, entity)
            try change(by: statement, for: update, of: entity)
            guard isComputed else { return }
        } catch let error as SQLiteError where error.extendedCode == .constraintUnique && !freed.isEmpty {
            // All rows give up their values before the first one gets a new one.
            if !isComputed { try compute(assignments, of: rows, entity) }
            let cleared = freed.map { "\($0) = NULL" }.joined(separator: ", ")
            try run("UPDATE \(entity.table) SET \(cleared) WHERE Z_PK IN (SELECT k FROM temp.strata_new)")
            try change(by: changing, for: update, of: entity)
        }
        try run("DROP TABLE temp.strata_new")
    }

    /// Computes the new values of rows, in a temporary table.
    private func compute(_ assignments: BatchAssignments, of rows: RowSelection, _ entity: EntityMapping) throws {
        let values = assignments.values(of: rows, entity)
        try run("DROP TABLE IF EXISTS temp.strata_new")
        try run("CREATE TABLE temp.strata_new AS \(values.sql)", values.bindings)
    }

    private func change(by statement: BatchAssignments.Bound, for update: BatchUpdate, of entity: EntityMapping) throws
    {
        changes.count += try change(
            statement.sql,
            binding: statement.bindings,
            listedIn: \.changed,
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

    private func listObsoleteFiles(of update: BatchUpdate, to entity: EntityMapping, from rows: RowSelection) throws {
        let columns = update.constantSlots.map { entity.columns[$0.index] }.filter(\.isTagged).compactMap(\.name)
        guard !columns.isEmpty else { return }
        try listObsoleteFiles(rows.select(columns.map { "t0.\($0)" }.joined(separator: ", ")), rows.bindings)
    }

    private func uniquenessError(_ error: SQLiteError, _ entity: EntityMapping) -> CocoaError {
        let table = mapping.table(of: entity)
        let constraint = table?.constraints.first { constraint in
            constraint.columns.allSatisfy { error.message.contains("\(entity.table.raw).\($0.raw)") }
        }
        return .batchUpdateBreaksConstraint(on: constraint?.attributes ?? [], of: entity.layout, underlying: error)
    }

    // MARK: - Relationships

    /// Removes rows from the relationships that their columns hold now, before these are overwritten.
    func leave(_ slot: Slot, of entity: EntityMapping, from rows: RowSelection) throws {
        let place = entity.columns[slot.index]
        guard let column = place.name, let inverse = slot.inverse,
            let owners = mapping.entity(modelNumber: slot.destinationNumber)
        else { return }
        let root = owners.layout.rootNumber
        if !inverse.isToMany {
            guard let back = owners.column(named: inverse.name), let name = back.name else { return }
            try change(
                "UPDATE \(owners.table) SET \(back.cleared(name)), Z_OPT = Z_OPT + 1 WHERE \(name) IN (\(rows.select("t0.Z_PK")))",
                binding: rows.bindings,
                listedIn: \.followed,
                root: root,
                properties: [inverse.name]
            )
        } else if place.order != nil {
            try change(
                "UPDATE \(owners.table) SET Z_OPT = Z_OPT + 1 WHERE Z_PK IN (\(rows.select("t0.\(column)")))",
                binding: rows.bindings,
                listedIn: \.followed,
                root: root,
                properties: [inverse.name]
            )
        } else if listsRows {
            try list(
                "SELECT Z_PK, Z_ENT FROM \(owners.table) WHERE Z_PK IN (\(rows.select("t0.\(column)")))",
                binding: rows.bindings,
                listedIn: \.related,
                properties: [inverse.name]
            )
        }
    }

    /// Refuses a relationship to a missing row.
    private func requireTarget(of slot: Slot, in values: Row, entity: EntityMapping) throws {
        guard let target = values.reference(slot), let owners = mapping.entity(modelNumber: slot.destinationNumber)
        else {
            return
        }
        let found = try firstKey("SELECT Z_PK FROM \(owners.table) WHERE Z_PK = ?", [.integer(target.key)])
        if found == nil { throw CocoaError.missingBatchTarget(of: slot, key: target.key, in: entity.layout) }
    }

    /// Puts the rows at the end of the ordered relationship of their new destination.
    private func joinOwner(of slot: Slot, in update: BatchUpdate, entity: EntityMapping) throws {
        guard let target = update.constants.reference(slot) else { return }
        try join([target.key], by: slot, of: entity)
    }

    /// Adds new members to relationships, at the end of ordered ones.
    ///
    /// The owners of ordered ones get a new version.
    func join(_ targets: [Int64], by slot: Slot, of entity: EntityMapping) throws {
        let place = entity.columns[slot.index]
        guard let column = place.name, let inverse = slot.inverse, inverse.isToMany,
            let owners = mapping.entity(modelNumber: slot.destinationNumber)
        else { return }
        let list = SQLBinding.list(targets.map { .integer($0) })
        let these = "Z_PK IN (SELECT value FROM \(ValueList.tableFunction)(?))"
        if let order = place.order {
            for target in targets {
                try appendMembers(of: target, in: entity.table, referringBy: column, orderedBy: order)
            }
            try change(
                "UPDATE \(owners.table) SET Z_OPT = Z_OPT + 1 WHERE \(these)",
                binding: [list],
                listedIn: \.followed,
                root: owners.layout.rootNumber,
                properties: [inverse.name]
            )
        } else if listsRows {
            try self.list(
                "SELECT Z_PK, Z_ENT FROM \(owners.table) WHERE \(these)",
                binding: [list],
                listedIn: \.related,
                properties: [inverse.name]
            )
        }
    }

    /// Gives the members of an owner that have no position yet positions after the others.
    private func appendMembers(
        of owner: Int64,
        in table: SQLName,
        referringBy column: SQLName,
        orderedBy order: SQLName
    ) throws {
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
