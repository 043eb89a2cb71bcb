import CoreDataEssentials
import StrataLocks
import StrataRows

/// The nodes of an atomic store, by the root and the key of their objects.
///
/// Any thread may call any member; only the thread that has the store's turn uses the nodes themselves.
final class NodeTable: @unchecked Sendable {
    // @unchecked Sendable: the nodes, which are not Sendable, are returned only to the thread that has the store's
    // turn, or to the store's own methods; a mutex protects the table.

    private let table = Locked<UncheckedBox<[RowName: NSAtomicStoreCacheNode]>>(UncheckedBox([:]))

    private func change(_ body: (inout [RowName: NSAtomicStoreCacheNode]) -> Void) {
        table.withLock { box in
            var nodes = box.value
            box = UncheckedBox([:])
            body(&nodes)
            box = UncheckedBox(nodes)
        }
    }

    func add(_ nodes: Set<NSAtomicStoreCacheNode>) {
        change { table in
            for node in nodes { table[RowName(node.objectID)] = node }
        }
    }

    func remove(_ nodes: Set<NSAtomicStoreCacheNode>) {
        change { table in
            for node in nodes { table[RowName(node.objectID)] = nil }
        }
    }

    func removeAll() { change { $0 = [:] } }

    func node(_ id: NSManagedObjectID) -> NSAtomicStoreCacheNode? {
        table.withLock { UncheckedBox($0.value[RowName(id)]) }.value
    }

    var all: Set<NSAtomicStoreCacheNode> { Set(table.withLock { UncheckedBox($0.value.values) }.value) }
}

extension RowName {
    /// Names the row of an object of one custom store.
    fileprivate init(_ id: NSManagedObjectID) { self.init(root: id.layout.rootNumber, key: id.key) }
}
