import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension BatchTransaction {
    /// The rows that are to be deleted, each once.
    private struct DoomedRows {
        private(set) var rows: [Row] = []
        private var names: Set<RowName> = []

        mutating func add(_ row: Row) {
            if names.insert(RowName(row)).inserted { rows.append(row) }
        }

        func contains(_ row: Row) -> Bool { names.contains(RowName(row)) }
    }

    /// Deletes the rows of a batch, and the rows that delete rules add to them.
    func delete(_ deletion: BatchDeletion) throws {
        var doomed = DoomedRows()
        for row in try rows(for: deletion.rows) { doomed.add(row) }
        guard !doomed.rows.isEmpty else { return }
        var position = 0
        while position < doomed.rows.count {
            let level = Array(doomed.rows[position...])
            position = doomed.rows.count
            try lock(level)
            try forEachLink(of: level) { link, rows in
                guard link.relationship.deleteRule == .cascade else { return }
                for (_, members) in try members(link, rows) { for member in members { doomed.add(member) } }
            }
        }
        try forEachLink(of: doomed.rows) { link, rows in try checkRule(of: link, from: rows, unlessDeletedIn: doomed) }
        try refuseLoose(doomed)
        try forEachLink(of: doomed.rows) { link, rows in try release(link, from: rows, keeping: doomed) }
        for row in doomed.rows {
            store.deleted.append(ExpectedRow(layout: row.layout, key: row.key, baseVersion: row.version))
            changes.deleted.add(row.key, row.layout)
        }
        changes.count = doomed.rows.count
    }

    /// Locks rows before their related rows are read, so that no other transaction can relate rows to them any more.
    ///
    /// - Throws: ``PostgreSQLError`` with the code 40001 if others have changed or deleted some of them.
    private func lock(_ rows: [Row]) throws {
        for (root, rows) in Dictionary(grouping: rows, by: \.layout.rootNumber).sorted(by: { $0.key < $1.key }) {
            guard let entity = database.mapping.entity(modelNumber: root) else { continue }
            let keys = rows.map(\.key).sorted()
            let found = try connection.answer(
                try connection.post(
                    SaveTransaction.locking(
                        returning: "\(database.naming.key), \(database.naming.version)",
                        of: entity.table,
                        naming: database.naming,
                        strength: earlier.strength
                    ),
                    [.array(PostgreSQLArray(keys))],
                    mayWait: true
                )
            )
            let versions = Dictionary(
                found.rows.map { ($0.int64(0), $0.int64(1)) },
                uniquingKeysWith: { first, _ in first }
            )
            guard rows.allSatisfy({ versions[$0.key] == $0.version }) else {
                earlier.addOvertaking(keys, root: root)
                throw Self.overtaken
            }
        }
    }

    /// Calls `body` with the stored relationships of rows, each with the rows that have it.
    private func forEachLink(of rows: [Row], _ body: (DeleteLink, [Row]) throws -> Void) throws {
        for (_, rows) in Dictionary(grouping: rows, by: { $0.layout.number }).sorted(by: { $0.key < $1.key }) {
            let layout = rows[0].layout
            for link in layout.deleteLinks where link.owner.subtree.contains(layout.number) { try body(link, rows) }
        }
    }

    /// The rows that a relationship of rows leads to, by the row.
    private func members(_ link: DeleteLink, _ rows: [Row]) throws -> [(row: Row, members: [Row])] {
        guard let destination = database.mapping.entity(link.destination),
            let owner = database.mapping.entity(rows[0].layout)
        else { return [] }
        switch rows[0].layout.places[link.name] {
        case .slot(let index):
            let slot = rows[0].layout.slots[index]
            let keys = Set(rows.compactMap { $0.reference(slot)?.key }).sorted()
            let found = try queries.rows(keys, of: destination, on: connection)
            let byKey = Dictionary(found.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
            return rows.map { row in (row, row.reference(slot).flatMap { byKey[$0.key] }.map { [$0] } ?? []) }
        case .toMany(let index):
            let owners = rows.map { ObjectReference(key: $0.key, entity: $0.layout.number) }
            let found = try queries.memberships(
                in: rows[0].layout.toMany[index],
                of: owner,
                ownedBy: owners,
                on: connection
            )
            let byKey = Dictionary(found.rows.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
            let groups = Dictionary(found.groups.map { ($0.owner, $0.members) }, uniquingKeysWith: +)
            return rows.map { row in (row, (groups[row.key] ?? []).compactMap { byKey[$0.key] }) }
        default: return []
        }
    }

    // MARK: - Delete rules

    private func checkRule(of link: DeleteLink, from rows: [Row], unlessDeletedIn doomed: DoomedRows) throws {
        switch link.relationship.deleteRule {
        case .deny:
            for (row, members) in try members(link, rows) where members.contains(where: { !doomed.contains($0) }) {
                throw link.denied(row.key)
            }
        case .nullify:
            guard let inverse = link.inverse, !inverse.isToMany, !inverse.isOptional else { return }
            for (_, members) in try members(link, rows) {
                if let other = members.first(where: { !doomed.contains($0) }) { throw link.mandatory(other.key) }
            }
        default: break
        }
    }

    /// Refuses a deletion after which a relationship without an inverse would lead to a deleted row.
    private func refuseLoose(_ doomed: DoomedRows) throws {
        let byRoot = Dictionary(grouping: doomed.rows, by: { $0.layout.rootNumber }).mapValues { $0.map(\.key) }
        for owner in batch.layout.schema.entities {
            for slot in owner.referenceSlots {
                guard let relationship = slot.relationship, relationship.inverse == nil,
                    relationship.entity === owner,
                    let root = relationship.destination?.rootNumber, let keys = byRoot[root]
                else { continue }
                for row in try rows(leadingTo: keys, by: relationship) where !doomed.contains(row) {
                    throw DeleteLink.loose(relationship, row.key)
                }
            }
        }
    }

    /// Takes rows out of a relationship.
    private func release(_ link: DeleteLink, from rows: [Row], keeping doomed: DoomedRows) throws {
        guard let inverse = link.inverse else { return }
        if inverse.isToMany {
            for (_, members) in try members(link, rows) {
                for other in members where !doomed.contains(other) { markMembersChanged(of: other.key, inverse) }
            }
        } else if link.relationship.deleteRule == .nullify {
            try release(rows.map(\.key), inverse, unless: doomed.contains)
        }
    }
}
