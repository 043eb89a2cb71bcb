import StrataRows

/// The members that batch requests use.
extension NSManagedObjectContext {
    /// The kind of the merge policy.
    package final var mergePolicyType: NSMergePolicyType { settings.mergePolicy.mergeType }

    /// Whether any observer or context wants to know which rows a batch changes.
    package final var batchesAreFollowed: Bool { observers.hasFeeds || coordinator?.isFollowed == true }

    /// Informs all contexts and observers that follow of the changes by a batch of this context, including this context.
    ///
    /// - Parameters:
    ///   - message: The changes.
    ///   - coordinator: The coordinator of the stores.
    ///   - mergesHere: Whether this context merges the changes even if it does not follow.
    package final func announce(
        batch message: ChangeMessage,
        _ coordinator: NSPersistentStoreCoordinator,
        mergesHere: Bool
    ) {
        coordinator.announce(batch: message, from: self)
        // No other code could merge the changes into this context before the caller continues.
        if inbox.isFollowing || mergesHere, upward == nil { merge(message) } else { observers.committed(message) }
    }
}
