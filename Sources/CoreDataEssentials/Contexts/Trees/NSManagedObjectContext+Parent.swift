// Parent and child contexts.
//
// A child reads from its parent, inside the parent's scope, where a context on the coordinator reads from stores: for
// the result of a fetch, the row of a fault, the members of a relationship. The parent answers with rows, as a store
// does. If the parent has changed the object, the answer is the parent's own row, which the parent copies before it
// writes to it again. A save passes rows in the other direction. So neither context ever sees an object of the other,
// and a row that stays unchanged is never copied.

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

    /// Whether the stores or the parent have the object, so that a save of this context would not insert it.
    final func isStored(_ object: NSManagedObject) -> Bool {
        !object.isInserted && (object.key > 0 || upward?.foreignIDs[object.key] != nil)
    }

    // MARK: - Entering the parent

    /// Runs `body` inside the parent's scope, with the same permanent keys known to both contexts.
    ///
    /// Waits until the parent has finished what it is doing. Contexts wait only for those above them.
    package final func visitParent<T>(_ link: ParentLink, _ body: (NSManagedObjectContext) throws -> T) rethrows -> T {
        replaceForeignTemporaryKeys()
        // The parent updates its keys after the child, so it knows at least as many. It may learn further keys before
        // it answers, or while it reads from above. The child has to know these keys before it looks at the answer.
        // Otherwise a permanent key in it would not lead to the object that is registered here under the temporary one.
        defer { replaceForeignTemporaryKeys() }
        link.visits &+= 1
        return try link.parent.receive {
            link.parent.replaceForeignTemporaryKeys()
            return try body(link.parent)
        }
    }

    /// Runs `body`, a fetch, inside the scopes of all contexts above, so that their data stays the same meanwhile.
    final func inChain<T>(_ body: () throws -> T) rethrows -> T {
        guard let upward else { return try body() }
        assertCurrent("fetch(_:)")
        // Handlers of notifications run now, so that no context above has to wait for them.
        endEvent(isMerge: false)
        upward.visits &+= 1
        return try upward.parent.receive {
            try upward.parent.inChain {
                replaceForeignTemporaryKeys()
                return try body()
            }
        }
    }

    /// Starts or stops following the saves of other contexts.
    final func followParent(_ follows: Bool) {
        if let upward {
            upward.parent.downward.follow(self, follows)
        } else {
            coordinator?.follow(self, follows)
        }
    }
}
