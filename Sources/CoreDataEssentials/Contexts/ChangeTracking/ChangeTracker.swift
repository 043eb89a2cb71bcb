/// The changes that a context has to save, and the changes of the current event.
///
/// An object enters a list with its first change, and a flag records that it is in the list. So a further change of
/// the same object only costs a look at its flags.
///
/// Invariants:
/// - An object in ``objects`` has the flag `listed`, and one in ``eventObjects`` has `eventListed`.
/// - An object in ``freshDeletions`` has been deleted.
/// - An object in ``checkedObjects`` has `conflictDetection` until its row is known to be gone or its changes are
///   dropped.
/// - No object is in a list twice.
/// - An object of the event that has unsaved changes is in ``objects`` too, unless its row is gone.
/// - Between two events ``mergedDeletions`` is empty.
///
/// This is confined to the context's queue. Members look at flags and call nothing else, so no access to a tracker
/// lasts while other code runs.
struct ChangeTracker {
    /// The changed objects in the order of their first change, and some objects that have no changes any more.
    private(set) var objects: [NSManagedObject] = []
    /// The new objects of the list by their values; forgotten whenever the list changes other than by an object at its end.
    var index = PendingIndex()
    /// The objects that changed in the current event.
    private(set) var eventObjects: [NSManagedObject] = []
    /// The objects that were passed to `detectConflicts(for:)`.
    private(set) var checkedObjects: [NSManagedObject] = []
    /// The deleted objects whose delete rules may not have been applied yet.
    private(set) var freshDeletions: [NSManagedObject] = []
    /// The objects whose deletion elsewhere was merged during this event.
    private(set) var mergedDeletions: [NSManagedObject] = []
    /// The objects whose deletion elsewhere was merged by the current block.
    ///
    /// `deletedObjects` shows them until the block's event ends.
    private(set) var recentlyDeleted: [NSManagedObject] = []
    /// Whether the current event is being ended.
    var isEndingEvent = false
    /// Whether the main queue has a block that will end the event.
    var isEndScheduled = false

    init() {}

    // MARK: - Noting

    /// Adds an object that has changed.
    ///
    /// - Returns: Whether the object is the first of its event.
    @inline(__always)
    mutating func addToSaveAndEvent(_ object: NSManagedObject) -> Bool {
        addToSave(object)
        return addToEvent(object)
    }

    /// Adds an object to those to be saved, but not to the event.
    @inline(__always)
    mutating func addToSave(_ object: NSManagedObject) {
        if !object.flags.contains(.listed) {
            object.flags.insert(.listed)
            objects.append(object)
        }
    }

    /// Adds an object to the event, but not to those to be saved.
    ///
    /// - Returns: Whether the object is the first of its event.
    @inline(__always)
    @discardableResult
    mutating func addToEvent(_ object: NSManagedObject) -> Bool {
        guard !object.flags.contains(.eventListed) else { return false }
        object.flags.insert(.eventListed)
        eventObjects.append(object)
        return eventObjects.count == 1
    }

    /// Adds an unchanged object whose version the next save checks.
    mutating func addToVersionChecks(_ object: NSManagedObject) {
        object.flags.insert(.conflictDetection)
        checkedObjects.append(object)
    }

    /// Adds an object whose delete rules are to be applied.
    mutating func addFreshDeletion(of object: NSManagedObject) { freshDeletions.append(object) }

    /// Adds an object whose deletion elsewhere was merged.
    mutating func addMergedDeletion(of object: NSManagedObject) { mergedDeletions.append(object) }

    // MARK: - Ending an event

    /// Takes the objects of the event and thereby ends it.
    mutating func endEvent() -> [NSManagedObject] {
        defer { eventObjects = [] }
        return eventObjects
    }

    /// An object of an event that was set aside, and the changes that it had.
    struct SetAside {
        let object: NSManagedObject
        fileprivate let flags: ObjectFlags
    }

