import Foundation
import StrataLocks
import Synchronization

/// One of the notifications of contexts, and whether its name was taken from this module.
///
/// The centre cannot be asked who observes a notification. A program that has never read the name has no observer of
/// it, as a rule, and the posts pass through ``NotificationGate``. Nothing else depends on that: an observer of all
/// names finds the same in the user info.
package final class NotificationInterest: Sendable {
    static let willSave = NotificationInterest("NSManagingContextWillSaveChangesNotification")
    static let didChange = NotificationInterest("NSObjectsChangedInManagingContextNotification")
    static let didSave = NotificationInterest("NSManagingContextDidSaveChangesNotification")
    package static let didSaveIDs = NotificationInterest("NSManagedObjectContextDidSaveObjectIDsNotification")
    static let didMergeIDs = NotificationInterest("NSManagedObjectContextDidMergeChangesObjectIDsNotification")

    /// The name, for posting.
    package let name: Notification.Name
    private let wasShown = AtomicCell(false)

    private init(_ name: String) { self.name = Notification.Name(name) }

    /// The name, for a program that may observe the notification.
    var named: Notification.Name {
        wasShown.store(true, ordering: .relaxed)
        return name
    }

    /// Whether the program has read the name.
    private var isWatched: Bool { wasShown.load(ordering: .relaxed) }

    /// Posts the notification.
    ///
    /// An observer may do anything, so posts that may have one never wait for each other.
    func post(from context: NSManagedObjectContext, _ userInfo: [AnyHashable: Any]?) {
        func post() { NotificationCenter.default.post(name: name, object: context, userInfo: userInfo) }
        if isWatched { post() } else { NotificationGate.pass(post) }
    }
}

/// The user info of a notification that is about to be posted.
///
/// The sets are Swift's, and made at once: on Linux an instance of a subclass of `NSSet`, which could make its members later,
/// casts to an empty `Set`.
///
/// Confined to the context's queue.
struct NotificationSets {
    // Three sets, two tokens and a message, or four sets and a token.
    private(set) var userInfo = [AnyHashable: Any](minimumCapacity: 6)

    /// Adds a set of objects.
    mutating func add(_ key: NSManagedObjectContext.NotificationKey, _ objects: Set<NSManagedObject>) {
        userInfo[key.rawValue] = objects
    }

    /// Adds the set of all objects that a merge has changed, which are those of the sets that are there already.
    mutating func addChangedByMerge() {
        let sets = userInfo.values.compactMap { $0 as? Set<NSManagedObject> }
        guard let first = sets.first else { return }
        // Mostly there is one set, which both keys then share.
        userInfo[NSManagedObjectContext.changedByMergeKey] = sets.dropFirst().reduce(first) { $0.union($1) }
    }

    /// Adds the IDs of inserted, updated and deleted rows.
    mutating func add(_ ids: ChangedIDs) {
        add(.insertedObjectIDs, ids.inserted)
        add(.updatedObjectIDs, ids.updated)
        add(.deletedObjectIDs, ids.deleted)
    }

    /// Adds a set of IDs.
    mutating func add(_ key: NSManagedObjectContext.NotificationKey, _ ids: Set<NSManagedObjectID>) {
        userInfo[key.rawValue] = ids
    }

    /// Adds what the context is pinned to now, if it is.
    mutating func add(_ token: NSQueryGenerationToken?) {
        if let token { userInfo[NSManagedObjectContextQueryGenerationKey] = token }
    }

    /// Adds how far the histories of the stores have come, if they have recorded what was saved.
    mutating func add(_ token: NSPersistentHistoryToken?) {
        if let token { userInfo[NSManagedObjectContext.newChangeTokenKey] = token }
    }

    /// Adds what was saved in a form that other contexts may read on any thread, unlike the objects.
    mutating func add(_ message: ChangeMessage) {
        userInfo[ChangeMessage.key] = UncheckedBox(message)
    }
}

extension NSManagedObjectContext {
    /// A set of objects for a notification; the same set again if the context's save has shown these objects before.
    final func shownSet(of objects: [NSManagedObject]) -> Set<NSManagedObject> {
        saving.shownSets?.set(of: objects) ?? Set(objects)
    }

    /// Posts a notification without user info, or with one that has no sets.
    final func post(_ interest: NotificationInterest, _ userInfo: [AnyHashable: Any]? = nil) {
        interest.post(from: self, userInfo)
    }

    /// Posts a notification with the sets that `fill` adds.
    final func post(_ interest: NotificationInterest, _ fill: (inout NotificationSets) -> Void) {
        var sets = NotificationSets()
        fill(&sets)
        interest.post(from: self, sets.userInfo)
    }
}
