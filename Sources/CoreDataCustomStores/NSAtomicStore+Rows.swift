import CoreDataEssentials
import Foundation
import StrataMemoryStore
import StrataRows

// The rows of an atomic store: its nodes are converted to rows once, and fetched like the rows of an in-memory store.

extension NSAtomicStore: ReferenceStore, InMemoryRows {
    package var fetchesRows: Bool { true }

    package func open(as entry: OpenStore) throws {
        names.entry = entry
        guard let model = persistentStoreCoordinator?.managedObjectModel else { return }
        try ask { _ in try load() }
        var known: [String: Any] = metadata ?? [:]
        if known[NSStoreUUIDKey] == nil { known[NSStoreUUIDKey] = identifier }
        if known[NSStoreTypeKey] == nil { known[NSStoreTypeKey] = type }
        metadata = known
        try checkMetadata(model)
        try readNodes(model.frozen.schema)
    }

    package func close() {
        names.entry = nil
        nodes.removeAll()
        contents.withLock { $0 = InMemoryContents(nil) }
    }

    package func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { contents.withLock { body($0) } }

    // MARK: - Nodes as rows

    /// Makes the contents from the nodes that were loaded.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a node of another store, a value that does not fit its
    ///   property, or a relationship to a node that was not added.
    private func readNodes(_ model: Schema) throws {
        var changes = StoreChanges()
        let loaded = try nodes.all.map { (node: $0, place: try place(of: $0)) }.sorted { $0.place.key < $1.place.key }
        var rows: [Int: [Int64: Row]] = [:]
        for (node, place) in loaded {
            let row = try row(of: node, place.layout, key: place.key, version: 0)
            rows[place.layout.rootNumber, default: [:]][place.key] = row
            changes.inserted.append(row)
        }
        for (node, place) in loaded {
            for slot in place.layout.toMany where !slot.isTransient {
                let members = try members(givenAs: node.value(forKey: slot.name), of: slot, in: place.layout)
                guard !members.isEmpty else { continue }
                let owner = ObjectReference(key: place.key, entity: place.layout.number)
                changes.addMembers(members, of: slot, ownedBy: owner, rows: &rows)
            }
        }
        try requireDestinations(of: changes, in: rows, model: model)
        var contents = InMemoryContents(model)
        let result = contents.apply(changes, derives: false)
        changes.settle(result)
        let loadedContents = contents
        self.contents.withLock { $0 = loadedContents }
    }

    private func place(of node: NSAtomicStoreCacheNode) throws -> (layout: EntityLayout, key: Int64) {
        let reference = try reference(givenAs: node, of: node.objectID.layout, "a cache node")
        return (node.objectID.layout.schema.entities[reference.entity - 1], reference.key)
    }

    /// The row of a node's object.
    package func row(of node: NSAtomicStoreCacheNode, _ layout: EntityLayout, key: Int64, version: Int64) throws -> Row
    {
        try row(layout, key: key, version: version) { node.value(forKey: $0.name) }
    }

    private func requireDestinations(of changes: StoreChanges, in rows: [Int: [Int64: Row]], model: Schema) throws {
        func require(_ reference: ObjectReference, name: String, layout: EntityLayout) throws {
            let root = model.entities[reference.entity - 1].rootNumber
            guard rows[root]?[reference.key] == nil else { return }
            throw refused(
                "has a node of \(layout.entity.name ?? "") whose relationship \"\(name)\" leads to \(try id(ofKey: reference.key, in: model.entities[reference.entity - 1]).id), of which load() added no node."
            )
        }
        for row in changes.inserted {
            for slot in row.layout.referenceSlots {
                if let reference = row.reference(slot) { try require(reference, name: slot.name, layout: row.layout) }
            }
        }
        for change in changes.toMany {
            let layout = change.relationship.relationship.entity
            for member in change.added + (change.order ?? []) {
                try require(member, name: change.relationship.name, layout: layout)
            }
        }
    }
}

extension StoreChanges {
    /// Adds the members of a loaded to-many relationship, in the form of the contents.
    ///
    /// - Parameters:
    ///   - members: The members.
    ///   - slot: The relationship.
    ///   - owner: The object that has the relationship.
    ///   - rows: The loaded rows by root and key. If the inverse is a to-one relationship, then it is set in the rows
    ///     of the members.
    fileprivate mutating func addMembers(
        _ members: [ObjectReference],
        of slot: ToManySlot,
        ownedBy owner: ObjectReference,
        rows: inout [Int: [Int64: Row]]
    ) {
        let inverse = slot.inverse
        let tellsMembership = inverse.map(\.isToMany) ?? true
        if !tellsMembership, let inverse {
            for member in members {
                let root = inverse.entity.rootNumber
                guard let row = rows[root]?[member.key], let back = row.layout.slot(named: inverse.name),
                    row.isNull(back.index)
                else { continue }
                row.setReference(owner, back)
            }
        }
        guard tellsMembership || slot.isOrdered else { return }
        toMany.append(
            ToManyChange(
                relationship: slot,
                owner: owner,
                added: tellsMembership ? members : [],
                removed: [],
                order: slot.isOrdered ? members : nil
            )
        )
    }
}