    /// Restarts the list of the event's objects, for code that has to know its own changes without ending the event.
    ///
    /// - Returns: The objects that the event has listed so far; pass them to ``resumeEvent(with:)``.
    mutating func setEventAside() -> [SetAside] {
        let kinds: ObjectFlags = [.eventInserted, .eventUpdated, .eventDeleted, .eventRefreshed]
        return endEvent().map { object in
            let flags = object.flags.intersection(kinds)
            // If the flags stayed, then a further change would count as noted already.
            object.flags.remove(kinds.union([.eventListed, .writable]))
            return SetAside(object: object, flags: flags)
        }
    }

    /// Returns objects to the event that ``setEventAside()`` has taken them from.
    mutating func resumeEvent(with parts: [SetAside]) {
        for part in parts {
            part.object.flags.formUnion(part.flags)
            // An object that was inserted in the first part of the event had no values when the event began.
            if part.flags.contains(.eventInserted) { part.object.extras?.eventBase = nil }
            addToEvent(part.object)
        }
    }

    /// Replaces the deletions whose rules are to be applied by those whose rules have failed.
    mutating func keepDeletions(_ failed: [NSManagedObject]) { freshDeletions = failed }

    /// Shows objects that a merge has deleted until the merge's event ends; an empty list shows none.
    mutating func show(recentlyDeleted objects: [NSManagedObject]) {
        if !objects.isEmpty || !recentlyDeleted.isEmpty { recentlyDeleted = objects }
    }

    /// Removes objects whose deletion elsewhere was merged from the list of changes.
    ///
    /// They stay registered, and code that holds them can still read them. But no fetch finds them, and a save writes
    /// nothing for them.
    mutating func forgetMergedDeletions() {
        guard !mergedDeletions.isEmpty else { return }
        // Usually none of them had changes here. Then the list is left alone, however long it is.
        let wereListed = mergedDeletions.contains { $0.flags.contains(.listed) }
        for object in mergedDeletions { object.flags.remove(.listed) }
        mergedDeletions = []
        guard wereListed else { return }
        objects.removeAll { !$0.flags.contains(.listed) }
        index.forget()
    }

    // MARK: - Ending changes

    /// Removes objects without changes from the list of changes.
    mutating func compact() {
        let count = objects.count
        objects.removeAll { object in
            guard !object.hasChanges else { return false }
            object.flags.remove(.listed)
            return true
        }
        if objects.count != count { index.forget() }
    }

    /// Replaces the list of changes by the objects that still have to be saved.
    ///
    /// The caller is responsible for the flags.
    mutating func keepChanges(_ rest: [NSManagedObject]) {
        objects = rest
        index.forget()
    }

    /// Ends the version checks that ``addToVersionChecks(_:)`` asked for.
    mutating func endChecks() {
        for object in checkedObjects { object.flags.remove(.conflictDetection) }
        checkedObjects = []
    }

    /// Forgets all changes and the event, since the context has released its objects.
    mutating func forgetAll() {
        objects = []
        index.forget()
        eventObjects = []
        checkedObjects = []
        mergedDeletions = []
        recentlyDeleted = []
        freshDeletions = []
    }

    // MARK: - Invariants

    /// Stops a debug build if an event has broken the invariants.
    ///
    /// - Parameters:
    ///   - event: The objects of the event that has ended.
    ///   - context: The context whose event it was.
    /// - Complexity: O(number of objects in the event).
    func checkInvariants(after event: [NSManagedObject], of context: NSManagedObjectContext) {
        #if DEBUG
        assert(mergedDeletions.isEmpty, "CoreData: a merged deletion has outlived its event.")
        for object in event where object.context === context {
            assert(
                !object.hasChanges || object.flags.contains(.listed) || object.flags.contains(.gone),
                "CoreData: \(object.objectID) has changes, but is not listed to be saved."
            )
        }
        #endif
    }

    /// Stops a debug build if the lists break the invariants.
    ///
    /// - Complexity: O(number of changes).
    func checkInvariants() {
        #if DEBUG
        assert(objects.allSatisfy { $0.flags.contains(.listed) }, "CoreData: a listed change lacks its flag.")
        assert(
            eventObjects.allSatisfy { $0.flags.contains(.eventListed) },
            "CoreData: an object of the event lacks its flag."
        )
        assert(Set(objects.map(ObjectIdentifier.init)).count == objects.count, "CoreData: a change is listed twice.")
        #endif
    }
}
