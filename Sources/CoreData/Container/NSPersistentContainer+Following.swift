import Foundation

extension NSPersistentContainer {
    /// How a container follows what others write.
    struct Following: Sendable {
        var isOn = false
        var follower: RemoteChangeFollower?
    }

    /// Whether contexts that merge saves by themselves
    /// (``NSManagedObjectContext/automaticallyMergesChangesFromParent``) also merge what other processes write.
    ///
    /// Default false. Set it before ``loadPersistentStores(completionHandler:)``, which then adds SQLite stores with
    /// ``NSPersistentHistoryTrackingKey`` and ``NSPersistentStoreRemoteChangeNotificationPostOptionKey``, and starts a
    /// ``remoteChangeFollower``. All processes that write to the store have to keep its history.
    ///
    /// An addition to Apple's API.
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
        guard description.type == NSSQLiteStoreType else { return }
        for key in [NSPersistentHistoryTrackingKey, NSPersistentStoreRemoteChangeNotificationPostOptionKey]
        where description.options[key] == nil {
            description.setOption(NSNumber(value: true), forKey: key)
        }
    }

    /// Starts to follow, once there is a store that can be.
    func follow() {
        // Later stores are taken up by the follower that is there.
        guard remoteChangeFollower == nil, let follower = try? persistentStoreCoordinator.followRemoteChanges() else {
            return
        }
        following.withLock { following in
            if following.follower == nil { following.follower = follower }
        }
    }
}
