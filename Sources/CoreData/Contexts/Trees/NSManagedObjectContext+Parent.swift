// Parent and child contexts.
//
// A child asks its parent, inside the parent's scope, where a context on the coordinator asks the stores: for the
// answer of a fetch, the row of a fault, the members of a relationship. What comes back is rows, as from a store: for
// an object that the parent has changed it is the parent's own row, which the parent copies before it writes to it
// again. A save hands rows the other way. So neither context ever sees an object of the other, and what nobody changes
// is never copied.

extension NSManagedObjectContext {
    // MARK: - Rules

    /// Stops the program if a parent may not be set now.
    final func checkParent(_ parent: NSManagedObjectContext?) {
        guard identityMap.isEmpty, changeTracker.objects.isEmpty else {
            fatalError(
                "CoreData: \(describedName) has objects already, so its parent cannot be changed. Make a new context."
            )
        }
        guard !downward.hasChildren else {
            fatalError(
                "CoreData: \(describedName) is a parent itself, so its parent cannot be changed. Build the tree from the root down."
            )
        }
        guard let parent else { return }
        guard parent !== self else { fatalError("CoreData: \(describedName) cannot be its own parent.") }
        guard upward != nil || coordinator == nil else {
            fatalError(
                "CoreData: \(describedName) has a persistentStoreCoordinator of its own; a child uses that of its root. Make a context without one."
            )
        }
        guard parent.persistentStoreCoordinator != nil else {
            fatalError(
                "CoreData: \(parent.describedName) has neither a persistentStoreCoordinator nor a parent yet; set one before you make it the parent of \(describedName)."
            )
        }
    }

    /// Stops the program if a coordinator may not be set now.
    final func checkCoordinator() {
        if let upward {
            fatalError(
                "CoreData: \(describedName) is a child of \(upward.parent.describedName) and uses the coordinator of its root; it cannot have another."
            )
        }
        guard identityMap.storedCount == 0, changeTracker.objects.isEmpty, !downward.hasChildren else {
            fatalError(
                "CoreData: \(describedName) has objects or children already, so its coordinator cannot be changed."
            )
        }
    }

    /// Whether the object is one that a save of this context would not insert: the stores, or the parent, have it.
    final func isStored(_ object: NSManagedObject) -> Bool {
        !object.isInserted && (object.key > 0 || upward?.foreignIDs[object.key] != nil)
    }

    // MARK: - Entering the parent

    /// Runs `body` inside the parent's scope, where both know the same of keys that have become permanent.
    ///
    /// Waits for what the parent is doing: waiting goes up only.
    final func visitParent<T>(_ link: ParentLink, _ body: (NSManagedObjectContext) throws -> T) rethrows -> T {
        settleForeign()
        // The parent learns later than the child, so it knows at least as much. What it has learned since, before it
        // answers or while it asks further up, the child has to know before it looks at the answer: else a permanent
        // key in it would not lead to the object that is filed here under the temporary one.
        defer { settleForeign() }
        link.visits &+= 1
        return try link.parent.receive {
            link.parent.settleForeign()
            return try body(link.parent)
        }
    }

    /// Runs `body`, a fetch, inside the scopes of all contexts above, so that what they hold stays the same meanwhile.
    final func inChain<T>(_ body: () throws -> T) rethrows -> T {
        guard let upward else { return try body() }
        assertCurrent("fetch(_:)")
        // Handlers of notifications run before anybody above has to wait for them.
        processPendingChanges()
        upward.visits &+= 1
        return try upward.parent.receive {
            try upward.parent.inChain {
                settleForeign()
                return try body()
            }
        }
    }

    /// Begins or ends following the saves of other contexts.
    final func followParent(_ follows: Bool) {
        if let upward {
            upward.parent.downward.follow(self, follows)
        } else {
            coordinator?.follow(self, follows)
        }
    }
}
