import StrataRows

/// The state of a managed object, in one word, so that an access tests all of it at once.
struct ObjectFlags: OptionSet {
    let rawValue: UInt32

    /// No values are loaded; the first access asks the row cache, then the store.
    static let fault = ObjectFlags(rawValue: 1 << 0)
    /// Every access checks confinement.
    static let checked = ObjectFlags(rawValue: 1 << 1)
    /// The object was never registered with a context, or is no longer registered.
    static let detached = ObjectFlags(rawValue: 1 << 2)
    /// The values are the object's own and may be written in place.
    static let ownsRow = ObjectFlags(rawValue: 1 << 3)

    static let inserted = ObjectFlags(rawValue: 1 << 4)
    static let updated = ObjectFlags(rawValue: 1 << 5)
    static let deleted = ObjectFlags(rawValue: 1 << 6)
    /// The row was missing when the fault fired: all properties read nil, zero or empty.
    static let inaccessible = ObjectFlags(rawValue: 1 << 7)

    /// The object was inserted, updated, deleted or refreshed since the last objects-did-change notification.
    static let eventInserted = ObjectFlags(rawValue: 1 << 8)
    static let eventUpdated = ObjectFlags(rawValue: 1 << 9)
    static let eventDeleted = ObjectFlags(rawValue: 1 << 10)
    static let eventRefreshed = ObjectFlags(rawValue: 1 << 11)
    /// Its delete rules have been applied.
    static let deletePropagated = ObjectFlags(rawValue: 1 << 12)
    /// The object is already in the context's list of changed objects, or in the list of the event.
    static let listed = ObjectFlags(rawValue: 1 << 13)
    static let eventListed = ObjectFlags(rawValue: 1 << 14)
    /// `awakeFromFetch` is running: writes do not count as changes.
    static let awaking = ObjectFlags(rawValue: 1 << 15)
    /// The deletion was saved: the object is gone for good.
    static let gone = ObjectFlags(rawValue: 1 << 16)
    /// The next save checks that the row is unchanged, although the object itself has no changes.
    static let conflictDetection = ObjectFlags(rawValue: 1 << 17)

    /// The row is the object's own, and this event's change is noted: a write accesses the row directly.
    static let writable = ObjectFlags(rawValue: 1 << 18)

    /// A child context has received the object's own row: the next write copies the row first.
    static let rowShared = ObjectFlags(rawValue: 1 << 19)
    /// A fetch has read the object because another object leads to it.
    static let prefetched = ObjectFlags(rawValue: 1 << 20)
    /// The object stands for one new row of a batch insert, and is in no context.
    static let batchRow = ObjectFlags(rawValue: 1 << 21)

    /// A merge has reported the object as refreshed, and has left it a fault; until its next read, it cannot be
    /// refreshed again.
    static let mergedFault = ObjectFlags(rawValue: 1 << 22)

    /// A batched fetch prefetches for the object, and the object has not been accessed since: its first access reads
    /// the batch.
    static let awaitsBatch = ObjectFlags(rawValue: 1 << 23)

    /// The index of new objects has noted the object as it is.
    ///
    /// Whatever changes the object's values afterwards calls ``NSManagedObject/outdateInIndex()``.
    static let indexed = ObjectFlags(rawValue: 1 << 24)

    /// A fetch has brought the row of the fault, and the context has dropped it since, because it may be outdated.
    static let lostRow = ObjectFlags(rawValue: 1 << 25)

    /// A search for the objects that references would keep has not found out about this one yet.
    static let sought = ObjectFlags(rawValue: 1 << 26)

    /// The initial flags of a fault of a stored row.
    static var newFault: ObjectFlags { ConfinementScope.isChecked ? [.fault, .checked] : .fault }

    /// The flags that keep a read from accessing the row directly.
    static let slowRead: ObjectFlags = [.fault, .checked, .detached]
    /// The object has unsaved changes.
    static let changed: ObjectFlags = [.inserted, .updated, .deleted]
}
