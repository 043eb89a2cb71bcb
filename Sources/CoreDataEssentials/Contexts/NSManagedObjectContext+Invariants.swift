// The invariants of a context's parts. A debug build stops if one is broken; a release build checks nothing.

extension NSManagedObjectContext {
    /// Checks the invariants that an event may have broken.
    ///
    /// - Parameter event: The objects of the event that has just ended.
    /// - Complexity: O(number of objects in the event).
    final func checkInvariants(after event: [NSManagedObject]) {
        #if DEBUG
        changeTracker.checkInvariants(after: event, of: self)
        identityMap.checkInvariants(after: event, of: self)
        undoLog.checkInvariantsAfterEvent()
        #endif
    }

    /// Checks the invariants of all parts, before and after a save.
    ///
    /// - Complexity: O(number of changes).
    final func checkInvariants() {
        #if DEBUG
        changeTracker.checkInvariants()
        rowsInAdvance.checkInvariants()
        pinnedVersion.checkInvariants()
        tree.checkInvariants()
        undoLog.checkInvariants()
        saving.checkInvariants()
        #endif
    }
}
