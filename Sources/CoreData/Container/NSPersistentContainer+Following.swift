import Foundation

extension NSPersistentContainer {
    /// How a container follows what others write.
    struct Following: Sendable {
        var isOn = false
        var follower: RemoteChangeFollower?
        /// Calls of `loadPersistentStores`, and stores that these are adding.
        var loading = 0
        /// Why the stores that were added so far cannot be followed.
        var failure: (any Error)?
    }

    /// Whether contexts that merge saves by themselves
    /// (``NSManagedObjectContext/automaticallyMergesChangesFromParent``) also merge what other processes write.
    ///
    /// Default false. Set it before ``loadPersistentStores(completionHandler:)``, which then adds stores in files of SQLite, and on
    /// PostgreSQL, with ``NSPersistentHistoryTrackingKey`` and ``NSPersistentStoreRemoteChangeNotificationPostOptionKey``, and starts a
    /// ``remoteChangeFollower``. All processes that write to the store have to keep its history. Options that were set before
    /// stay: if no store can be followed when all are loaded, because they are switched off, say, the coordinator's
    /// ``NSPersistentStoreCoordinator/unreportableErrorHandler`` is told why.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// let container = NSPersistentContainer(name: "Guide", managedObjectModel: model)
    /// container.followsRemoteChanges = true  // before the stores are loaded
    /// ```
    public var followsRemoteChanges: Bool {
        get { following.withLock { $0.isOn } }
        set { following.withLock { $0.isOn = newValue } }
    }

    /// What follows the changes of other processes; `nil` before stores were loaded with ``followsRemoteChanges`` set.
    ///
    /// An addition to Apple's API.
    public var remoteChangeFollower: RemoteChangeFollower? { following.withLock { $0.follower } }

    /// Sets the options without which a store cannot be followed.
    func prepareToFollow(_ description: NSPersistentStoreDescription) {
        let isDatabase =
            description.type == NSSQLiteStoreType || StoreTypes.storeClass(description.type) is any MigratingStore.Type
        guard isDatabase else { return }
        for key in [NSPersistentHistoryTrackingKey, NSPersistentStoreRemoteChangeNotificationPostOptionKey]
        where description.options[key] == nil {
            description.setOption(NSNumber(value: true), forKey: key)
        }
    }

    /// Notes that stores are being loaded; ``endLoading()`` is called once for it.
    func beginLoading() { following.withLock { $0.loading += 1 } }

    /// Reports, when nothing is being loaded any more, why nothing is followed.
    func endLoading() {
        let failure = following.withLock { following -> (any Error)? in
            following.loading -= 1
            guard following.loading == 0 else { return nil }
            defer { following.failure = nil }
            return following.follower == nil ? following.failure : nil
        }
        if let failure { persistentStoreCoordinator.report(failure, "starting to follow what others write") }
    }

    /// Starts to follow, once there is a store that can be.
    func follow() {
        // Later stores are taken up by the follower that is there.
        guard remoteChangeFollower == nil else { return }
        do {
            let follower = try persistentStoreCoordinator.followRemoteChanges()
            following.withLock { following in
                if following.follower == nil { following.follower = follower }
            }
        } catch {
            following.withLock { $0.failure = error }
        }
    }
}
