import CoreDataEssentials

extension NSManagedObjectContext {
    /// The most reads of the stores that one block of the context may cause.
    ///
    /// Default nil: as many as it likes. A change affects the blocks that begin afterwards. Blocks are those of all forms
    /// of `perform`, and the jobs of actors. A block inside a block of the same context belongs to the outer one. Reads
    /// count as in `expectStatements(atMost:)`, and those that the block causes in other contexts count, too: a child reads
    /// by its parent.
    ///
    /// The read that exceeds the budget is not made. It fails with `persistentStoreOperation` (134070), and the text of the
    /// error lists what the block has read. A fetch throws the error. A property reads nil, zero or empty, and then the
    /// block throws the error, as for each read that has failed. Nothing is lost: all changes stay pending in the
    /// context. If values may have been computed from a property that was not read, then a save refuses to write
    /// them until the property has been read, or the context is rolled back. The reads of a save itself count, but
    /// are never refused.
    ///
    /// A child does not use the budget of its parent: set one on each context that needs it.
    ///
    /// ```swift
    /// context.statementBudget = 3
    /// let names = try context.performAndWait {
    ///     let request = NSFetchRequest<Venue>(entityName: "Venue")
    ///     request.relationshipKeyPathsForPrefetching = ["city"]
    ///     return try context.fetch(request).map { $0.city?.name ?? "" }  // two reads
    /// }
    /// print(names)
    /// ```
    ///
    /// An addition to Apple's API.
    public var statementBudget: Int? {
        get { readRules?.budget }
        set {
            var rules = readRules ?? ReadRules()
            rules.budget = newValue.map { max(0, $0) }
            readRules = rules
        }
    }

    /// Whether a block of the context fails if a property has to be read from a store.
    ///
    /// Default false. A change affects the blocks that begin afterwards. A block may then fetch, count, prefetch, and look
    /// for objects by their IDs. But a property of a fault, or a to-many relationship that is not loaded, is not read
    /// from the store if the row cache and the parent cannot answer. The property reads nil, zero or empty, and the
    /// block throws `persistentStoreOperation` (134070). The text of the error names the object and the
    /// property, and `NSAffectedObjectsErrorKey` has the object. Nothing is lost, as for ``statementBudget``. A save and
    /// the end of an event read what they need. A row that others have changed since it was fetched is read again, because
    /// no other fetch of the block could prevent that.
    ///
    /// ```swift
    /// context.raisesOnFault = true
    /// try context.performAndWait { () throws in
    ///     let request = NSFetchRequest<Venue>(entityName: "Venue")
    ///     request.relationshipKeyPathsForPrefetching = ["city"]
    ///     for venue in try context.fetch(request) { print(venue.city?.name ?? "") }  // nothing is read here
    /// }
    /// ```
    ///
    /// An addition to Apple's API.
    public var raisesOnFault: Bool {
        get { readRules?.refusesLazyReads ?? false }
        set {
            var rules = readRules ?? ReadRules()
            rules.refusesLazyReads = newValue
            readRules = rules
        }
    }
}
