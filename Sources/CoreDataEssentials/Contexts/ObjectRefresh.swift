import StrataRows

/// One refresh of an object.
///
/// The object becomes a fault, or its changes are put on top of its newest row:
///
///     refresh → end the event → drop a deletion whose row may exist again → read the newest row, put it under the changes
///                                                                         ↘ drop the changes, become a fault
///
/// An unsaved object has no row: it loses its insertion, or stays as it is. A value lives for one call, inside the
/// context's scope.
struct ObjectRefresh {
    private let object: NSManagedObject
    private let context: NSManagedObjectContext

    init(of object: NSManagedObject, in context: NSManagedObjectContext) {
        self.object = object
        self.context = context
    }

    /// Refreshes the object.
    func run(keepingChanges keepsChanges: Bool) {
        guard context.isStored(object) else {
            if !keepsChanges { dropUnsaved() }
            return
        }
        begin()
        if object.flags.contains(.gone) {
            // Another context or process has deleted the object. It stays readable, unless its values were never
            // found: then its row may exist again.
            guard object.flags.contains(.inaccessible) else { return }
            object.flags.remove([.gone, .deleted, .deletePropagated])
        }
        guard !keepsChanges || !object.hasChanges else { return keepChanges() }
        object.noteValues()
        if object.hasChanges {
            context.discardedSides.note(object, in: context)
            object.discardChanges()
        }
        if !context.failedReads.isEmpty { context.failedReads.forgetWrites(to: object) }
        object.turnIntoFault()
        context.addRefreshed(object)
    }

    /// Puts a newer row under the changes of the object.
    ///
    /// - Parameter row: The row that is stored now; `nil` if it is not known, and for a fault.
    func putChanges(onto row: Row?) {
        begin()
        if object.isFault {
            // Only relationships are changed, and a fault reads the newest values by itself.
            object.forgetWhatWasRead()
        } else {
            if let row {
                object.rebase(onto: row)
                context.acceptRefreshed(object)
            }
            object.awake(fromSnapshotEvents: .refresh)
        }
        context.addRefreshed(object)
    }

    private func begin() {
        // Changes from elsewhere must not become part of an undo step.
        if !context.undoLog.records.isEmpty { context.endEvent(isMerge: false) }
        context.downward.countStateChange()
    }

    /// Reads the newest row, and puts the changes on top of it.
    private func keepChanges() {
        // A refresh wants the newest row. The cache is as new as anything this coordinator has read or saved.
        do {
            putChanges(onto: object.isFault ? nil : try context.newestRow(of: object))
        } catch {
            // The object does not become a fault: a fault would be read again, but would lose its changes.
            context.failedReads.recordError(error)
            context.coordinator?.report(error, "refreshing \(object.objectID)")
        }
    }

    /// Turns an unsaved object into a fault without a row.
    ///
    /// The next save drops the relationships that lead to it (``DiscardedSides``).
    private func dropUnsaved() {
        guard object.isInserted else {
            if !object.isUpdated { object.turnIntoFault() }
            return
        }
        begin()
        let wasAnnounced = !object.flags.contains(.eventInserted)
        context.discardedSides.note(object, in: context)
        object.discardChanges()
        object.turnIntoFault()
        context.addToEvent(object, as: wasAnnounced ? .eventDeleted : .eventRefreshed)
    }
}
