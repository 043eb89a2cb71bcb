import CoreDataEssentials
import Foundation

// MARK: - Messages with objects

extension NSManagedObjectContext {
    /// A context of the main queue is about to save.
    ///
    /// The message of `NSManagedObjectContextWillSave`. It is posted even if there is nothing to save.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: context, for: .willSave) { message in
    ///     print(message.context.insertedObjects.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct WillSaveMessage: NotificationCenter.MainActorNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        /// The context that saves.
        public let context: NSManagedObjectContext

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextWillSave }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of a private queue.
        @MainActor public static func makeMessage(_ notification: Notification) -> Self? {
            ContextNotification(notification, name, of: .mainQueueConcurrencyType).map { Self(context: $0.context) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification; its object is the context.
        @MainActor public static func makeNotification(_ message: Self) -> Notification {
            Notification(name: name, object: message.context)
        }
    }

    /// A context of the main queue has saved.
    ///
    /// The message of `NSManagedObjectContextDidSave`. It is posted before the save returns.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: context, for: .didSave) { message in
    ///     print(message.inserted.count, message.updated.count, message.deleted.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct DidSaveMessage: NotificationCenter.MainActorNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        private let content: ContextNotification

        /// The context that has saved.
        public var context: NSManagedObjectContext { content.context }
        /// The objects whose rows are new.
        public var inserted: Set<NSManagedObject> { content.objects(.insertedObjects) }
        /// The objects whose rows have changed.
        public var updated: Set<NSManagedObject> { content.objects(.updatedObjects) }
        /// The objects whose rows are gone.
        public var deleted: Set<NSManagedObject> { content.objects(.deletedObjects) }
        /// The place in the histories after the save; `nil` if no history has recorded it.
        public var historyToken: NSPersistentHistoryToken? { content.historyToken }
        /// The version that contains the save, if the context is pinned; `nil` otherwise.
        public var queryGeneration: NSQueryGenerationToken? { content.queryGeneration }

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextDidSave }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of a private queue.
        @MainActor public static func makeMessage(_ notification: Notification) -> Self? {
            ContextNotification(notification, name, of: .mainQueueConcurrencyType).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification. ``NSManagedObjectContext/mergeChanges(fromContextDidSave:)`` takes it.
        @MainActor public static func makeNotification(_ message: Self) -> Notification {
            message.content.notification(name)
        }
    }

    /// Objects of a context of the main queue have changed, and the event in which they did has ended.
    ///
    /// The message of `NSManagedObjectContextObjectsDidChange`.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: context, for: .objectsDidChange) { message in
    ///     if message.invalidatedAll == true { print("read everything again") }
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct ObjectsDidChangeMessage: NotificationCenter.MainActorNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        private let content: ContextNotification

        /// The context of the objects.
        public var context: NSManagedObjectContext { content.context }
        /// The objects that were inserted.
        public var inserted: Set<NSManagedObject> { content.objects(.insertedObjects) }
        /// The objects that were changed.
        public var updated: Set<NSManagedObject> { content.objects(.updatedObjects) }
        /// The objects that were deleted.
        public var deleted: Set<NSManagedObject> { content.objects(.deletedObjects) }
        /// The objects that show other values, but were not changed here.
        public var refreshed: Set<NSManagedObject> { content.objects(.refreshedObjects) }
        /// The objects that were invalidated one by one.
        public var invalidated: Set<NSManagedObject> { content.objects(.invalidatedObjects) }
        /// `true` if a reset has invalidated all objects; `nil` otherwise.
        public var invalidatedAll: Bool? { content.has(.invalidatedAllObjects) ? true : nil }

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextObjectsDidChange }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of a private queue.
        @MainActor public static func makeMessage(_ notification: Notification) -> Self? {
            ContextNotification(notification, name, of: .mainQueueConcurrencyType).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification; its object is the context.
        @MainActor public static func makeNotification(_ message: Self) -> Notification {
            message.content.notification(name)
        }
    }
}

/// The content of a notification of a context with objects.
///
/// Confined to the context's queue.
private struct ContextNotification {
    let context: NSManagedObjectContext
    /// It also has what only the framework reads, for contexts that merge the notification.
    private let userInfo: [AnyHashable: Any]?

    /// Takes over a notification; `nil` for another name, or for a context of another kind.
    init?(
        _ notification: Notification,
        _ name: Notification.Name,
        of type: NSManagedObjectContextConcurrencyType
    ) {
        guard notification.name == name, let context = notification.object as? NSManagedObjectContext,
            context.concurrencyType == type
        else { return nil }
        self.context = context
        userInfo = notification.userInfo
    }

    func has(_ key: NSManagedObjectContext.NotificationKey) -> Bool { userInfo?[key.rawValue] != nil }

    func objects(_ key: NSManagedObjectContext.NotificationKey) -> Set<NSManagedObject> {
        userInfo?[key.rawValue] as? Set<NSManagedObject> ?? []
    }

    func ids(_ key: NSManagedObjectContext.NotificationKey) -> Set<NSManagedObjectID> {
        userInfo?[key.rawValue] as? Set<NSManagedObjectID> ?? []
    }

