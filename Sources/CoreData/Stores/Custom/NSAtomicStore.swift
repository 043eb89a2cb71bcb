import Foundation
import StrataMemoryStore
import StrataRows
import Synchronization

/// The base class for stores of your own that read a whole file at once and write it at once.
///
/// A subclass overrides ``load()``, which makes a node for each object in the file (``NSAtomicStoreCacheNode``),
/// ``save()``, which writes all of ``cacheNodes()``, and ``newReferenceObject(for:)``. The other members have defaults
/// that do. Fetches, conflicts, uniqueness constraints and relationships are taken care of: they work as in an
/// in-memory store.
///
/// A store's **metadata** are read by ``NSPersistentStore/loadMetadata()`` or set in ``load()``; without either a new
/// UUID is made, and the type that a subclass overrides is taken.
///
/// **Threads.** Contexts read without asking the subclass; its methods are called one at a time, on whatever thread a
/// context saves.
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
    // @unchecked Sendable: what is here is Sendable, behind a mutex, or guarded by `turn`. A subclass answers for its
    // own state.

    let names = StoreNames()
    let turn: StoreTurn
    /// What contexts read: the nodes as rows.
    let contents = Mutex(InMemoryContents(nil))
    let nodes = NodeTable()

    /// Makes a store, which the coordinator does.
    ///
    /// - Parameters:
    ///   - root: The coordinator that the store is for.
    ///   - name: A configuration of the coordinator's model, or `nil` for all its entities.
    ///   - url: The file.
    ///   - options: Options, by the keys of the coordinator and your own.
    public required init(
        persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
        configurationName name: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) {
        turn = StoreTurn(timeout: StoreOption.timeout(options))
        super.init(persistentStoreCoordinator: root, configurationName: name, at: url, options: options)
    }

    /// Does nothing; an override may set ``NSPersistentStore/metadata``, unless ``load()`` does.
    ///
    /// - Throws: Any error, which keeps the store from being added.
    open override func loadMetadata() throws {}

    override func saveMetadata() throws {
        guard hasNewMetadata else { return }
        try writeMetadata()
        hasNewMetadata = false
    }

    // MARK: - To be overridden

    /// Reads the file and adds a node for each object, with ``addCacheNodes(_:)``.
    ///
    /// Called once, when the store is added. A file that does not exist yet is an empty store.
    ///
    /// - Throws: Any error, which keeps the store from being added.
    open func load() throws { throw notOverridden("load()") }

    /// Writes ``cacheNodes()`` and the metadata to the file, wholly or not at all.
    ///
    /// Called by each save of a context, once the nodes are up to date.
    ///
    /// - Throws: Any error; nodes and context are as they were before then.
    open func save() throws { throw notOverridden("save()") }

    /// Makes a reference for a new object: a text or a whole number that no object of the entity has, had or will have.
    ///
    /// Stops the program unless it is overridden.
    ///
    /// - Parameter managedObject: The new object, whose ID is still temporary.
    /// - Returns: A `String` or a number.
    open func newReferenceObject(for managedObject: NSManagedObject) -> Any {
        fatalError("CoreData: \(Swift.type(of: self)) has to override newReferenceObject(for:).")
    }

    /// Makes the node of a new object, whose ID is permanent by now.
    ///
    /// Default: an empty ``NSAtomicStoreCacheNode``. Its values come by ``updateCacheNode(_:from:)``, which is called
    /// once all new objects have a node.
    ///
    /// - Parameter managedObject: The new object.
    /// - Returns: A node with the object's values, which ``addCacheNodes(_:)`` is then called with.
    open func newCacheNode(for managedObject: NSManagedObject) -> NSAtomicStoreCacheNode {
        NSAtomicStoreCacheNode(objectID: managedObject.objectID)
    }

    /// Brings a node up to date with an object that is being saved.
    ///
    /// Called for new and for changed objects, also where only a relationship has changed. Default: sets all persistent
    /// properties, relationships as nodes.
    ///
    /// - Parameters:
    ///   - node: The node, of a class that ``newCacheNode(for:)`` or ``load()`` has chosen.
    ///   - managedObject: The object as it is being saved.
    open func updateCacheNode(_ node: NSAtomicStoreCacheNode, from managedObject: NSManagedObject) {
        copyValues(of: managedObject, to: node)
    }

    /// Called before nodes are removed, because their objects are being deleted.
    ///
    /// Does nothing.
    ///
    /// - Parameter cacheNodes: The nodes, which the store still has.
    open func willRemoveCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) {}

    private func notOverridden(_ member: String) -> CocoaError {
        refused("does not override \(member), which every subclass of NSAtomicStore has to.")
    }

    // MARK: - Nodes

    /// Adds nodes, in ``load()``.
    ///
    /// The values of a node, relationships above all, may still be set until ``load()`` returns. Nodes that are added
    /// later show only once they are saved.
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
    /// - Returns: `nil` if the store has none.
    open func cacheNode(for objectID: NSManagedObjectID) -> NSAtomicStoreCacheNode? {
        names.object(of: objectID) == nil ? nil : nodes.node(objectID)
    }

    // MARK: - IDs and references

    /// The ID of the object that the file calls by a reference.
    ///
    /// May be called in ``load()`` and later, on any thread. An ID made of anything but text or a whole number leads
    /// nowhere: it is refused wherever it is used.
    ///
    /// - Parameters:
    ///   - entity: The object's own entity.
    ///   - data: A `String`, an integer or a whole `NSNumber`.
    /// - Returns: The ID.
    public func objectID(for entity: NSEntityDescription, withReferenceObject data: Any) -> NSManagedObjectID {
        names.id(entity, data, persistentStoreCoordinator)
    }

    /// The reference that an ID was made of.
    ///
    /// May be called on any thread. For an ID of another store, or a temporary one, `NSNull`.
    ///
    /// - Parameter objectID: The ID of an object of this store.
    /// - Returns: What ``objectID(for:withReferenceObject:)`` was called with.
    public func referenceObject(for objectID: NSManagedObjectID) -> Any {
        names.object(of: objectID) ?? NSNull()
    }
}
