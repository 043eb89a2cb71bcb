// The invariants of a context's parts. Debug builds stop where one does not hold; release builds check nothing.

extension NSManagedObjectContext {
    /// Checks what an event may have broken.
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

    /// Checks all parts, before a save and after it.
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