    var historyToken: NSPersistentHistoryToken? {
        userInfo?[NSManagedObjectContext.newChangeTokenKey] as? NSPersistentHistoryToken
    }

    var queryGeneration: NSQueryGenerationToken? {
        userInfo?[NSManagedObjectContextQueryGenerationKey] as? NSQueryGenerationToken
    }

    func notification(_ name: Notification.Name) -> Notification {
        Notification(name: name, object: context, userInfo: userInfo)
    }
}

// MARK: - Messages with IDs

/// The content of a notification of a context with IDs, for any thread.
private struct ChangedIDsNotification: Sendable {
    let context: NSManagedObjectContext
    let inserted: Set<NSManagedObjectID>
    let updated: Set<NSManagedObjectID>
    let deleted: Set<NSManagedObjectID>
    let refreshed: Set<NSManagedObjectID>
    let invalidated: Set<NSManagedObjectID>
    let historyToken: NSPersistentHistoryToken?
    let queryGeneration: NSQueryGenerationToken?

    /// Takes over a notification; `nil` for another name, or for a context of another kind.
    init?(
        _ notification: Notification,
        _ name: Notification.Name,
        of type: NSManagedObjectContextConcurrencyType
    ) {
        guard let content = ContextNotification(notification, name, of: type) else { return nil }
        context = content.context
        inserted = content.ids(.insertedObjectIDs)
        updated = content.ids(.updatedObjectIDs)
        deleted = content.ids(.deletedObjectIDs)
        refreshed = content.ids(.refreshedObjectIDs)
        invalidated = content.ids(.invalidatedObjectIDs)
        historyToken = content.historyToken
        queryGeneration = content.queryGeneration
    }

    func notification(_ name: Notification.Name) -> Notification {
        var userInfo: [AnyHashable: Any] = [
            NSInsertedObjectIDsKey: inserted, NSUpdatedObjectIDsKey: updated, NSDeletedObjectIDsKey: deleted,
        ]
        if !refreshed.isEmpty { userInfo[NSRefreshedObjectIDsKey] = refreshed }
        if !invalidated.isEmpty { userInfo[NSInvalidatedObjectIDsKey] = invalidated }
        userInfo[NSManagedObjectContext.newChangeTokenKey] = historyToken
        userInfo[NSManagedObjectContextQueryGenerationKey] = queryGeneration
        return Notification(name: name, object: context, userInfo: userInfo)
    }
}

extension NSManagedObjectContext {
    /// A context of the main queue has saved.
    ///
    /// The message of `NSManagedObjectContextDidSaveObjectIDs`. It is posted before the save returns.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: context, for: .didSaveObjectIDs) { message in
    ///     print(message.insertedIDs.count, message.updatedIDs.count, message.deletedIDs.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct DidSaveObjectIDsMessage: NotificationCenter.MainActorNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        private let content: ChangedIDsNotification

