/// What a context has to save, and what the current event has changed.
///
/// An object enters a list with its first change, and a flag says that it is in there. So a further change of the same
/// object costs a look at its flags.
///
/// Invariants:
/// - An object in ``objects`` has the flag `listed`, one in ``eventObjects`` has `eventListed`, one in
///   ``freshDeletions`` has been deleted, and one in ``checkedObjects`` has `conflictDetection` until its row is known
///   to be gone or its changes are dropped.
/// - No object is in a list twice.
/// - An object of the event that has unsaved changes is in ``objects`` too, unless its row is gone.
/// - Between two events nothing waits in ``mergedDeletions``.
///
/// Confined to the context's queue. Members look at flags and call nothing else, so no access to a tracker lasts while
/// other code runs.
struct ChangeTracker {
    /// The changed objects in the order of their first change, and some that no longer are.
    private(set) var objects: [NSManagedObject] = []
    /// The objects that changed in the current event.
    private(set) var eventObjects: [NSManagedObject] = []
    /// Objects that `detectConflicts(for:)` named.
    private(set) var checkedObjects: [NSManagedObject] = []
    /// Deleted objects whose delete rules may not have been applied yet.
    private(set) var freshDeletions: [NSManagedObject] = []
    /// Objects whose deletion elsewhere was merged in during this event.
    private(set) var mergedDeletions: [NSManagedObject] = []
    /// Objects whose deletion elsewhere was merged by the block that is under way, for those who look at what is deleted until its event ends.
    private(set) var recentlyDeleted: [NSManagedObject] = []
    /// Whether the current event is being ended.
    var isEndingEvent = false
    /// Whether a block that ends the event is in the main queue.
    var isEndScheduled = false

    init() {}

    // MARK: - Noting

    /// Enters an object that has changed.
    ///
    /// - Returns: Whether the object is the first of its event.
    @inline(__always)
    mutating func note(_ object: NSManagedObject) -> Bool {
        noteChange(of: object)
        return noteEvent(of: object)
    }

    /// Enters an object among those to be saved, but not into the event.
    @inline(__always)
    mutating func noteChange(of object: NSManagedObject) {
        if !object.flags.contains(.listed) {
            object.flags.insert(.listed)
            objects.append(object)
        }
    }

    /// Enters an object into the event, but not among those to be saved.
    ///
    /// - Returns: Whether the object is the first of its event.
    @inline(__always)
    @discardableResult
    mutating func noteEvent(of object: NSManagedObject) -> Bool {
        guard !object.flags.contains(.eventListed) else { return false }
        object.flags.insert(.eventListed)
        eventObjects.append(object)
        return eventObjects.count == 1
    }

    /// Enters an unchanged object whose version the next save checks.
    mutating func noteChecked(_ object: NSManagedObject) {
        object.flags.insert(.conflictDetection)
        checkedObjects.append(object)
    }

    /// Enters an object whose delete rules are to be applied.
    mutating func noteDeletion(of object: NSManagedObject) { freshDeletions.append(object) }

    /// Enters an object whose deletion elsewhere was merged.
    mutating func noteMergedDeletion(of object: NSManagedObject) { mergedDeletions.append(object) }

    // MARK: - Ending an event

    /// Takes the objects of the event, which ends here.
    mutating func takeEvent() -> [NSManagedObject] {
        defer { eventObjects = [] }
        return eventObjects
    }

    /// An object of an event that was set aside, and what had happened to it.
    struct SetAside {
        let object: NSManagedObject
        fileprivate let flags: ObjectFlags
    }

    /// Starts the list of the event's objects anew, for code that has to know what it changes without ending the event.
    ///
    /// - Returns: The objects that the event has listed so far, which ``resumeEvent(with:)`` gives back to it.
    mutating func setEventAside() -> [SetAside] {
        let kinds: ObjectFlags = [.eventInserted, .eventUpdated, .eventDeleted, .eventRefreshed]
        return takeEvent().map { object in
            let flags = object.flags.intersection(kinds)
            // Else a further change would pass for one that is noted already.
            object.flags.remove(kinds.union([.eventListed, .writable]))
            return SetAside(object: object, flags: flags)
        }
    }

    /// Gives objects back to the event that ``setEventAside()`` has taken from it.
    mutating func resumeEvent(with parts: [SetAside]) {
        for part in parts {
            part.object.flags.formUnion(part.flags)
            // What was new at the beginning of the event's second part had no values at that of the event.
            if part.flags.contains(.eventInserted) { part.object.extras?.eventBase = nil }
            noteEvent(of: part.object)
        }
    }

    /// Replaces the deletions whose rules are to be applied by those where that has failed.
    mutating func keepDeletions(_ failed: [NSManagedObject]) { freshDeletions = failed }

    /// Shows objects that a merge has deleted, until the event ends in which it was made; or none any more.
    mutating func show(recentlyDeleted objects: [NSManagedObject]) {
        if !objects.isEmpty || !recentlyDeleted.isEmpty { recentlyDeleted = objects }
    }

    /// Takes objects whose deletion elsewhere was merged in off the list of changes.
    ///
    /// They stay registered and readable for those who hold them, but no fetch finds them and nothing is saved of them.
    mutating func forgetMergedDeletions() {
        guard !mergedDeletions.isEmpty else { return }
        // Most had no changes here: then the list is left alone, however long it is.
        let wereListed = mergedDeletions.contains { $0.flags.contains(.listed) }
        for object in mergedDeletions { object.flags.remove(.listed) }
        mergedDeletions = []
        if wereListed { objects.removeAll { !$0.flags.contains(.listed) } }
    }

    // MARK: - Ending changes

    /// Drops from the list of changes what is no change any more.
    mutating func compact() {
        objects.removeAll { object in
            guard !object.hasChanges else { return false }
            object.flags.remove(.listed)
            return true
        }
    }

    /// Replaces the list of changes by those of its objects that still are to be saved.
    ///
    /// The flags are up to the caller.
    mutating func keepChanges(_ rest: [NSManagedObject]) { objects = rest }

    /// Ends the version checks that ``noteChecked(_:)`` asked for.
    mutating func endChecks() {
        for object in checkedObjects { object.flags.remove(.conflictDetection) }
        checkedObjects = []
    }

    /// Forgets all changes and the event: the context has let go of its objects.
    mutating func forgetAll() {
        objects = []
        eventObjects = []
        checkedObjects = []
        mergedDeletions = []
        recentlyDeleted = []
        freshDeletions = []
    }

    // MARK: - Invariants

    /// Stops a debug build if an event has left behind what contradicts the invariants.
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

    /// Stops a debug build if the lists contradict the invariants.
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
