import Foundation
import StrataPredicates
import StrataRows

extension BatchTransaction {
    /// Deletes the rows of a batch, and the rows that delete rules add to them.
    mutating func delete(_ deletion: BatchDeletion) throws {
        var doomed = DoomedRows()
        for row in try InMemoryFetch(deletion.rows, contents).rows() { doomed.add(row) }
        guard !doomed.rows.isEmpty else { return }
        var links: [Int: [DeleteLink]] = [:]
        var position = 0
        while position < doomed.rows.count {
            let row = doomed.rows[position]
            position += 1
            let own = links[row.layout.number] ?? row.layout.ownLinks
            links[row.layout.number] = own
            for link in own where link.relationship.deleteRule == .cascade {
                for member in members(link, row) { doomed.add(member) }
            }
        }
        for row in doomed.rows {
            for link in links[row.layout.number] ?? [] { try checkRule(of: link, from: row, unlessDeletedIn: doomed) }
        }
        try refuseLoose(doomed)
        for row in doomed.rows {
            for link in links[row.layout.number] ?? [] { release(link, from: row, keeping: doomed) }
        }
        for row in doomed.rows {
            contents.removeRow(row.key, row.layout)
            changes.deleted.add(row.key, row.layout)
        }
        changes.count = doomed.rows.count
    }

    /// The rows that are to be deleted, each once.
    private struct DoomedRows {
        private(set) var rows: [Row] = []
        private var keys: [Int: Set<Int64>] = [:]

        mutating func add(_ row: Row) {
            if keys[row.layout.rootNumber, default: []].insert(row.key).inserted { rows.append(row) }
        }

        func contains(_ key: Int64, root: Int) -> Bool { keys[root]?.contains(key) == true }
        func contains(_ row: Row) -> Bool { contains(row.key, root: row.layout.rootNumber) }
    }

    /// The rows that a relationship of a row leads to.
    private func members(_ link: DeleteLink, _ row: Row) -> [Row] {
        let root = link.destination.rootNumber
        switch row.layout.places[link.name] {
        case .slot(let index):
            return row.reference(row.layout.slots[index]).flatMap { self.row($0.key, root: root) }.map { [$0] } ?? []
        case .toMany(let index):
            return contents.members(of: row.layout.toMany[index], ownedBy: row.key).compactMap {
                self.row($0.key, root: root)
            }
        default: return []
        }
    }

    // MARK: - Delete rules

    private func checkRule(of link: DeleteLink, from row: Row, unlessDeletedIn doomed: DoomedRows) throws {
        switch link.relationship.deleteRule {
        case .deny:
            if members(link, row).contains(where: { !doomed.contains($0) }) { throw link.denied(row.key) }
        case .nullify:
            guard let inverse = link.inverse, !inverse.isToMany, !inverse.isOptional else { return }
            if let other = members(link, row).first(where: { !doomed.contains($0) }) { throw link.mandatory(other.key) }
        default: break
        }
    }

    /// Refuses a deletion after which a relationship without an inverse would lead to a deleted row.
    private func refuseLoose(_ doomed: DoomedRows) throws {
        let roots = Set(doomed.rows.map(\.layout.rootNumber))
        for owner in batch.layout.schema.entities {
            for slot in owner.referenceSlots {
                guard let relationship = slot.relationship, relationship.inverse == nil,
                    relationship.entity === owner,
                    let root = relationship.destination?.rootNumber, roots.contains(root)
                else { continue }
                try contents.rows[owner.rootNumber]?.forEach { key, row in
                    guard row.layout.slots.indices.contains(slot.index),
                        row.layout.slots[slot.index].description === slot.description, !doomed.contains(row),
                        let reference = row.reference(slot), doomed.contains(reference.key, root: root)
                    else { return }
                    throw DeleteLink.loose(relationship, key)
                }
            }
        }
    }

    /// Takes a row out of a relationship.
    private mutating func release(_ link: DeleteLink, from row: Row, keeping doomed: DoomedRows) {
        guard let inverse = link.inverse else { return }
        let others = members(link, row).filter { !doomed.contains($0) }
        if inverse.isToMany {
            for other in others {
                reordered.remove(row.key, from: other.key, by: inverse)
                markMembersChanged(of: other.key, inverse)
            }
        } else if link.relationship.deleteRule == .nullify {
            releaseBack(row.key, inverse)
        }
    }
}

extension EntityLayout {
    /// The stored relationships that objects of this entity have, inherited ones included.
    fileprivate var ownLinks: [DeleteLink] {
        deleteLinks.filter { $0.owner.subtree.contains(number) }
    }
}
