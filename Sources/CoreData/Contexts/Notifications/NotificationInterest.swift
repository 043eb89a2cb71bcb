import Foundation
import Synchronization

/// One of the notifications of contexts, which knows whether any code in the process may look into it.
///
/// Every event and every save posts sets of what changed, and mostly there are no observers. An import of a million
/// objects should not hash each object twice for that, nor make a million IDs. There is no way to ask whether a
/// notification is observed. But an observer first has to take the notification's name, or a key of its user info, from
/// this module.
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

    /// The name, for code that may observe the notification.
    var named: Notification.Name {
        show()
        return name
    }

    /// Whether the notification may be observed, so that its sets have to be real ones, which can be cast to `Set`.
    var isWatched: Bool { wasShown.load(ordering: .relaxed) }

    /// Posts the notification.
    ///
    /// An observer may do anything, so posts that may have one never wait for each other.
    func post(from context: NSManagedObjectContext, _ userInfo: [AnyHashable: Any]?) {
        func post() { NotificationCenter.default.post(name: name, object: context, userInfo: userInfo) }
        if isWatched { post() } else { NotificationGate.pass(post) }
    }

    private func show() { wasShown.store(true, ordering: .relaxed) }

    /// A key, for code that may look into a notification with objects.
    static func inObjects(_ key: String) -> String {
        didChange.show()
        didSave.show()
        return key
    }

    /// A key, for code that may look into a notification with IDs.
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
    /// Keys of a child's objects can change at any time in its scope, so the objects cannot be asked later.
    private let isEager: Bool

    init(_ interest: NotificationInterest, _ coordinator: NSPersistentStoreCoordinator?, isChild: Bool = false) {
        self.interest = interest
        self.coordinator = coordinator
        isEager = isChild || interest.isWatched
        // The user info has three sets, and two tokens at most.
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

    /// Adds the token of the version that the context is pinned to, if it is pinned.
    mutating func add(_ token: NSQueryGenerationToken?) {
        if let token { userInfo[NSManagedObjectContextQueryGenerationKey] = token }
    }

    /// Adds the token of the histories that have recorded the save, if there are any.
    mutating func add(_ token: NSPersistentHistoryToken?) {
        if let token { userInfo[NSManagedObjectContext.newChangeTokenKey] = token }
    }

    /// Adds the saved changes in a form that other contexts may read on any thread, unlike the objects.
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
