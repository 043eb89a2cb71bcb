import Foundation
import StrataPredicates
import StrataRows
import Synchronization

/// Names one object, in every context on one coordinator and on every thread.
///
/// There is one instance for each object as long as anybody holds it, so two IDs of one coordinator are equal exactly if
/// they are identical. The ID of an unsaved object is temporary; a save that reaches the store makes it permanent *in
/// place*: an ID captured before the save still equals, and hashes like, the one read after it.
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
    // @unchecked Sendable: `place` is behind its mutex, and the layout is immutable and immortal.

    private struct Place {
        /// The primary key, or the negative number of an unsaved object.
        var key: Int64
        /// The store of the row; `nil` while the ID is temporary.
        var store: OpenStore?
    }

    unowned(unsafe) let layout: EntityLayout
    private let place: Mutex<Place>
    /// The number that the temporary form had, for its URI; 0 if the ID was permanent from the start.
    let temporaryKey: Int64
    /// Under what key the table of permanent IDs files this ID.
    ///
    /// Written once, before it is filed.
    private let filedKey: Atomic<Int64>

    /// Makes the ID of a stored row.
    ///
    /// Only ``ObjectIDTable`` calls this.
    init(layout: EntityLayout, key: Int64, store: OpenStore) {
        self.layout = layout
        place = Mutex(Place(key: key, store: store))
        temporaryKey = 0
        filedKey = Atomic(key)
    }

    /// Makes the ID of an unsaved object.
    ///
    /// Only ``TemporaryIDs`` and ``leadingNowhere(_:)`` call this.
    init(layout: EntityLayout, temporaryKey: Int64) {
        self.layout = layout
        place = Mutex(Place(key: temporaryKey, store: nil))
        self.temporaryKey = temporaryKey
        filedKey = Atomic(temporaryKey)
    }

    /// Makes an ID of no object, as a placeholder, of an entity that no model has.
    ///
    /// It is temporary, and equal to itself only.
    public override convenience init() {
        self.init(layout: Self.entityOfNothing.layout, temporaryKey: TemporaryIDs.nextKey())
    }

    /// The entity of IDs of no object.
    private static let entityOfNothing: NSEntityDescription = {
        let entity = NSEntityDescription()
        entity.name = "NSManagedObject"
        // No name of a class, so that no class finds this entity.
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

    /// Whether the object has never been saved.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// venue.name = "Coliseu"
    /// try context.save()
    /// print(venue.objectID.isTemporaryID)  // false, and the ID is the same instance
    /// ```
    public var isTemporaryID: Bool { place.withLock { $0.store == nil } }

    /// The store that holds the object; `nil` while the ID is temporary, or when the store was removed.
    public weak var persistentStore: NSPersistentStore? {
        let store = place.withLock { $0.store?.store }
        return store?.persistentStoreCoordinator == nil ? nil : store
    }

    /// The ID as a URI: `x-coredata://STORE-UUID/Entity/p1`, or `x-coredata:///Entity/tUUID` while it is temporary.
    ///
    /// ``NSPersistentStoreCoordinator/managedObjectID(forURIRepresentation:)`` finds the ID again; the URI of a temporary
    /// ID does too as long as the process runs, also after the object was saved.
    ///
    /// ```swift
    /// let text = venue.objectID.uriRepresentation().absoluteString  // to be stored, or sent to a client
    /// ```
    ///
    /// - Returns: A URI that leads back by `managedObjectID(forURIRepresentation:)` of a coordinator with the same store.
    public func uriRepresentation() -> URL {
        if isTemporaryID { TemporaryIDs.remember(self) }
        let text = uriText
        // An entity's name that is no URL text is escaped; the rest is hexadecimal digits and slashes.
        return URL(string: text)
            ?? URL(string: text.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? "x-coredata:")
            ?? URL(fileURLWithPath: text)
    }

    private var uriText: String {
        let (key, store) = current
        let name = entity.name ?? ""
        guard let store else { return "x-coredata:///\(name)/t\(TemporaryIDs.uuid(of: key).uuidString)" }
        return "x-coredata://\(store.store.identifier ?? "")/\(name)/p\(store.uriText(ofKey: key, in: layout))"
    }

    /// The ID of an object whose store was removed before anybody asked for it.
    static func leadingNowhere(_ layout: EntityLayout) -> NSManagedObjectID {
        NSManagedObjectID(layout: layout, temporaryKey: TemporaryIDs.nextKey())
    }

    /// The key and the store as they are now.
    var current: (key: Int64, store: OpenStore?) {
        place.withLock { ($0.key, $0.store) }
    }

    package var key: Int64 { place.withLock { $0.key } }

    /// Turns the ID permanent.
    ///
    /// Called once, by the save that wrote the row, before anyone can look the row up.
    func becomePermanent(key: Int64, store: OpenStore) {
        filedKey.store(key, ordering: .releasing)
        place.withLock { $0 = Place(key: key, store: store) }
        Self.promotions.add(1, ordering: .releasing)
    }

    /// How many IDs have become permanent in this process, by which those who wait for one know when to look.
    static let promotions = Atomic(0)

    /// Returns the ID itself, which never changes identity.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The ID itself.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// The entity and the key, for logs.
    public override var description: String { "<\(uriText)>" }
}

