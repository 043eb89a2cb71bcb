import CoreDataEssentials
import Foundation
import StrataLocks
import StrataMemoryStore
import StrataRows

/// The base class of custom stores that read a whole file at once and write it at once.
///
/// A subclass overrides ``load()``, which makes a node for each object in the file (``NSAtomicStoreCacheNode``),
/// ``save()``, which writes all of ``cacheNodes()``, and ``newReferenceObject(for:)``. The other members have
/// sufficient defaults. Fetches, conflicts, uniqueness constraints and relationships work as in an in-memory store,
/// without code in the subclass.
///
/// ``NSPersistentStore/loadMetadata()`` reads a store's **metadata**, or ``load()`` sets them. Otherwise a new UUID is
/// made, and the subclass's type is used.
///
/// **Threads.** Contexts read without calling the subclass; its methods are called one at a time, on the thread on
/// which a context saves.
///
/// ```swift
/// final class MemoryStore: NSAtomicStore {
///     static let storeType = NSPersistentStore.StoreType(rawValue: "Memory")
///     override var type: String { Self.storeType.rawValue }
///     override func loadMetadata() throws { metadata = [NSStoreTypeKey: type, NSStoreUUIDKey: UUID().uuidString] }
///     override func load() throws {}
///     override func save() throws {}
/// }
/// NSPersistentStoreCoordinator.registerStoreClass(MemoryStore.self, type: MemoryStore.storeType)
/// ```
open class NSAtomicStore: NSPersistentStore, @unchecked Sendable {
    // @unchecked Sendable: the properties are Sendable, protected by a mutex, or guarded by `turn`. A subclass is
    // responsible for its own state.

    package let names = StoreNames()
    package let turn: StoreTurn
    /// The rows of the nodes, which contexts read.
    let contents = Locked(InMemoryContents(nil))
    let nodes = NodeTable()

    /// Makes a store; the coordinator calls this.
    ///
    /// - Parameters:
    ///   - root: The coordinator of the store.
    ///   - name: A configuration of the coordinator's model, or `nil` for all its entities.
    ///   - url: The file.
    ///   - options: Options, with keys of the coordinator and keys of the subclass.
    public required init(
        persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
        configurationName name: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) {
        turn = StoreTurn(timeout: StoreOption.timeout(options))
        super.init(persistentStoreCoordinator: root, configurationName: name, at: url, options: options)
    }

    /// Does nothing; an override may set ``NSPersistentStore/metadata``, unless ``load()`` sets it.
    ///
    /// - Throws: Any error; the store is then not added.
    open override func loadMetadata() throws {}

    package func saveNewMetadata() throws {
        guard hasNewMetadata else { return }
        try writeMetadata()
        hasNewMetadata = false
    }

    // MARK: - Methods to override

    /// Reads the file and adds a node for each object, with ``addCacheNodes(_:)``.
    ///
    /// Called once, when the store is added. A file that does not exist yet is an empty store.
    ///
    /// - Throws: Any error; the store is then not added.
    open func load() throws { throw notOverridden("load()") }

    /// Writes ``cacheNodes()`` and the metadata to the file, completely or not at all.
    ///
    /// Called by each save of a context, after the nodes were updated.
    ///
    /// - Throws: Any error; nodes and context are then as they were before.
    open func save() throws { throw notOverridden("save()") }

    /// Makes a reference for a new object: a text or an integer that no other object of the entity ever has.
    ///
    /// Unless it is overridden, the program stops.
    ///
    /// - Parameter managedObject: The new object, whose ID is still temporary.
    /// - Returns: A `String` or a number.
    open func newReferenceObject(for managedObject: NSManagedObject) -> Any {
        fatalError("CoreData: \(Swift.type(of: self)) has to override newReferenceObject(for:).")
    }

    /// Makes the node of a new object, which already has a permanent ID.
    ///
    /// Default: an empty ``NSAtomicStoreCacheNode``. Its values are set by ``updateCacheNode(_:from:)``, which is
    /// called after all new objects have a node.
    ///
    /// - Parameter managedObject: The new object.
    /// - Returns: A node with the object's values, which is then passed to ``addCacheNodes(_:)``.
    open func newCacheNode(for managedObject: NSManagedObject) -> NSAtomicStoreCacheNode {
        NSAtomicStoreCacheNode(objectID: managedObject.objectID)
    }

    /// Updates a node from an object that is being saved.
    ///
    /// Called for new and for changed objects, even if only a relationship has changed. Default: sets all persistent
    /// properties; the values of relationships are nodes.
    ///
    /// - Parameters:
    ///   - node: The node, of a class that ``newCacheNode(for:)`` or ``load()`` has chosen.
    ///   - managedObject: The object that is being saved.
    open func updateCacheNode(_ node: NSAtomicStoreCacheNode, from managedObject: NSManagedObject) {
        copyValues(of: managedObject, to: node)
    }

    /// Called before nodes are removed, because their objects are being deleted.
    ///
    /// Does nothing.
    ///
    /// - Parameter cacheNodes: The nodes, which are still in the store.
    open func willRemoveCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) {}

    private func notOverridden(_ member: String) -> CocoaError {
        refused("does not override \(member), which every subclass of NSAtomicStore has to.")
    }

    // MARK: - Nodes

    /// Adds nodes, in ``load()``.
    ///
    /// The values of a node, especially relationships, may still be set until ``load()`` returns. Nodes that are added
    /// later become visible only after a save.
    ///
    /// - Parameter cacheNodes: The nodes, each with an ID that ``objectID(for:withReferenceObject:)`` has made.
    open func addCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) { nodes.add(cacheNodes) }

    /// All nodes.
    ///
    /// - Returns: The nodes, in no order. O(number of objects).
    open func cacheNodes() -> Set<NSAtomicStoreCacheNode> { nodes.all }

    /// The node of an object.
    ///
    /// - Parameter objectID: The ID of an object of this store.
    /// - Returns: The node; `nil` if the store has none.
    open func cacheNode(for objectID: NSManagedObjectID) -> NSAtomicStoreCacheNode? {
        names.object(of: objectID) == nil ? nil : nodes.node(objectID)
    }

    // MARK: - IDs and references

    /// The ID of the object with a reference in the file.
    ///
    /// May be called in ``load()`` and later, on any thread. If the reference is neither a text nor an integer, then
    /// the ID refers to no object: it is refused wherever it is used.
    ///
    /// - Parameters:
    ///   - entity: The object's own entity.
    ///   - data: A `String`, an integer or a whole `NSNumber`.
    /// - Returns: The ID.
    public func objectID(for entity: NSEntityDescription, withReferenceObject data: Any) -> NSManagedObjectID {
        names.id(entity: entity, object: data, coordinator: persistentStoreCoordinator)
    }

    /// The reference from which an ID was made.
    ///
    /// May be called on any thread. For an ID of another store, or a temporary one, it is `NSNull`.
    ///
    /// - Parameter objectID: The ID of an object of this store.
    /// - Returns: The reference that was passed to ``objectID(for:withReferenceObject:)``.
    public func referenceObject(for objectID: NSManagedObjectID) -> Any {
        names.object(of: objectID) ?? NSNull()
    }
}
