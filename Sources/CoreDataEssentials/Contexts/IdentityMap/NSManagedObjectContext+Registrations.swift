// Incremental stores are notified which of their objects are held by contexts. Without such a store, this costs
// nothing.

extension NSManagedObjectContext {
    /// The store at an index, if it wants to be notified of registrations.
    private func notifiedStore(_ storeIndex: Int32) -> (any CustomStore)? {
        guard let store = store(at: storeIndex)?.custom, store.isNotifiedOfRegistrations else { return nil }
        return store
    }

    /// Notes whether a store is to be notified, when the first object of the store and a hierarchy is registered.
    final func enableNotifications(ofStoreAt storeIndex: Int32) {
        if notifiedStore(storeIndex) != nil { identityMap.notifiesStores = true }
    }

    /// Posts that the context holds an object, or that it releases it.
    ///
    /// It may be called only if `notifiesStores`.
    final func notifyStore(of object: NSManagedObject, isRegistered: Bool) {
        guard object.key > 0, object.storeIndex >= 0, let store = notifiedStore(object.storeIndex) else { return }
        store.noteRegistration(object.objectID, isRegistered: isRegistered)
    }

    /// Delivers to the stores what was posted.
    final func deliverRegistrations() {
        guard identityMap.notifiesStores else { return }
        for entry in pinnedVersion.seenStores { entry.custom?.deliverRegistrations() }
    }

    /// Posts that the context releases all objects, when it ends or is reset.
    final func notifyStoresOfReset() {
        guard identityMap.notifiesStores else { return }
        forEachRegistered { notifyStore(of: $0, isRegistered: false) }
        deliverRegistrations()
    }
}
