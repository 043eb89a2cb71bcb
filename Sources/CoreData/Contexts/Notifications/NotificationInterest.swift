import Foundation
import Synchronization

/// One of the notifications of contexts, and whether anybody in the process may look into it.
///
/// Every event and every save posts sets of what changed, and mostly nobody listens: an import of a million objects
/// should not hash each of them twice for that, nor make a million IDs. Whether somebody observes a notification cannot
/// be asked; but whoever wants to has to take its name, or a key of its user info, from this module first.
final class NotificationInterest: Sendable {
    static let willSave = NotificationInterest("NSManagingContextWillSaveChangesNotification")
    static let didChange = NotificationInterest("NSObjectsChangedInManagingContextNotification")
    static let didSave = NotificationInterest("NSManagingContextDidSaveChangesNotification")
    static let didSaveIDs = NotificationInterest("NSManagedObjectContextDidSaveObjectIDsNotification")
    static let didMergeIDs = NotificationInterest("NSManagedObjectContextDidMergeChangesObjectIDsNotification")

    /// The name, for posting.
    let name: Notification.Name
    private let wasShown = Atomic(false)

    private init(_ name: String) { self.name = Notification.Name(name) }

    /// The name, for somebody who may observe the notification.
    var named: Notification.Name {
        show()
        return name
    }

    /// Whether somebody may observe the notification, so that its sets have to be ones that cast to `Set`.
    var isWatched: Bool { wasShown.load(ordering: .relaxed) }

    /// Posts the notification.
    ///
    /// An observer may do anything, so posts that may have one never wait for each other.
    func post(from context: NSManagedObjectContext, _ userInfo: [AnyHashable: Any]?) {
        func post() { NotificationCenter.default.post(name: name, object: context, userInfo: userInfo) }
        if isWatched { post() } else { NotificationGate.pass(post) }
    }

    private func show() { wasShown.store(true, ordering: .relaxed) }

    /// A key, for somebody who may look into a notification with objects.
    static func inObjects(_ key: String) -> String {
        didChange.show()
        didSave.show()
        return key
    }

    /// A key, for somebody who may look into a notification with IDs.
    static func inIDs(_ key: String) -> String {
        didSaveIDs.show()
        didMergeIDs.show()
        return key
    }
}

/// The user info of a notification that is about to be posted.
///
/// Confined to the context's queue.
struct NotificationSets {
    private let interest: NotificationInterest
    private let coordinator: NSPersistentStoreCoordinator?
    private(set) var userInfo: [AnyHashable: Any]

    /// Whether the sets have to be made at once.
    ///
    /// The objects of a child get other keys at any time in its scope, so they cannot be asked later.
    private let isEager: Bool

    init(_ interest: NotificationInterest, _ coordinator: NSPersistentStoreCoordinator?, isChild: Bool = false) {
        self.interest = interest
        self.coordinator = coordinator
        isEager = isChild || interest.isWatched
        // Three sets, and two tokens at most.
        userInfo = Dictionary(minimumCapacity: 5)
    }

    /// Adds a set of objects.
    mutating func add(_ key: NSManagedObjectContext.NotificationKey, _ objects: [NSManagedObject]) {
        userInfo[key.rawValue] =
            isEager ? Set(objects) : LazyNotificationSet.of(objects, coordinator)
    }

    /// Adds the set of all objects that a merge has changed.
    mutating func add(changedByMerge objects: [NSManagedObject]) {
        userInfo[NSManagedObjectContext.changedByMergeKey] =
            isEager ? Set(objects) : LazyNotificationSet.of(objects, coordinator)
    }

    /// Adds a set of the IDs of stored objects.
    mutating func add(_ key: NSManagedObjectContext.NotificationKey, idsOf objects: [NSManagedObject]) {
        userInfo[key.rawValue] =
            isEager ? Set(objects.map(\.objectID)) : LazyNotificationSet.idsOf(objects, coordinator)
    }

    /// Adds a set of the IDs of rows.
    mutating func add(_ key: NSManagedObjectContext.NotificationKey, idsOf changes: [ChangeMessage.Change]) {
        let set = LazyNotificationSet(idsOf: changes)
        userInfo[key.rawValue] = isEager ? set.ids : set
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
    mutating func add(_ message: @autoclosure () -> ChangeMessage) {
        if isEager { userInfo[ChangeMessage.key] = UncheckedBox(message()) }
    }
}

extension NSManagedObjectContext {
    /// Posts a notification without user info, or with one that has no sets.
    final func post(_ interest: NotificationInterest, _ userInfo: [AnyHashable: Any]? = nil) {
        interest.post(from: self, userInfo)
    }

    /// Posts a notification with the sets that `fill` adds.
    final func post(_ interest: NotificationInterest, _ fill: (inout NotificationSets) -> Void) {
        var sets = NotificationSets(interest, coordinator, isChild: upward != nil)
        fill(&sets)
        interest.post(from: self, sets.userInfo)
    }
}
