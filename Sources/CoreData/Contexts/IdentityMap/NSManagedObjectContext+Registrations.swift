// Incremental stores are told which of their objects contexts hold. Nothing of this costs anything without such a
// store.

extension NSManagedObjectContext {
    /// The store at an index, if it wants to be told of registrations.
    private func toldStore(_ storeIndex: Int32) -> NSIncrementalStore? {
        store(at: storeIndex)?.store as? NSIncrementalStore
    }

    /// Notes, when the first object of a store and a hierarchy is registered, whether the store is to be told.
    final func noteTable(storeIndex: Int32) {
        if toldStore(storeIndex) != nil { identityMap.tellsStores = true }
    }

    /// Posts that the context holds an object, or lets go of it.
    ///
    /// To be called only if `tellsStores`.
    final func tellStore(of object: NSManagedObject, isRegistered: Bool) {
        guard object.key > 0, object.storeIndex >= 0, let store = toldStore(object.storeIndex) else { return }
        store.mailbox.post(object.objectID, isRegistered: isRegistered)
    }

    /// Lets the stores know what was posted.
    final func deliverRegistrations() {
        guard identityMap.tellsStores else { return }
        for entry in pinnedVersion.seenStores { (entry.store as? NSIncrementalStore)?.deliverRegistrations() }
    }

    /// Posts, when the context goes or is reset, that it lets go of everything.
    final func tellStoresOfAllGoing() {
        guard identityMap.tellsStores else { return }
        forEachRegistered { tellStore(of: $0, isRegistered: false) }
        deliverRegistrations()
    }
}
