import CoreDataEssentials
import Foundation
import StrataMemoryStore
import StrataRows

// The save of an atomic store: first conflicts are found among the rows, then the nodes are updated, then the subclass
// writes them, and only then the rows change. If a step fails, then the nodes get their old values back.

extension NSAtomicStore {
    package func keys(for objects: [NSManagedObject]) throws -> [Int64] {
        try ask { _ in
            let ids = objects.map { objectID(for: $0.entity, withReferenceObject: newReferenceObject(for: $0)) }
            return try checkedKeys(ids, of: objects)
        }
    }

    package func isNew(_ key: Int64, _ layout: EntityLayout) -> Bool {
        contents.withLock { $0.rows[layout.rootNumber]?[key] == nil }
    }

    package func save(
        _ changes: StoreChanges,
        of context: NSManagedObjectContext,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        try ask { _ in
            // Only the thread that has the turn changes the contents.
            var next = contents.withLock { $0 }
            let conflicts = next.findVersionConflicts(changes)
            var result = next.apply(changes)
            let broken = next.findConstraintConflicts(changes, result.insertedKeys)
            guard conflicts.isEmpty, broken.isEmpty else { return conflicts + broken }
            let edit = NodeEdit(self)
            let filled: [Row]
            do {
                try edit.make(ReportedChanges(changes, of: context, inStoreAt: storeIndex))
                try edit.setDerived(result.reread)
                filled = try reread(changes)
                try save()
            } catch {
                edit.undo()
                throw error
            }
            var adjusted = StoreChanges()
            adjusted.updated = filled.map { RowUpdate(row: $0, baseVersion: $0.version - 1, changed: SlotSet()) }
            _ = next.apply(adjusted, derives: false)
            result.replaceReread(filled)
            let (committed, published) = (next, result)
            // A reader waits for the lock, and so until the rows are published.
            contents.withLock { contents in
                didCommit(published)
                contents = committed
            }
            return []
        }
    }

    func writeMetadata() throws { try ask { _ in try save() } }

    /// The rows of nodes whose values differ from the saved object, because a store may round or add values.
    private func reread(_ changes: StoreChanges) throws -> [Row] {
        var result: [Row] = []
        func compare(_ row: Row, _ version: Int64) throws {
            let id = try id(ofKey: row.key, in: row.layout).id
            guard let node = nodes.node(id) else { return }
            let stored = try self.row(of: node, row.layout, key: row.key, version: version)
            guard !row.layout.slots.allSatisfy({ stored.hasSameValue(as: row, in: $0) }) else { return }
            result.append(stored)
        }
        for row in changes.inserted { try compare(row, row.version + 1) }
        for update in changes.updated { try compare(update.row, update.baseVersion + 1) }
        return result
    }

    /// Sets all persistent properties of a node.
    func copyValues(of object: NSManagedObject, to node: NSAtomicStoreCacheNode) {
        for property in object.entity.properties
        where !property.isTransient && !(property is NSFetchedPropertyDescription) {
            node.setValue(nodeValue(object, property), forKey: property.name)
        }
    }

    private func nodeValue(_ object: NSManagedObject, _ property: NSPropertyDescription) -> Any? {
        let value = object.value(forKey: property.name)
        guard let relationship = property as? NSRelationshipDescription else { return value }
        func node(_ destination: NSManagedObject) -> NSAtomicStoreCacheNode? { cacheNode(for: destination.objectID) }
        switch value {
        case let destination as NSManagedObject: return node(destination)
        case let ordered as NSOrderedSet:
            return ordered.array.compactMap { ($0 as? NSManagedObject).flatMap(node) }
        case let set as NSSet:
            return Set(set.allObjects.compactMap { ($0 as? NSManagedObject).flatMap(node) })
        default: return relationship.isToMany ? Set<NSAtomicStoreCacheNode>() : nil
        }
    }
}

