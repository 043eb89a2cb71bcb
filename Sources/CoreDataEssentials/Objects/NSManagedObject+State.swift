extension NSManagedObject {
    /// Whether the next save inserts the object.
    ///
    /// ```swift
    /// print(Venue(context: context).isInserted)
    /// ```
    public final var isInserted: Bool { flags.contains(.inserted) }
    /// Whether the object was stored before and has unsaved changes.
    ///
    /// ```swift
    /// venue.price += 1
    /// print(venue.isUpdated)
    /// ```
    public final var isUpdated: Bool { flags.contains(.updated) }
    /// Whether the next save deletes the object.
    ///
    /// The property is false again after that save.
    ///
    /// It is also true for a fault whose row has gone, if the context has
    /// ``NSManagedObjectContext/shouldDeleteInaccessibleFaults``.
    ///
    /// ```swift
    /// context.delete(venue)
    /// print(venue.isDeleted)
    /// ```
    public final var isDeleted: Bool { flags.contains(.deleted) }
    /// Whether the object is inserted, updated or deleted.
    ///
    /// ```swift
    /// venue.price += 1
    /// print(venue.hasChanges)
    /// ```
    public final var hasChanges: Bool { !flags.isDisjoint(with: .changed) }
    /// Whether the object's values are not loaded.
    ///
    /// Reading the property does not load them.
    ///
    /// ```swift
    /// context.refresh(venue, mergeChanges: false)
    /// print(venue.isFault)
    /// ```
    public final var isFault: Bool { flags.contains(.fault) }
    /// 0 if the values are loaded, 1 if the object is a fault.
    public final var faultingState: Int { isFault ? 1 : 0 }
}
