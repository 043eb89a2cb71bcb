import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import Synchronization

/// The name of one object, in every context on one coordinator and on every thread.
///
/// There is one instance for each row as long as code holds it, so two IDs of one coordinator are equal exactly if
/// they are identical. The properties of an ID never change: its equality, hash, URI and ``isTemporaryID`` stay as
/// they were when the ID was first returned.
///
/// The ID of an unsaved object is temporary. A save that reaches the store, or
/// ``NSManagedObjectContext/obtainPermanentIDs(for:)``, gives the object another ID, which is permanent. Unlike in
/// Apple's framework, the temporary ID then *leads to* the permanent one as long as the process runs: contexts,
/// predicates and merges find the object by it. The same holds for the ID of an object whose store the coordinator
/// has migrated (``NSPersistentStoreCoordinator/migratePersistentStore(_:to:options:type:)``): the object has another
/// ID, in the new store.
///
/// IDs of different coordinators are never equal; compare their ``uriRepresentation()``.
///
/// Any thread may use an ID.
///
/// ```swift
/// let uri = venue.objectID.uriRepresentation()
/// let id = coordinator.managedObjectID(forURIRepresentation: uri)
/// ```
public final class NSManagedObjectID: NSObject, NSCopying, @unchecked Sendable {
    // @unchecked Sendable: all properties are constants and atomics; the layout is immutable and immortal.

    package unowned(unsafe) let layout: EntityLayout
    /// The primary key, or the negative number of an unsaved object.
    private let ownKey: Int64
    /// The store of the row; `nil` for a temporary ID.
    private let ownStore: OpenStore?
    /// The ID that the object obtained after this one.
    ///
    /// Only this ID holds it, so it costs nothing once this ID is no longer held.
    private let successor = OnceReference<NSManagedObjectID>()
    /// The negative number that named the object in the tree of contexts before it was saved.
    ///
    /// It is 0 if the temporary ID of the object was never asked for.
    private let formerKey: AtomicCell<Int64>

    /// Makes the ID of a stored row.
    ///
    /// Only ``ObjectIDTable`` calls this.
    init(layout: EntityLayout, key: Int64, store: OpenStore) {
        self.layout = layout
        ownKey = key
        ownStore = store
        formerKey = AtomicCell(0)
    }

    /// Makes the ID of an unsaved object.
    ///
    /// Only ``TemporaryIDs`` and ``leadingNowhere(_:)`` call this.
    init(layout: EntityLayout, temporaryKey: Int64) {
        self.layout = layout
        ownKey = temporaryKey
        ownStore = nil
        formerKey = AtomicCell(temporaryKey)
    }

    /// Makes a placeholder: an ID of no object, with an entity that belongs to no model of the program.
    ///
    /// It is temporary, and equal only to itself.
    public override convenience init() {
        self.init(layout: Self.entityOfNothing.layout, temporaryKey: TemporaryIDs.nextKey())
    }

    /// The entity of placeholders.
    private static let entityOfNothing: NSEntityDescription = {
        let entity = NSEntityDescription()
        entity.name = "NSManagedObject"
        // This is not the name of a class, so no class finds this entity.
        entity.managedObjectClassName = "nothing"
        let model = NSManagedObjectModel()
        model.entities = [entity]
        model.freeze()
        return entity
    }()

    /// The entity of the object.
    ///
    /// ```swift
    /// print(id.entity.name ?? "")
    /// ```
    public var entity: NSEntityDescription { layout.entity }

    /// Whether the object was unsaved when the ID was asked for.
    ///
    /// The value never changes: the object gets another ID when it is saved.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// venue.name = "Coliseu"
    /// let before = venue.objectID
    /// try context.save()
    /// print(before.isTemporaryID, venue.objectID.isTemporaryID)  // true false
    /// print(context.object(with: before) === venue)  // true
    /// ```
    public var isTemporaryID: Bool { ownStore == nil }

    /// The store that holds the object; `nil` for a temporary ID, or after the store was removed.
    public weak var persistentStore: NSPersistentStore? {
        let store = ownStore?.store
        return store?.persistentStoreCoordinator == nil ? nil : store
    }