/// The changes that one save makes to an atomic store's nodes; they can be undone.
///
/// Only the thread that has the store's turn uses it.
private final class NodeEdit {
    private let store: NSAtomicStore
    private var former: [(node: NSAtomicStoreCacheNode, values: [(name: String, value: Any?)])] = []
    private var added: Set<NSAtomicStoreCacheNode> = []
    private var removed: Set<NSAtomicStoreCacheNode> = []

    init(_ store: NSAtomicStore) { self.store = store }

    /// Makes nodes for new objects, updates those of changed ones, and removes those of deleted ones.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a node of another object, or a missing one.
    func make(_ changes: ReportedChanges) throws {
        var nodes: [(NSAtomicStoreCacheNode, NSManagedObject)] = []
        for object in changes.inserted.sorted(by: { $0.rowKey < $1.rowKey }) {
            let node = store.newCacheNode(for: object)
            guard store.isID(node.objectID, ofKey: object.rowKey, in: object.rowLayout) else {
                throw store.refused("made a cache node of \(node.objectID) for the new object \(object.objectID).")
            }
            added.insert(node)
            nodes.append((node, object))
        }
        store.nodes.add(added)
        for object in changes.updated { nodes.append((try node(of: object), object)) }
        for (node, object) in nodes {
            keep(node, object)
            store.updateCacheNode(node, from: object)
        }
        for object in changes.deleted {
            let node = try node(of: object)
            keep(node, object)
            removed.insert(node)
        }
        guard !removed.isEmpty else { return }
        store.willRemoveCacheNodes(removed)
        store.nodes.remove(removed)
        for node in store.nodes.all { release(node) }
    }

    /// Removes deleted nodes from the relationships of another node.
    ///
    /// This is also needed if no object did so, because the relationship has no inverse or was never read.
    ///
    /// The cost is not higher than that of writing all nodes, which follows.
    private func release(_ node: NSAtomicStoreCacheNode) {
        for (name, relationship) in node.objectID.entity.relationshipsByName where !relationship.isTransient {
            switch node.value(forKey: name) {
            case let one as NSAtomicStoreCacheNode where removed.contains(one): set(nil, forKey: name, of: node)
            case let some as Set<NSAtomicStoreCacheNode> where !some.isDisjoint(with: removed):
                set(some.subtracting(removed), forKey: name, of: node)
            case let list as [NSAtomicStoreCacheNode] where list.contains(where: removed.contains):
                set(list.filter { !removed.contains($0) }, forKey: name, of: node)
            default: break
            }
        }
    }

    private func set(_ value: Any?, forKey name: String, of node: NSAtomicStoreCacheNode) {
        if !added.contains(node) { former.append((node, [(name, node.value(forKey: name))])) }
        node.setValue(value, forKey: name)
    }

    /// Sets derived attributes, which the nodes' objects do not have yet.
    func setDerived(_ rows: [Row]) throws {
        for row in rows where row.layout.hasDerivedSlots {
            guard let node = store.nodes.node(try store.id(ofKey: row.key, in: row.layout).id) else { continue }
            for slot in row.layout.slots where slot.property is NSDerivedAttributeDescription {
                set(row.anyValue(slot), forKey: slot.name, of: node)
            }
        }
    }

    private func node(of object: NSManagedObject) throws -> NSAtomicStoreCacheNode {
        guard let node = store.nodes.node(object.objectID) else {
            throw store.refused("has no cache node for \(object.objectID).")
        }
        return node
    }

    private func keep(_ node: NSAtomicStoreCacheNode, _ object: NSManagedObject) {
        guard !added.contains(node) else { return }
        former.append((node, object.entity.properties.map { ($0.name, node.value(forKey: $0.name)) }))
    }

    func undo() {
        store.nodes.remove(added)
        store.nodes.add(removed)
        // The oldest values of a node were recorded first.
        for (node, values) in former.reversed() {
            for (name, value) in values { node.setValue(value, forKey: name) }
        }
    }
}
