import StrataLocks

/// The nodes of an atomic store, by the root and the key of their objects.
///
/// Any thread may call any member; only the thread that has the store's turn uses the nodes themselves.
final class NodeTable: @unchecked Sendable {
    // @unchecked Sendable: the nodes, which are not Sendable, are returned only to the thread that has the store's
    // turn, or to the store's own methods; a mutex protects the table.

    private struct Key: Hashable {
        let root: Int
        let key: Int64

        init(_ id: NSManagedObjectID) {
            root = id.layout.rootNumber
            key = id.key
        }
    }

    private let table = Locked<UncheckedBox<[Key: NSAtomicStoreCacheNode]>>(UncheckedBox([:]))

    private func change(_ body: (inout [Key: NSAtomicStoreCacheNode]) -> Void) {
        table.withLock { box in
            var nodes = box.value
            box = UncheckedBox([:])
            body(&nodes)
            box = UncheckedBox(nodes)
        }
    }

    func add(_ nodes: Set<NSAtomicStoreCacheNode>) {
        change { table in
            for node in nodes { table[Key(node.objectID)] = node }
        }
    }

    func remove(_ nodes: Set<NSAtomicStoreCacheNode>) {
        change { table in
            for node in nodes { table[Key(node.objectID)] = nil }
        }
    }

    func removeAll() { change { $0 = [:] } }

    func node(_ id: NSManagedObjectID) -> NSAtomicStoreCacheNode? {
        table.withLock { UncheckedBox($0.value[Key(id)]) }.value
    }

    var all: Set<NSAtomicStoreCacheNode> { Set(table.withLock { UncheckedBox($0.value.values) }.value) }
}
