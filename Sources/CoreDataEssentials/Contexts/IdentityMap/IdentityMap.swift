import StrataLocks
import StrataPredicates
import StrataRows

/// The objects of a context: at most one for each row, found by key.
///
/// Stored objects are in one table for each store and hierarchy, by their primary keys. Objects that are in no store
/// yet are all in one table, by their temporary keys.
///
/// Invariants:
/// - ``storedCount`` is the number of objects in ``tables``.
/// - An object that belongs to the context and changed in the current event is filed under its present key.
///
/// This is confined to the context's queue. Members call nothing but the tables, so no access to a map lasts while
/// other code runs.
struct IdentityMap {
    /// Stored objects by key, at ``tableIndex(storeIndex:root:)``.
    private(set) var tables: [ObjectTable<NSManagedObject>?] = []
    /// Unsaved objects by their temporary keys.
    let temporaryObjects = ObjectTable<NSManagedObject>()
    /// The number of objects in `tables`.
    private(set) var storedCount = 0
    /// The number of objects in `tables` that causes the next search for unneeded objects.
    private var sweepThreshold = WorkSize.sweptObjects
    /// The keys that `obtainPermanentIDs` gave to unsaved objects, by temporary key.
    private(set) var permanentKeys = PermanentKeys()

    /// The maximum number of tables for one store.
    private var tableStride = 1
    /// The number of each entity's root, at the entity's number less one.
    private(set) var rootNumbers: [Int] = []

    /// Faults for unsaved objects of other contexts.
    ///
    /// Once such an object is saved, its fault is filed under its permanent key.
    private(set) var faultsOfUnsaved: [NSManagedObject] = []
    /// The number of IDs in the process that had become permanent when ``faultsOfUnsaved`` were last looked at.
    var seenPromotions = 0

    /// Whether some object is in a store that is notified which of its objects are registered.
    var notifiesStores = false
    /// The number of objects that were found to have been deleted elsewhere.
    ///
    /// Relationships that were loaded before may still name them.
    private(set) var lossCount = 0
    /// The number of times that the context was reset.
    private(set) var resetCount = 0

    init() {}

    /// Prepares an empty map for the objects of a model, or for a context without a model.
    mutating func use(_ model: FrozenModel?) {
        tableStride = (model?.entities.count ?? 0) + 1
        rootNumbers = model?.rootNumbers ?? []
    }

    /// Whether there are no objects.
    var isEmpty: Bool { storedCount == 0 && temporaryObjects.count == 0 }

    // MARK: - Finding

    /// The position of the table of one hierarchy in one store.
    @inline(__always)
    func tableIndex(storeIndex: Int32, root: Int) -> Int { Int(storeIndex) * tableStride + root }

    /// The table of one hierarchy in one store; `nil` before its first use.
    @inline(__always)
    func table(storeIndex: Int32, root: Int) -> ObjectTable<NSManagedObject>? {
        let index = tableIndex(storeIndex: storeIndex, root: root)
        return index < tables.count ? tables[index] : nil
    }

    /// Makes the table of one hierarchy in one store.
    mutating func makeTable(storeIndex: Int32, root: Int) -> ObjectTable<NSManagedObject> {
        let index = tableIndex(storeIndex: storeIndex, root: root)
        if tables.count <= index { tables += repeatElement(nil, count: index + 1 - tables.count) }
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

    /// Removes a stored object.
    ///
    /// - Returns: The object; `nil` if there was none with that key.
    mutating func remove(_ key: Int64, from table: ObjectTable<NSManagedObject>?) -> NSManagedObject? {
        guard let object = table?.remove(key) else { return nil }
        storedCount -= 1
        return object
    }

    /// Notes a fault that stands for an unsaved object of another context.
    mutating func addFaultOfUnsaved(_ object: NSManagedObject) { faultsOfUnsaved.append(object) }

    /// Replaces the faults for objects of other contexts by those whose objects are still unsaved.
    mutating func keepFaultsOfUnsaved(_ rest: [NSManagedObject]) { faultsOfUnsaved = rest }

    /// Gives the memory of the table of unsaved objects back after a large save.
    func letGoOfMemoryOfUnsaved() { temporaryObjects.letGoOfMemory(above: WorkSize.sweptObjects) }

    /// Notes the permanent key of an object that was known by a temporary key.
    mutating func setPermanentKey(_ key: Int64, for temporary: Int64) { permanentKeys.set(key, for: temporary) }

    /// Forgets all permanent keys, since nothing refers to the temporary ones any more.
    mutating func forgetPermanentKeys() { permanentKeys = PermanentKeys() }

    /// Notes that an object was found to have been deleted elsewhere.
    mutating func countLoss() { lossCount += 1 }

    // MARK: - Releasing objects

    /// Whether the number of stored objects has doubled since the last sweep; so sweeps cost O(1) for each object.
    var isSweepDue: Bool { storedCount >= sweepThreshold }

    /// Notes the number of objects that a sweep has removed from the tables.
    mutating func subtractSwept(_ count: Int) { storedCount -= count }

    /// Ends a sweep; the next one is due when the number of remaining objects has doubled.
    mutating func endSweep() { sweepThreshold = max(WorkSize.sweptObjects, storedCount * 2) }

    /// Empties the map, for a reset.
    mutating func removeAll() {
        for table in tables { table?.removeAll() }
        temporaryObjects.removeAll()
        storedCount = 0
        sweepThreshold = WorkSize.sweptObjects
        permanentKeys = PermanentKeys()
        faultsOfUnsaved = []
        resetCount += 1
    }

    // MARK: - Invariants

    /// Stops a debug build if an object of an event is not filed where searches look.
    ///
    /// - Parameters:
    ///   - event: The objects of the event that has ended.
    ///   - context: The context whose event it was.
    /// - Complexity: O(number of objects in the event).
    func checkInvariants(after event: [NSManagedObject], of context: NSManagedObjectContext) {
        #if DEBUG
        // Negative keys are not checked: the row of a damaged file may have one, possibly that of an unsaved object.
        for object in event where object.context === context && object.key > 0 {
            let table = table(storeIndex: object.storeIndex, root: object.layout.rootNumber)
            assert(table?[object.key] === object, "CoreData: \(object.objectID) is not filed under its key.")
        }
        #endif
    }
}
