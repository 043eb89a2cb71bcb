import StrataPredicates
import StrataRows

/// The objects of a context: at most one for each row, found by key.
///
/// Stored objects are in a table for each store and hierarchy, under their primary keys. Objects that no store has yet
/// are in one table for all, under their temporary keys.
///
/// Invariants:
/// - ``storedCount`` is the number of objects in ``tables``.
/// - An object that belongs to the context and changed in the current event is filed under the key that it has.
///
/// Confined to the context's queue. Members call nothing but the tables, so no access to a map lasts while other code
/// runs.
struct IdentityMap {
    /// Stored objects by key, at ``tableIndex(storeIndex:root:)``.
    private(set) var tables: [ObjectTable<NSManagedObject>?] = []
    /// Unsaved objects by their temporary keys.
    let temporaryObjects = ObjectTable<NSManagedObject>()
    /// How many objects there are in `tables`.
    private(set) var storedCount = 0
    /// The number of objects in `tables` at which those that nobody needs are looked for.
    private var sweepThreshold = Self.minimumSweepThreshold
    /// Keys that `obtainPermanentIDs` gave to unsaved objects, so that references to the temporary ones are understood.
    private(set) var permanentKeys = KeyMap<Int64>()

    /// How many tables one store may have.
    private var tableStride = 1
    /// The numbers of the hierarchies' roots, by the entity's number less one.
    private(set) var rootNumbers: [Int] = []

    /// Faults for unsaved objects of other contexts: once those are saved, they are filed as what they turned out to
    /// be.
    private(set) var strangers: [NSManagedObject] = []
    /// How many IDs of the process had become permanent when ``strangers`` were last looked at.
    var seenPromotions = 0

    /// Whether some object is of a store that is told which of its objects are registered.
    var tellsStores = false
    /// How many objects have turned out to be gone, through others' deletions: relationships that were loaded before
    /// may still name them.
    private(set) var lossCount = 0
    /// How often the context was reset.
    private(set) var resetCount = 0

    private static let minimumSweepThreshold = 4096

    init() {}

    /// Sets an empty map up for the objects of a model, or of none.
    mutating func use(_ model: FrozenModel?) {
        tableStride = (model?.entities.count ?? 0) + 1
        rootNumbers = model?.rootNumbers ?? []
    }

    /// Whether there is no object.
    var isEmpty: Bool { storedCount == 0 && temporaryObjects.count == 0 }

    // MARK: - Finding

    /// Where the table of one hierarchy in one store is.
    @inline(__always)
    func tableIndex(storeIndex: Int32, root: Int) -> Int { Int(storeIndex) * tableStride + root }

    /// The table of one hierarchy in one store, if it was needed before.
    @inline(__always)
    func table(storeIndex: Int32, root: Int) -> ObjectTable<NSManagedObject>? {
        let index = tableIndex(storeIndex: storeIndex, root: root)
        return index < tables.count ? tables[index] : nil
    }

    /// Makes the table of one hierarchy in one store.
    mutating func makeTable(storeIndex: Int32, root: Int) -> ObjectTable<NSManagedObject> {
        let index = tableIndex(storeIndex: storeIndex, root: root)
        while tables.count <= index { tables.append(nil) }
        let table = ObjectTable<NSManagedObject>()
        tables[index] = table
        return table
    }

    // MARK: - Filing

    /// Files a stored object in the table of its hierarchy.
    @inline(__always)
    mutating func file(_ object: NSManagedObject, in table: ObjectTable<NSManagedObject>) {
        table.insert(object, for: object.key)
        storedCount &+= 1
    }

    /// Takes a stored object out.
    ///
    /// - Returns: The object; `nil` if there was none of that key.
    mutating func remove(_ key: Int64, from table: ObjectTable<NSManagedObject>?) -> NSManagedObject? {
        guard let object = table?.remove(key) else { return nil }
        storedCount -= 1
        return object
    }

    /// Files a fault that stands for an unsaved object of another context.
    mutating func note(stranger: NSManagedObject) { strangers.append(stranger) }

    /// Replaces the strangers by those that still are unsaved elsewhere.
    mutating func keepStrangers(_ rest: [NSManagedObject]) { strangers = rest }

    /// Notes the permanent key of an object that was known by a temporary one.
    mutating func note(permanentKey key: Int64, for temporary: Int64) { permanentKeys.set(key, for: temporary) }

    /// Forgets permanent keys that nothing refers to by the temporary ones any more.
    mutating func forgetPermanentKeys() { permanentKeys = KeyMap() }

    /// Notes that an object has turned out to be gone.
    mutating func noteLoss() { lossCount += 1 }

    // MARK: - Letting go

    /// Whether the number of stored objects has doubled since the last time that this was true: O(1) an object.
    var isSweepDue: Bool { storedCount >= sweepThreshold }

    /// Notes how many objects a sweep has taken out of the tables.
    mutating func noteSwept(_ count: Int) { storedCount -= count }

    /// Ends a sweep: the next is due when what is left has doubled.
    mutating func endSweep() { sweepThreshold = max(Self.minimumSweepThreshold, storedCount * 2) }

    /// Empties the map, for a reset.
    mutating func removeAll() {
        for table in tables { table?.removeAll() }
        temporaryObjects.removeAll()
        storedCount = 0
        sweepThreshold = Self.minimumSweepThreshold
        permanentKeys = KeyMap()
        strangers = []
        resetCount += 1
    }

    // MARK: - Invariants

    /// Stops a debug build if an object of an event is not where it is looked for.
    ///
    /// - Parameters:
    ///   - event: The objects of the event that has ended.
    ///   - context: The context whose event it was.
    /// - Complexity: O(number of objects in the event).
    func checkInvariants(after event: [NSManagedObject], of context: NSManagedObjectContext) {
        #if DEBUG
        // Of negative keys nothing is promised: the row of a damaged file may have one, also that of an unsaved object.
        for object in event where object.context === context && object.key > 0 {
            let table = table(storeIndex: object.storeIndex, root: object.layout.rootNumber)
            assert(table?[object.key] === object, "CoreData: \(object.objectID) is not filed under its key.")
        }
        #endif
    }
}