    /// Whether `object` is this very ID.
    public override func isEqual(_ object: Any?) -> Bool { isSame(as: object) }

    /// A hash of the ID's identity: two IDs are equal only if they are the same instance.
    public override var hash: Int { Int(bitPattern: Unmanaged.passUnretained(self).toOpaque()) >> 4 }

    /// The ID as a URI: `x-coredata://STORE-UUID/Entity/p1`, or `x-coredata:///Entity/tUUID` for a temporary one.
    ///
    /// ``NSPersistentStoreCoordinator/managedObjectID(forURIRepresentation:)`` finds the ID again. For the URI of a
    /// temporary ID this works as long as the process runs, also after the object was saved. If the insertion is given
    /// up, then it works as long as code holds the ID.
    ///
    /// ```swift
    /// let text = venue.objectID.uriRepresentation().absoluteString  // may be stored, or sent to a client
    /// ```
    ///
    /// - Returns: A URI that `managedObjectID(forURIRepresentation:)` of a coordinator with the same store turns back
    ///   into the ID.
    public func uriRepresentation() -> URL {
        if isTemporaryID { TemporaryIDs.remember(self) }
        let text = uriText
        // If an entity's name is not valid in a URL, then it is escaped. The rest consists of hexadecimal digits and
        // slashes.
        return URL(string: text)
            ?? URL(string: text.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? "x-coredata:")
            ?? URL(fileURLWithPath: text)
    }

    private var uriText: String {
        let name = entity.name ?? ""
        guard let ownStore else { return "x-coredata:///\(name)/t\(TemporaryIDs.uuid(of: ownKey).uuidString)" }
        return "x-coredata://\(ownStore.store.identifier ?? "")/\(name)/p\(ownStore.uriText(ofKey: ownKey, in: layout))"
    }

    /// The ID of an object whose store was removed before the ID was asked for.
    package static func leadingNowhere(_ layout: EntityLayout) -> NSManagedObjectID {
        NSManagedObjectID(layout: layout, temporaryKey: TemporaryIDs.nextKey())
    }

    /// The present ID of the object: this ID, unless it leads to another.
    package var latest: NSManagedObjectID {
        guard var latest = successor.load() else { return self }
        while let next = latest.successor.load() { latest = next }
        return latest
    }

    /// The present key and store of the object.
    package var current: (key: Int64, store: OpenStore?) {
        guard successor.load() != nil else { return (ownKey, ownStore) }
        let latest = latest
        return (latest.ownKey, latest.ownStore)
    }

    package var key: Int64 { current.key }

    /// The negative number that names, or named, the object in contexts before its first save; 0 if there is none.
    var temporaryKey: Int64 { formerKey.load(ordering: .acquiring) }

    /// Whether the object has a permanent ID, either this one or one that this one leads to.
    package var isOfPermanentObject: Bool { current.store != nil }

    /// Makes the ID lead to another ID, which the object has from now on.
    ///
    /// Only the first call has an effect. For a temporary ID, the save that wrote the row calls this before other
    /// code can look the row up. A permanent ID leads to another when its store is migrated.
    func lead(to next: NSManagedObjectID) {
        guard next !== self else { return }
        let former = temporaryKey
        if former != 0 { next.formerKey.store(former, ordering: .releasing) }
        _ = successor.storeIfNil(next)
        Self.promotions.add(1, ordering: .releasing)
    }

    /// The number of IDs in this process that have obtained successors; code that waits for one knows from it when to
    /// look.
    static let promotions = AtomicCell(0)

    /// Returns the ID itself, since an ID never changes its identity.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The ID itself.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// The entity and the key, for logs.
    public override var description: String { "<\(uriText)>" }
}

extension NSManagedObjectID {
    /// The key by which tables of IDs file the ID.
    fileprivate var tableKey: Int64 { ownKey }
}

extension NSManagedObjectID: NSFetchRequestResult {}

// `NSPredicate(format: "city == %@", city as CVarArg)` works as for values of Foundation.

extension NSManagedObjectID: CVarArg {
    /// The ID as an object; no reference is counted.
    public var _cVarArgEncoding: [Int] { [Int(bitPattern: Unmanaged.passUnretained(self).toOpaque())] }
}