        /// The context that has saved.
        public var context: NSManagedObjectContext { content.context }
        /// The IDs of new rows.
        public var insertedIDs: Set<NSManagedObjectID> { content.inserted }
        /// The IDs of rows that have changed.
        public var updatedIDs: Set<NSManagedObjectID> { content.updated }
        /// The IDs of rows that are gone.
        public var deletedIDs: Set<NSManagedObjectID> { content.deleted }
        /// The IDs of objects that show other values, but were not changed here.
        public var refreshedIDs: Set<NSManagedObjectID> { content.refreshed }
        /// The IDs of objects that were invalidated.
        public var invalidatedIDs: Set<NSManagedObjectID> { content.invalidated }
        /// The place in the histories after the save; `nil` if no history has recorded it.
        public var historyToken: NSPersistentHistoryToken? { content.historyToken }
        /// The version that contains the save, if the context is pinned; `nil` otherwise.
        public var queryGeneration: NSQueryGenerationToken? { content.queryGeneration }

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextDidSaveObjectIDs }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of a private queue.
        @MainActor public static func makeMessage(_ notification: Notification) -> Self? {
            ChangedIDsNotification(notification, name, of: .mainQueueConcurrencyType).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification. ``NSManagedObjectContext/mergeChanges(fromContextDidSave:)`` takes it.
        @MainActor public static func makeNotification(_ message: Self) -> Notification {
            message.content.notification(name)
        }
    }

    /// A context of a private queue has saved.
    ///
    /// The message of `NSManagedObjectContextDidSaveObjectIDs`. It is posted before the save returns, which does not wait for
    /// observers.
    ///
    /// ```swift
    /// let background = container.newBackgroundContext()
    /// let token = NotificationCenter.default.addObserver(of: background, for: .didSaveObjectIDsAsync) { message in
    ///     print(message.insertedIDs.count, message.updatedIDs.count, message.deletedIDs.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct DidSaveObjectIDsAsyncMessage: NotificationCenter.AsyncNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        private let content: ChangedIDsNotification

        /// The context that has saved.
        public var context: NSManagedObjectContext { content.context }
        /// The IDs of new rows.
        public var insertedIDs: Set<NSManagedObjectID> { content.inserted }
        /// The IDs of rows that have changed.
        public var updatedIDs: Set<NSManagedObjectID> { content.updated }
        /// The IDs of rows that are gone.
        public var deletedIDs: Set<NSManagedObjectID> { content.deleted }
        /// The IDs of objects that show other values, but were not changed here.
        public var refreshedIDs: Set<NSManagedObjectID> { content.refreshed }
        /// The IDs of objects that were invalidated.
        public var invalidatedIDs: Set<NSManagedObjectID> { content.invalidated }
        /// The place in the histories after the save; `nil` if no history has recorded it.
        public var historyToken: NSPersistentHistoryToken? { content.historyToken }
        /// The version that contains the save, if the context is pinned; `nil` otherwise.
        public var queryGeneration: NSQueryGenerationToken? { content.queryGeneration }

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextDidSaveObjectIDs }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of the main queue.
        public static func makeMessage(_ notification: Notification) -> Self? {
            ChangedIDsNotification(notification, name, of: .privateQueueConcurrencyType).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification. ``NSManagedObjectContext/mergeChanges(fromContextDidSave:)`` takes it.
        public static func makeNotification(_ message: Self) -> Notification {
            message.content.notification(name)
        }
    }

    /// A context of the main queue has merged the changes of another one.
    ///
    /// The message of `NSManagedObjectContextDidMergeChangesObjectIDs`.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: context, for: .didMergeChanges) { message in
    ///     print(message.insertedIDs.count, message.updatedIDs.count, message.deletedIDs.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct DidMergeChangesMessage: NotificationCenter.MainActorNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        private let content: ChangedIDsNotification

        /// The context that has merged.
        public var context: NSManagedObjectContext { content.context }
        /// The IDs of new rows.
        public var insertedIDs: Set<NSManagedObjectID> { content.inserted }
        /// The IDs of rows that have changed.
        public var updatedIDs: Set<NSManagedObjectID> { content.updated }
        /// The IDs of rows that are gone.
        public var deletedIDs: Set<NSManagedObjectID> { content.deleted }
        /// The IDs of objects that show other values, but were not changed here.
        public var refreshedIDs: Set<NSManagedObjectID> { content.refreshed }
        /// The IDs of objects that were invalidated.
        public var invalidatedIDs: Set<NSManagedObjectID> { content.invalidated }
        /// The place in the histories after the changes, if the notification has it; `nil` otherwise.
        public var historyToken: NSPersistentHistoryToken? { content.historyToken }
        /// The version that contains the changes, if the context is pinned; `nil` otherwise.
        public var queryGeneration: NSQueryGenerationToken? { content.queryGeneration }

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextDidMergeChangesObjectIDs }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of a private queue.
        @MainActor public static func makeMessage(_ notification: Notification) -> Self? {
            ChangedIDsNotification(notification, name, of: .mainQueueConcurrencyType).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification. ``NSManagedObjectContext/mergeChanges(fromContextDidSave:)`` takes it.
        @MainActor public static func makeNotification(_ message: Self) -> Notification {
            message.content.notification(name)
        }
    }

    /// A context of a private queue has merged the changes of another one.
    ///
    /// The message of `NSManagedObjectContextDidMergeChangesObjectIDs`. The merge does not wait for observers.
    ///
    /// ```swift
    /// let background = container.newBackgroundContext()
    /// let token = NotificationCenter.default.addObserver(of: background, for: .didMergeChangesAsync) { message in
    ///     print(message.insertedIDs.count, message.updatedIDs.count, message.deletedIDs.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct DidMergeChangesAsyncMessage: NotificationCenter.AsyncNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSManagedObjectContext

        private let content: ChangedIDsNotification

        /// The context that has merged.
        public var context: NSManagedObjectContext { content.context }
        /// The IDs of new rows.
        public var insertedIDs: Set<NSManagedObjectID> { content.inserted }
        /// The IDs of rows that have changed.
        public var updatedIDs: Set<NSManagedObjectID> { content.updated }
        /// The IDs of rows that are gone.
        public var deletedIDs: Set<NSManagedObjectID> { content.deleted }
        /// The IDs of objects that show other values, but were not changed here.
        public var refreshedIDs: Set<NSManagedObjectID> { content.refreshed }
        /// The IDs of objects that were invalidated.
        public var invalidatedIDs: Set<NSManagedObjectID> { content.invalidated }
        /// The place in the histories after the changes, if the notification has it; `nil` otherwise.
        public var historyToken: NSPersistentHistoryToken? { content.historyToken }
        /// The version that contains the changes, if the context is pinned; `nil` otherwise.
        public var queryGeneration: NSQueryGenerationToken? { content.queryGeneration }

        /// The name of the notification.
        public static var name: Notification.Name { .NSManagedObjectContextDidMergeChangesObjectIDs }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or for a context of the main queue.
        public static func makeMessage(_ notification: Notification) -> Self? {
            ChangedIDsNotification(notification, name, of: .privateQueueConcurrencyType).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification. ``NSManagedObjectContext/mergeChanges(fromContextDidSave:)`` takes it.
        public static func makeNotification(_ message: Self) -> Notification {
            message.content.notification(name)
        }
    }
}
