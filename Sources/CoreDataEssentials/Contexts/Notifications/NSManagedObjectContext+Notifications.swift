import Foundation

extension NSNotification.Name {
    /// A context is about to save.
    ///
    /// Posted even if there is nothing to save. The object is the context; there is no user info.
    public static var NSManagedObjectContextWillSave: NSNotification.Name { NotificationInterest.willSave.named }
    /// A context has saved.
    ///
    /// The user info has sets of objects under the inserted, updated and deleted keys, which are empty if there was
    /// nothing to save. If the history of a store has recorded the save, the key `"newChangeToken"` has the
    /// ``NSPersistentHistoryToken`` of the place after it, as in Apple's framework.
    public static var NSManagedObjectContextDidSave: NSNotification.Name { NotificationInterest.didSave.named }
    /// Like ``NSManagedObjectContextDidSave``, with sets of object IDs under the keys for IDs.
    public static var NSManagedObjectContextDidSaveObjectIDs: NSNotification.Name {
        NotificationInterest.didSaveIDs.named
    }
    /// Objects of a context have changed, and the event in which they did has ended.
    ///
    /// The user info has sets of objects under the inserted, updated, deleted and refreshed keys. An object that was
    /// inserted and deleted in the same event is only in the set of deleted objects. If the event was a merge, the key
    /// `"NSObjectsChangedByMergeChangesKey"` has the set of all objects that the merge has changed, as in Apple's
    /// framework.
    public static var NSManagedObjectContextObjectsDidChange: NSNotification.Name {
        NotificationInterest.didChange.named
    }
    /// A context has merged the changes of another one.
    ///
    /// The user info has sets of object IDs.
    public static var NSManagedObjectContextDidMergeChangesObjectIDs: NSNotification.Name {
        NotificationInterest.didMergeIDs.named
    }
}

/// Key for the set of inserted objects.
public let NSInsertedObjectsKey = "inserted"
/// Key for the set of updated objects.
public let NSUpdatedObjectsKey = "updated"
/// Key for the set of deleted objects.
public let NSDeletedObjectsKey = "deleted"
/// Key for the set of objects that were refreshed, but not changed here.
public let NSRefreshedObjectsKey = "refreshed"
/// Key for the set of objects that were invalidated.
public let NSInvalidatedObjectsKey = "invalidated"
/// Key that is present if a reset has invalidated all objects; the value is an array of their IDs.
public let NSInvalidatedAllObjectsKey = "invalidatedAll"
/// Key for the set of IDs of inserted objects.
public let NSInsertedObjectIDsKey = "inserted_objectIDs"
/// Key for the set of IDs of updated objects.
public let NSUpdatedObjectIDsKey = "updated_objectIDs"
/// Key for the set of IDs of deleted objects.
public let NSDeletedObjectIDsKey = "deleted_objectIDs"
/// Key for the set of IDs of refreshed objects.
public let NSRefreshedObjectIDsKey = "refreshed_objectIDs"
/// Key for the set of IDs of invalidated objects.
public let NSInvalidatedObjectIDsKey = "invalidated_objectIDs"

extension NSManagedObjectContext {
    /// The key of the history token in did-save notifications; Apple's framework has no name for it either.
    package static let newChangeTokenKey = "newChangeToken"
    /// The key in objects-did-change of the objects that a merge has changed; there is no public name here either.
    static let changedByMergeKey = "NSObjectsChangedByMergeChangesKey"
}

/// Key for the query generation of a pinned context, in its did-save and did-merge notifications.
///
/// The value is an ``NSQueryGenerationToken`` of the version that contains what was saved or merged.
public let NSManagedObjectContextQueryGenerationKey = "newQueryGeneration"

extension NSManagedObjectContext {
    /// The keys of the notifications' user info.
    ///
    /// ```swift
    /// let observer = NotificationCenter.default.addObserver(
    ///     forName: .NSManagedObjectContextDidSave, object: context, queue: nil
    /// ) { note in
    ///     let key = NSManagedObjectContext.NotificationKey.insertedObjects.rawValue
    ///     print((note.userInfo?[key] as? Set<NSManagedObject>)?.count ?? 0)
    /// }
    /// NotificationCenter.default.removeObserver(observer)
    /// ```
    public enum NotificationKey: String, Sendable {
        /// See `NSDeletedObjectsKey`.
        case deletedObjects = "deleted"
        /// See `NSDeletedObjectIDsKey`.
        case deletedObjectIDs = "deleted_objectIDs"
        /// See `NSInsertedObjectsKey`.
        case insertedObjects = "inserted"
        /// See `NSInsertedObjectIDsKey`.
        case insertedObjectIDs = "inserted_objectIDs"
        /// See `NSInvalidatedAllObjectsKey`.
        case invalidatedAllObjects = "invalidatedAll"
        /// See `NSInvalidatedObjectsKey`.
        case invalidatedObjects = "invalidated"
        /// See `NSInvalidatedObjectIDsKey`.
        case invalidatedObjectIDs = "invalidated_objectIDs"
        /// See `NSManagedObjectContextQueryGenerationKey`.
        case queryGeneration = "newQueryGeneration"
        /// See `NSRefreshedObjectsKey`.
        case refreshedObjects = "refreshed"
        /// See `NSRefreshedObjectIDsKey`.
        case refreshedObjectIDs = "refreshed_objectIDs"
        /// See `NSUpdatedObjectsKey`.
        case updatedObjects = "updated"
        /// See `NSUpdatedObjectIDsKey`.
        case updatedObjectIDs = "updated_objectIDs"
    }

    /// See `NSManagedObjectContextWillSave`.
    public static var willSaveObjectsNotification: Notification.Name { .NSManagedObjectContextWillSave }
    /// See `NSManagedObjectContextDidSave`.
    public static var didSaveObjectsNotification: Notification.Name { .NSManagedObjectContextDidSave }
    /// See `NSManagedObjectContextDidSaveObjectIDs`.
    public static var didSaveObjectIDsNotification: Notification.Name { .NSManagedObjectContextDidSaveObjectIDs }
    /// See `NSManagedObjectContextObjectsDidChange`.
    public static var didChangeObjectsNotification: Notification.Name { .NSManagedObjectContextObjectsDidChange }
    /// See `NSManagedObjectContextDidMergeChangesObjectIDs`.
    public static var didMergeChangesObjectIDsNotification: Notification.Name {
        .NSManagedObjectContextDidMergeChangesObjectIDs
    }
}
