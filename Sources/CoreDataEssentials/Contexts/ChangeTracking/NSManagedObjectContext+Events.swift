import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// Ends the current event.
    ///
    /// - Parameter isMerge: Whether the event consists of the merge of changes from elsewhere, and of nothing else.
    package final func endEvent(isMerge: Bool) {
        guard !changeTracker.isEndingEvent else { return }
        changeTracker.isEndingEvent = true
        changeTracker.show(recentlyDeleted: isMerge ? changeTracker.mergedDeletions : [])
        if propagatesDeletesAtEndOfEvent {
            // A save applies the rules again, and can throw.
            do { try propagateDeletes() } catch { coordinator?.report(error, "applying delete rules") }
        }
        closeUndoStep()
        let event = observers.makeEvent(of: changeTracker.eventObjects)
        let objects = changeTracker.endEvent()
        let sets = endEvent(of: objects, isMerge)
        changeTracker.forgetMergedDeletions()
        checkInvariants(after: objects)
        changeTracker.isEndingEvent = false
        // A handler may do anything, including a save.
        if let sets { post(.didChange) { $0 = sets } }
        if let event { observers.eventEnded(event) }
        observers.values?.report()
    }

    // MARK: - Delete rules

    /// Applies the delete rules of every object that was deleted since the last call, including cascades.
    ///
    /// - Throws: The error that kept relationships from being read. The rules of those objects remain to be applied.
    final func propagateDeletes() throws {
        var failed: [NSManagedObject] = []
        var failure: (any Error)?
        var index = 0
        // Cascades append to the list while it is walked.
        while index < changeTracker.freshDeletions.count {
            let object = changeTracker.freshDeletions[index]
            index += 1
            guard object.context === self, object.flags.contains(.deleted),
                object.flags.isDisjoint(with: [.deletePropagated, .gone])
            else {
                continue
            }
            object.flags.insert(.deletePropagated)
            do {
                try propagateDelete(of: object)
            } catch {
                object.flags.remove(.deletePropagated)
                failed.append(object)
                failure = failure ?? error
            }
        }
        changeTracker.keepDeletions(failed)
        if let failure { throw failure }
    }

    private func propagateDelete(of object: NSManagedObject) throws {
        try readFault(object)
        guard !object.flags.contains(.inaccessible) else { return }
        for slot in object.layout.referenceSlots {
            guard let relationship = slot.relationship, let destination = object.toOne(slot) else { continue }
            try apply(relationship, of: object, to: destination)
        }
        for slot in object.layout.toMany {
            let rule = slot.relationship.deleteRule
            // Without an inverse, the members need no change. The store drops the memberships itself.
            guard
                rule == .cascade
                    || (rule == .nullify && slot.relationship.inverse != nil)
            else { continue }
            for member in objects(for: try object.readMembers(slot), near: object) {
                try apply(slot.relationship, of: object, to: member)
            }
        }
    }

    /// Fires a fault, for callers that can throw.
    private func readFault(_ object: NSManagedObject) throws {
        guard object.isFault else { return }
        object.fireFault()
        // The object is still a fault if it could not be read. Then a second read throws the error.
        guard object.isFault else { return }
        _ = try newestRow(ofFault: object)
        object.fireFault()
    }

    private func apply(
        _ relationship: Relationship,
        of object: NSManagedObject,
        to destination: NSManagedObject
    ) throws {
        guard !destination.flags.contains(.deleted) else { return }
        switch relationship.deleteRule {
        case .cascade: deleteObject(destination)
        case .nullify:
            guard let inverse = relationship.inverse else { return }
            // Only the row of the destination says whether its side shows the deleted object.
            if !inverse.isToMany { try readFault(destination) }
            destination.dropInverse(inverse, of: object)
        default: break
        }
    }

    // MARK: - Ending the event

    /// Ends the event for its objects.
    ///
    /// - Returns: The sets that objects-did-change reports; `nil` if it reports nothing.
    private func endEvent(of objects: [NSManagedObject], _ isMerge: Bool) -> NotificationSets? {
        guard !objects.isEmpty else { return nil }
        var inserted: [NSManagedObject] = []
        var updated: [NSManagedObject] = []
        var deleted: [NSManagedObject] = []
        var refreshed: [NSManagedObject] = []
        objects.forEachBorrowed { object in
            let flags = object.flags
            object.endEvent()
            if flags.contains(.eventDeleted) {
                deleted.append(object)
            } else if flags.contains(.eventInserted) {
                inserted.append(object)
            } else if flags.contains(.eventUpdated) {
                updated.append(object)
            } else if flags.contains(.eventRefreshed) {
                refreshed.append(object)
            }
        }
        var sets = NotificationSets()
        if !inserted.isEmpty { sets.add(.insertedObjects, shownSet(of: inserted)) }
        if !updated.isEmpty { sets.add(.updatedObjects, shownSet(of: updated)) }
        if !deleted.isEmpty { sets.add(.deletedObjects, shownSet(of: deleted)) }
        if !refreshed.isEmpty { sets.add(.refreshedObjects, shownSet(of: refreshed)) }
        if isMerge { sets.addChangedByMerge() }
        return sets.userInfo.isEmpty ? nil : sets
    }
}
