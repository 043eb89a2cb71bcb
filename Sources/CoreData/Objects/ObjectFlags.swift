import StrataRows

/// The state of a managed object, in one word that every access tests at once.
struct ObjectFlags: OptionSet {
    let rawValue: UInt32

    /// No values are loaded; the first access asks the row cache, then the store.
    static let fault = ObjectFlags(rawValue: 1 << 0)
    /// Every access checks confinement.
    static let checked = ObjectFlags(rawValue: 1 << 1)
    /// Never registered with a context, or no longer.
    static let detached = ObjectFlags(rawValue: 1 << 2)
    /// The values are the object's own and may be written in place.
    static let ownsRow = ObjectFlags(rawValue: 1 << 3)

    static let inserted = ObjectFlags(rawValue: 1 << 4)
    static let updated = ObjectFlags(rawValue: 1 << 5)
    static let deleted = ObjectFlags(rawValue: 1 << 6)
    /// The row was found missing when the fault fired: all properties read nil, zero or empty.
    static let inaccessible = ObjectFlags(rawValue: 1 << 7)

    /// Inserted, updated, deleted or refreshed since the last objects-did-change notification.
    static let eventInserted = ObjectFlags(rawValue: 1 << 8)
    static let eventUpdated = ObjectFlags(rawValue: 1 << 9)
    static let eventDeleted = ObjectFlags(rawValue: 1 << 10)
    static let eventRefreshed = ObjectFlags(rawValue: 1 << 11)
    /// Its delete rules have been applied.
    static let deletePropagated = ObjectFlags(rawValue: 1 << 12)
    /// Already in the context's list of changed objects, or in the list of the event.
    static let listed = ObjectFlags(rawValue: 1 << 13)
    static let eventListed = ObjectFlags(rawValue: 1 << 14)
    /// `awakeFromFetch` is running: changes do not count as changes.
    static let awaking = ObjectFlags(rawValue: 1 << 15)
    /// The deletion was saved: the object is gone for good.
    static let gone = ObjectFlags(rawValue: 1 << 16)
    /// The next save checks that the row is unchanged, though the object is not changed.
    static let conflictDetection = ObjectFlags(rawValue: 1 << 17)

    /// The row is the object's own and this event's change is noted: a write goes straight to the row.
    static let writable = ObjectFlags(rawValue: 1 << 18)

    /// A child context has been shown the object's own row: whoever writes next copies it first.
    static let rowShared = ObjectFlags(rawValue: 1 << 19)
    /// A fetch has read the object for the sake of another one that leads to it.
    static let prefetched = ObjectFlags(rawValue: 1 << 20)
    /// It stands for one new row of a batch insert, in no context.
    static let batchRow = ObjectFlags(rawValue: 1 << 21)

    /// A merge has told of the object as refreshed, and it was a fault after that: until somebody reads it, it cannot be refreshed again.
    static let mergedFault = ObjectFlags(rawValue: 1 << 22)

    /// A batched fetch prefetches for the object, and nothing has touched it since: the first touch reads the batch.
    static let awaitsBatch = ObjectFlags(rawValue: 1 << 23)

    /// What a fault of a stored row starts with.
    static var newFault: ObjectFlags { ConfinementScope.isChecked ? [.fault, .checked] : .fault }

    /// What keeps a read from going straight to the row.
    static let slowRead: ObjectFlags = [.fault, .checked, .detached]
    /// The object has unsaved changes.
    static let changed: ObjectFlags = [.inserted, .updated, .deleted]
}