extension NSManagedObject: CVarArg {
    /// The object; no reference is counted.
    public var _cVarArgEncoding: [Int] { [Int(bitPattern: Unmanaged.passUnretained(self).toOpaque())] }
}

/// The permanent IDs of one store that code holds, so that one row never has two IDs.
///
/// Any thread may call any member.
package final class ObjectIDTable: Sendable {
    fileprivate struct State: ~Copyable {
        var tables: [Int: ObjectTable<NSManagedObjectID>] = [:]
        /// The table of the hierarchy that was asked for last: IDs mostly come in runs of one hierarchy.
        var last: (root: Int, table: ObjectTable<NSManagedObjectID>)?
        var count = 0
        var sweepAt = WorkSize.sweptIDs
        /// The store that has replaced the store with these IDs.
        var successor: OpenStore?
    }

    private let state = Locked(State())

    /// Makes all IDs lead to those of a store that replaces this one; the rows have the same keys there.
    ///
    /// - Complexity: O(number of IDs that are held).
    func lead(to store: OpenStore) {
        state.withLock { state in
            state.successor = store
            for table in state.tables.values {
                table.forEach { $0.lead(to: store.ids.id(key: $0.tableKey, layout: $0.layout, store: store)) }
            }
            // IDs themselves hold the IDs that they lead to.
            state.tables = [:]
            state.last = nil
            state.count = 0
        }
    }

    /// The ID of a row; it is made if no code holds it.
    ///
    /// - Parameters:
    ///   - key: The key of the row.
    ///   - layout: The layout of the concrete entity of the row.
    ///   - store: The store of the row.
    /// - Returns: The ID.
    package func id(key: Int64, layout: EntityLayout, store: OpenStore) -> NSManagedObjectID {
        let (known, successor): (NSManagedObjectID?, OpenStore?) = state.withLock { state in
            if let successor = state.successor { return (nil, successor) }
            return (state.id(key: key, layout: layout, store: store), nil)
        }
        if let known { return known }
        // A store that was migrated makes no IDs any more.
        let next = successor ?? store
        return next.ids.id(key: key, layout: layout, store: next)
    }

    /// Inserts the IDs of stored rows into a set.
    ///
    /// - Parameters:
    ///   - rows: The rows, not many: the table is locked meanwhile.
    ///   - store: The store of this table.
    ///   - ids: The set.
    func insertIDs(
        of rows: some Collection<(key: Int64, layout: EntityLayout)>,
        in store: OpenStore,
        into ids: inout Set<NSManagedObjectID>
    ) {
        let hasMoved = state.withLock { state in
            guard state.successor == nil else { return true }
            for row in rows { ids.insert(state.id(key: row.key, layout: row.layout, store: store)) }
            return false
        }
        guard hasMoved else { return }
        for row in rows { ids.insert(id(key: row.key, layout: row.layout, store: store)) }
    }

    /// The number of IDs in the table, for tests.
    var count: Int { state.withLock { $0.count } }

    /// Removes the IDs that no code holds, if up to `count` new ones may be a large part of all.
    ///
    /// - Complexity: O(`count`).
    func sweep(after count: Int) {
        state.withLock { if $0.count <= count * 2 { $0.sweep() } }
    }

    /// Makes the temporary ID of an object lead to the ID of the row that the object now has.
    ///
    /// - Returns: The ID of the row.
    @discardableResult
    func succeed(_ temporary: NSManagedObjectID, key: Int64, store: OpenStore) -> NSManagedObjectID {
        let id = id(key: key, layout: temporary.layout, store: store)
        temporary.lead(to: id)
        return id
    }
}

extension ObjectIDTable.State {
    fileprivate mutating func id(key: Int64, layout: EntityLayout, store: OpenStore) -> NSManagedObjectID {
        let table = table(ofRoot: layout.rootNumber)
        if let id = table[key] { return id }
        let id = NSManagedObjectID(layout: layout, key: key, store: store.base)
        file(id, in: table)
        return id
    }

    private mutating func table(ofRoot root: Int) -> ObjectTable<NSManagedObjectID> {
        if let last, last.root == root { return last.table }
        let table = tables[root] ?? ObjectTable()
        tables[root] = table
        last = (root, table)
        return table
    }

