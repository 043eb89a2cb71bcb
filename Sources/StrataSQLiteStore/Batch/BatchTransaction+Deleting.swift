import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

extension BatchTransaction {
    /// Deletes the rows of a batch.
    ///
    /// One statement is enough if no relationship needs attention. Otherwise the rows to delete are first gathered in
    /// tables.
    func delete(_ deletion: BatchDeletion, _ entity: EntityMapping) throws {
        let rows = try RowSelection(deletion.rows, of: entity, queries: file.queries)
        if DoomedRows.areNeeded(for: entity, mapping, isRecorded: history != nil)
            || history?.keepsValues(of: entity) == true
        {
            try delete(rows, entity)
        } else {
            changes.count += try change(
                "DELETE FROM \(entity.table) AS t0\(rows.restriction)",
                binding: rows.bindings,
                listedIn: \.deleted,
                root: entity.layout.rootNumber
            )
        }
    }

    private func delete(_ rows: RowSelection, _ entity: EntityMapping) throws {
        let doomed = DoomedRows(entity, mapping)
        try doomed.makeTables(self)
        guard try doomed.add(rows, of: entity, by: self) > 0 else { return }
        try doomed.addCascades(self)
        for link in doomed.links { try refuse(link, doomed) }
        for link in doomed.looseLinks { try refuse(link, doomed) }
        for link in doomed.links { try release(link, doomed) }
        for table in doomed.tables { try listObsoleteFiles(table, doomed) }
        for table in doomed.tables { try listDoomed(table, doomed) }
        try recordDeletions()
        for table in doomed.tables {
            changes.count += try run("DELETE FROM \(table.name) WHERE Z_PK IN (\(doomed.keys(of: table.root)))")
        }
        try doomed.clearTables(self)
    }

    /// Lists the rows that are about to be deleted.
    private func listDoomed(_ table: DoomedRows.Table, _ doomed: DoomedRows) throws {
        if listsRows {
            try list("SELECT k, e FROM \(doomed.name(table.root)) ORDER BY e, k", \.deleted)
        } else {
            changes.unlistedRoots.insert(table.layout.rootNumber)
        }
    }

    private func list(_ sql: String, _ kind: WritableKeyPath<BatchChanges, [BatchRows]>) throws {
        try list(sql, binding: [], listedIn: kind)
    }

    private func listObsoleteFiles(_ table: DoomedRows.Table, _ doomed: DoomedRows) throws {
        let columns = Set(table.entities.flatMap(\.columns).filter(\.isTagged).compactMap(\.name?.description)).sorted()
        guard !columns.isEmpty else { return }
        try listObsoleteFiles(
            "SELECT \(columns.joined(separator: ", ")) FROM \(table.name) WHERE Z_PK IN (\(doomed.keys(of: table.root)))"
        )
    }

    // MARK: - Delete rules

    /// Refuses a deletion that a deny rule forbids, or that would clear a required relationship.
    private func refuse(_ link: StoredLink, _ doomed: DoomedRows) throws {
        let others = doomed.othersOnly("d.Z_PK", of: link)
        switch link.link.relationship.deleteRule {
        case .deny:
            if let key = try firstKey("SELECT v.k FROM \(link.members(doomed)) WHERE \(others) LIMIT 1") {
                throw link.link.denied(key)
            }
        case .nullify:
            guard link.inverseColumn != nil, link.link.inverse?.isOptional == false else { return }
            if let key = try firstKey("SELECT d.Z_PK FROM \(link.members(doomed)) WHERE \(others) LIMIT 1") {
                throw link.link.mandatory(key)
            }
        default: break
        }
    }

    /// Refuses a deletion that would leave a relationship without an inverse leading to a deleted row.
    private func refuse(_ link: LooseLink, _ doomed: DoomedRows) throws {
        let holders =
            "\(link.column) IN (\(doomed.keys(of: link.destinationRoot))) AND \(doomed.othersOnly("Z_PK", link.owner.rootNumber))"
        guard let key = try firstKey("SELECT Z_PK FROM \(link.owner.table) WHERE \(holders) LIMIT 1") else { return }
        throw DeleteLink.loose(link.relationship, key)
    }

    /// Removes the rows from their relationships.
    private func release(_ link: StoredLink, _ doomed: DoomedRows) throws {
        let owners = doomed.keys(of: link)
        let inverse = link.link.inverse
        let root = link.destination.layout.rootNumber
        switch link.place {
        case .column(let column):
            // The column is deleted with its row. Only the order on the other side remains to be changed.
            guard let inverse, inverse.isToMany, let name = column.name else { break }
            let others =
                "Z_PK IN (SELECT \(name) FROM \(link.owner.table) WHERE Z_PK IN (\(owners))) AND \(doomed.othersOnly("Z_PK", of: link))"
            if column.order != nil {
                try change(
                    "UPDATE \(link.destination.table) SET Z_OPT = Z_OPT + 1 WHERE \(others)",
                    listedIn: \.followed,
                    root: root,
                    property: inverse
                )
            } else if history != nil {
                // Contexts need not be informed: they remove deleted objects from their relationships themselves.
                try list(
                    "SELECT Z_PK, Z_ENT FROM \(link.destination.table) WHERE \(others)",
                    binding: [],
                    listedIn: \.related,
                    properties: [inverse.name]
                )
            }
        case .toMany(.join(let side)): try release(side, of: link, from: doomed)
        case .toMany(.key(let key)) where key.isWithoutInverse:
            try run(
                "UPDATE \(key.table) SET \(key.column) = NULL\(key.clearedOrder) WHERE \(key.column) IN (\(owners))"
            )
        case .toMany: break
        }
        guard link.link.relationship.deleteRule == .nullify, let column = link.inverseColumn,
            let name = column.name
        else { return }
        try change(
            """
            UPDATE \(link.destination.table) SET \(column.cleared(name)), Z_OPT = Z_OPT + 1 WHERE \(name) IN (\(owners)) \
            AND \(doomed.othersOnly("Z_PK", of: link))
            """,
            listedIn: \.followed,
            root: root,
            property: inverse
        )
    }

    /// Removes the rows from a join table.
    private func release(_ side: ToManyMapping.JoinSide, of link: StoredLink, from doomed: DoomedRows) throws {
        let owners = doomed.keys(of: link)
        let members =
            "Z_PK IN (SELECT \(side.member) FROM \(side.table) WHERE \(side.owner) IN (\(owners))) AND \(doomed.othersOnly("Z_PK", of: link))"
        if side.inverseOrder != nil {
            try change(
                "UPDATE \(side.memberTable) SET Z_OPT = Z_OPT + 1 WHERE \(members)",
                listedIn: \.followed,
                root: link.destination.layout.rootNumber,
                property: link.link.inverse
            )
        } else if listsRows {
            try list(
                "SELECT Z_PK, Z_ENT FROM \(side.memberTable) WHERE \(members)",
                binding: [],
                listedIn: \.related,
                properties: [link.link.inverse?.name ?? ""]
            )
        }
        try run("DELETE FROM \(side.table) WHERE \(side.owner) IN (\(owners))")
        if side.isSymmetric { try run("DELETE FROM \(side.table) WHERE \(side.member) IN (\(owners))") }
    }

    private func change(
        _ sql: String,
        listedIn kind: WritableKeyPath<BatchChanges, [BatchRows]>,
        root: Int,
        property: Relationship?
    ) throws {
        try change(sql, binding: [], listedIn: kind, root: root, properties: property.map { [$0.name] } ?? [])
    }
}