extension NSManagedObjectID {
    /// The key that tables of IDs file the ID under.
    fileprivate var tableKey: Int64 { filedKey.load(ordering: .acquiring) }
}

extension NSManagedObjectID: NSFetchRequestResult {}

// `NSPredicate(format: "city == %@", city as CVarArg)`, as for values of Foundation.

extension NSManagedObjectID: CVarArg {
    /// The ID as an object, which is not counted.
    public var _cVarArgEncoding: [Int] { [Int(bitPattern: Unmanaged.passUnretained(self).toOpaque())] }
}

extension NSManagedObject: CVarArg {
    /// The object, which is not counted.
    public var _cVarArgEncoding: [Int] { [Int(bitPattern: Unmanaged.passUnretained(self).toOpaque())] }
}

/// The permanent IDs of one store that somebody holds, so that one row never has two.
///
/// Any thread may call any member.
final class ObjectIDTable: Sendable {
    fileprivate struct State: ~Copyable {
        var tables: [Int: ObjectTable<NSManagedObjectID>] = [:]
        var count = 0
        var sweepAt = 4096
    }

    private let state = Mutex(State())

    /// The ID of a row, made if nobody holds it.
    ///
    /// - Parameters:
    ///   - key: The key of the row.
    ///   - layout: The layout of the concrete entity of the row.
    ///   - store: The store of the row.
    /// - Returns: The ID.
    func id(key: Int64, layout: EntityLayout, store: OpenStore) -> NSManagedObjectID {
        state.withLock { state in
            if let id = state.tables[layout.rootNumber]?[key] { return id }
            let id = NSManagedObjectID(layout: layout, key: key, store: store.base)
            state.file(id)
            return id
        }
    }

    /// Files an ID that was temporary until now.
    ///
    /// - Returns: The ID of the row. It is another one if somebody holds an ID that the store has made before, which only custom
    /// stores do. Both name the row then.
    @discardableResult
    func adopt(_ id: NSManagedObjectID, key: Int64, store: OpenStore) -> NSManagedObjectID {
        state.withLock { state in
            if let table = state.tables[id.layout.rootNumber], table.isHeldElsewhere(key), let known = table[key] {
                id.becomePermanent(key: key, store: store)
                return known
            }
            id.becomePermanent(key: key, store: store)
            state.file(id)
            return id
        }
    }
}

extension ObjectIDTable.State {
    fileprivate mutating func file(_ id: NSManagedObjectID) {
        let root = id.layout.rootNumber
        if tables[root] == nil { tables[root] = ObjectTable() }
        tables[root]?.insert(id, for: id.tableKey)
        count += 1
        guard count >= sweepAt else { return }
        for table in tables.values { count -= table.sweep { _ in true } }
        sweepAt = max(4096, count * 2)
    }
}

/// The IDs of unsaved objects that somebody holds, in the whole process.
///
/// A child and its parent may hold the same unsaved object, so its ID must be the same in both. Any thread may call any
/// member.
enum TemporaryIDs {
    private struct State: ~Copyable {
        let held = ObjectTable<NSManagedObjectID>()
        /// IDs whose URI was asked for: it must find them for ever.
        var remembered: [Int64: NSManagedObjectID] = [:]
        var sweepAt = 4096
    }

    private static let state = Mutex(State())
    private static let lastKey = Atomic<Int64>(0)
    /// Eight bytes that tell this process's temporary URIs from those of others.
    private static let processBits = UInt64.random(in: .min ... .max)

    /// A number that no other unsaved object of the process has: -1, -2, and so on.
    static func nextKey() -> Int64 { lastKey.subtract(1, ordering: .relaxed).newValue }

    /// The ID of an unsaved object, made if nobody holds it.
    static func id(key: Int64, layout: EntityLayout) -> NSManagedObjectID {
        state.withLock { state in
            if let id = state.held[key] { return id }
            let id = NSManagedObjectID(layout: layout, temporaryKey: key)
            state.held.insert(id, for: id.tableKey)
            if state.held.count >= state.sweepAt {
                state.held.sweep { _ in true }
                state.sweepAt = max(4096, state.held.count * 2)
            }
            return id
        }
    }

    /// Takes out the ID of an object that has just become permanent, if anybody asked for it.
    static func take(_ key: Int64) -> NSManagedObjectID? {
        state.withLock { $0.held.remove(key) }
    }

    static func remember(_ id: NSManagedObjectID) {
        state.withLock { $0.remembered[id.temporaryKey] = id }
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
