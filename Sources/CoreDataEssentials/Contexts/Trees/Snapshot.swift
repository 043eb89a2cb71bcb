import StrataRows

/// The state of one object that a parent passes to a child.
///
/// The row is not written to as long as it is shared.
struct Snapshot {
    /// The key that the parent uses; it is negative as long as the object has never been saved to a store.
    ///
    /// The row itself may still have an earlier key.
    let key: Int64
    let storeIndex: Int32
    let row: Row
    /// The IDs of the unsaved objects that the row names, and of the object itself if it is unsaved.
    let temporaries: [NSManagedObjectID]
}

// Answers of a context to its children. Called inside its scope.

extension NSManagedObjectContext {
    /// The current state of the object, including unsaved changes; `nil` if it is deleted.
    ///
    /// A fault stays a fault. The object's own row is shared from now on: it is copied before it is written to again.
    final func snapshot(of object: NSManagedObject) throws -> Snapshot? {
        guard object.isFault else {
            if let error = failedReads.error(ofWrittenRowOf: object) { throw error }
            return snapshot(ofLoaded: object)
        }
        guard object.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]),
            let row = try newestRow(ofFault: object)
        else { return nil }
        return snapshot(key: object.key, storeIndex: object.storeIndex, row: row)
    }

    /// Like ``snapshot(of:)``, for an object that is no fault, so that nothing has to be read.
    final func snapshot(ofLoaded object: NSManagedObject) -> Snapshot? {
        guard object.flags.isDisjoint(with: [.fault, .deleted, .gone, .inaccessible]), let row = object.current else {
            return nil
        }
        if object.flags.contains(.ownsRow) {
            object.flags.insert(.rowShared)
            object.flags.remove(.writable)
        }
        let storeIndex = object.isInserted ? storeIndexForInsertion(of: object) : object.storeIndex
        return snapshot(key: object.key, storeIndex: storeIndex, row: row)
    }

    /// A row with the IDs of the unsaved objects that it names.
    final func snapshot(key: Int64, storeIndex: Int32, row: Row) -> Snapshot {
        var temporaries: [NSManagedObjectID] = []
        if key < 0, let id = temporaryID(key) { temporaries.append(id) }
        for slot in row.layout.referenceSlots {
            if let reference = row.reference(slot), reference.key < 0, let id = temporaryID(reference.key) {
                temporaries.append(id)
            }
        }
        return Snapshot(key: key, storeIndex: storeIndex, row: row, temporaries: temporaries)
    }

    /// The ID of an unsaved object that this context, or one above, has.
    final func temporaryID(_ key: Int64) -> NSManagedObjectID? {
        identityMap.temporaryObjects[key]?.objectID ?? upward?.foreignIDs[key]
    }
}
