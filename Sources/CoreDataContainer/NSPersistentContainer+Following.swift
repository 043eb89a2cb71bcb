import CoreDataEssentials
import CoreDataHistory
import Foundation

extension NSPersistentContainer {
    /// The state of a container that follows changes by other processes.
    struct Following: Sendable {
        var isOn = false
        var follower: RemoteChangeFollower?
        /// The number of running calls of `loadPersistentStores`, plus the stores that they are adding.
        var loading = 0
        /// The reason why the stores that were added so far cannot be followed.
        var failure: (any Error)?
    }

    /// Whether contexts that merge saves automatically also merge changes that other processes write.
    ///
    /// These are the contexts with ``NSManagedObjectContext/automaticallyMergesChangesFromParent``.
    ///
    /// Default false. Set it before ``loadPersistentStores(completionHandler:)``. That method then adds SQLite stores
    /// in files, and PostgreSQL stores, with ``NSPersistentHistoryTrackingKey`` and
    /// ``NSPersistentStoreRemoteChangeNotificationPostOptionKey``, and starts a ``remoteChangeFollower``. All processes
    /// that write to the store have to keep its history. Options that were set before are not changed. If all stores
    /// are loaded and none can be followed, for example because these options are switched off, then the coordinator's
    /// ``NSPersistentStoreCoordinator/unreportableErrorHandler`` receives the reason.
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

    /// The object that follows the changes of other processes.
    ///
    /// `nil` until stores are loaded with ``followsRemoteChanges`` set.
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

    /// Reports, when no store is being loaded any more, why no store is followed.
    func endLoading() {
        let failure = following.withLock { following -> (any Error)? in
            following.loading -= 1
            guard following.loading == 0 else { return nil }
            defer { following.failure = nil }
            return following.follower == nil ? following.failure : nil
        }
        if let failure { persistentStoreCoordinator.report(failure, "starting to follow what others write") }
    }

    /// Starts to follow, as soon as there is a store that can be followed.
    func follow() {
        // The existing follower also follows stores that are added later.
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