    private mutating func file(_ id: NSManagedObjectID, in table: ObjectTable<NSManagedObjectID>) {
        table.insert(id, for: id.tableKey)
        count += 1
        if count >= sweepAt { sweep() }
    }

    /// Removes the IDs that no code holds.
    fileprivate mutating func sweep() {
        for table in tables.values {
            count -= table.sweep { _ in true }
            table.letGoOfMemory(above: WorkSize.sweptIDs)
        }
        sweepAt = max(WorkSize.sweptIDs, count * 2)
    }
}

/// The IDs of unsaved objects that code holds, in the whole process.
///
/// A child and its parent may hold the same unsaved object, so its ID must be the same in both. Any thread may call any
/// member.
enum TemporaryIDs {
    private struct State: ~Copyable {
        let held = ObjectTable<NSManagedObjectID>()
        /// The IDs whose URI was asked for.
        ///
        /// The URI must find them as long as the process runs, unless the insertion of their object is given up.
        var remembered: [Int64: NSManagedObjectID] = [:]
        var sweepAt = WorkSize.sweptIDs
    }

    private static let state = Locked(State())
    private static let lastKey = AtomicCell<Int64>(0)
    /// Eight random bytes that distinguish this process's temporary URIs from those of other processes.
    private static let processBits = UInt64.random(in: .min ... .max)

    /// Makes a number that no other unsaved object of the process has: -1, -2, and so on.
    static func nextKey() -> Int64 { lastKey.subtract(1, ordering: .relaxed).newValue }

    /// The ID of an unsaved object; it is made if no code holds it.
    static func id(key: Int64, layout: EntityLayout) -> NSManagedObjectID {
        state.withLock { state in
            if let id = state.held[key] { return id }
            let id = NSManagedObjectID(layout: layout, temporaryKey: key)
            state.held.insert(id, for: id.tableKey)
            if state.held.count >= state.sweepAt {
                state.held.sweep { _ in true }
                state.sweepAt = max(WorkSize.sweptIDs, state.held.count * 2)
            }
            return id
        }
    }

    /// Removes and returns the ID of an object that has just become permanent, if the ID was asked for.
    static func removeHeld(_ key: Int64) -> NSManagedObjectID? {
        state.withLock { $0.held.remove(key) }
    }

    /// Removes and returns the IDs of objects that have just become permanent, as far as they were asked for.
    ///
    /// - Parameter keys: The former keys of the objects, not many: the table is locked meanwhile. Keys of objects that were
    ///   permanent before are ignored.
    /// - Returns: The IDs, with the positions of their keys.
    static func removeHeld(_ keys: ArraySlice<Int64>) -> [(index: Int, id: NSManagedObjectID)] {
        state.withLock { state in
            var removed: [(index: Int, id: NSManagedObjectID)] = []
            // Mostly no ID has been asked for.
            guard state.held.count > 0 else { return removed }
            for index in keys.indices where keys[index] < 0 {
                if let id = state.held.remove(keys[index]) { removed.append((index, id)) }
            }
            return removed
        }
    }

    static func remember(_ id: NSManagedObjectID) {
        state.withLock { $0.remembered[id.temporaryKey] = id }
    }

    /// Lets go of the ID of an object that no store will ever have, even if its URI was asked for.
    ///
    /// Otherwise a process would keep an ID for each new object that it has given up.
    static func forget(_ key: Int64) {
        _ = state.withLock { $0.remembered.removeValue(forKey: key) }
    }

    /// The ID that a temporary URI of this process names.
    static func id(uuid: UUID) -> NSManagedObjectID? {
        guard let key = key(of: uuid) else { return nil }
        return state.withLock { $0.remembered[key] ?? $0.held[key] }
    }

    static func uuid(of key: Int64) -> UUID {
        var bytes = (processBits.bigEndian, UInt64(bitPattern: key).bigEndian)
        return withUnsafeBytes(of: &bytes) { $0.loadUnaligned(as: UUID.self) }
    }

    private static func key(of uuid: UUID) -> Int64? {
        let halves = withUnsafeBytes(of: uuid.uuid) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
            )
        }
        return halves.0 == processBits ? halves.1 : nil
    }
}
