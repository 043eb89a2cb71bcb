import CoreDataEssentials
import Foundation

/// How the stores of a coordinator have changed.
private struct StoreChanges: Sendable {
    let coordinator: NSPersistentStoreCoordinator
    let added: [NSPersistentStore]
    let removed: [NSPersistentStore]
    let moved: (oldValue: NSPersistentStore, newValue: NSPersistentStore)?
    /// The IDs of the objects of a store that was migrated.
    private let movedIDs: [NSManagedObjectID]

    /// Takes over a notification; `nil` for another name.
    init?(_ notification: Notification) {
        guard notification.name == .NSPersistentStoreCoordinatorStoresDidChange,
            let coordinator = notification.object as? NSPersistentStoreCoordinator
        else { return nil }
        self.coordinator = coordinator
        added = notification.userInfo?[NSAddedPersistentStoresKey] as? [NSPersistentStore] ?? []
        removed = notification.userInfo?[NSRemovedPersistentStoresKey] as? [NSPersistentStore] ?? []
        let change = notification.userInfo?[NSUUIDChangedPersistentStoresKey] as? [Any] ?? []
        if change.count >= 2, let old = change[0] as? NSPersistentStore, let new = change[1] as? NSPersistentStore {
            moved = (old, new)
            movedIDs = change.count > 2 ? change[2] as? [NSManagedObjectID] ?? [] : []
        } else {
            moved = nil
            movedIDs = []
        }
    }

    var notification: Notification {
        var userInfo: [AnyHashable: Any] = [:]
        if !added.isEmpty { userInfo[NSAddedPersistentStoresKey] = added }
        if !removed.isEmpty { userInfo[NSRemovedPersistentStoresKey] = removed }
        if let moved {
            userInfo[NSUUIDChangedPersistentStoresKey] = [moved.oldValue, moved.newValue, movedIDs] as [Any]
        }
        return Notification(
            name: .NSPersistentStoreCoordinatorStoresDidChange,
            object: coordinator,
            userInfo: userInfo
        )
    }
}

extension NSPersistentStoreCoordinator {
    /// Stores were added to a coordinator, removed from it, or migrated; for the main actor.
    ///
    /// The message of `NSPersistentStoreCoordinatorStoresDidChange`. If the stores change on the main thread, then it is posted
    /// at once, and otherwise in a later turn of the main queue.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: coordinator, for: .storesDidChange) { message in
    ///     for store in message.addedStores { print(store.url?.path ?? "") }
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct StoresDidChangeMessage: NotificationCenter.MainActorNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSPersistentStoreCoordinator

        private let content: StoreChanges

        /// The coordinator.
        public var persistentStoreCoordinator: NSPersistentStoreCoordinator { content.coordinator }
        /// The stores that were added.
        public var addedStores: [NSPersistentStore] { content.added }
        /// The stores that were removed.
        public var removedStores: [NSPersistentStore] { content.removed }
        /// A migrated store and the one that has replaced it, which has another UUID; `nil` if none was migrated.
        public var uuidChangedStores: (oldValue: NSPersistentStore, newValue: NSPersistentStore)? { content.moved }

        /// The name of the notification.
        public static var name: Notification.Name { .NSPersistentStoreCoordinatorStoresDidChange }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name.
        @MainActor public static func makeMessage(_ notification: Notification) -> Self? {
            StoreChanges(notification).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification; its object is the coordinator.
        @MainActor public static func makeNotification(_ message: Self) -> Notification { message.content.notification }
    }

    /// Stores were added to a coordinator, removed from it, or migrated.
    ///
    /// The message of `NSPersistentStoreCoordinatorStoresDidChange`, for changes on any thread. The call that changes the
    /// stores does not wait for observers.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: coordinator, for: .storesDidChangeAsync) { message in
    ///     for store in message.addedStores { print(store.url?.path ?? "") }
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct StoresDidChangeAsyncMessage: NotificationCenter.AsyncNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSPersistentStoreCoordinator

        private let content: StoreChanges

        /// The coordinator.
        public var persistentStoreCoordinator: NSPersistentStoreCoordinator { content.coordinator }
        /// The stores that were added.
        public var addedStores: [NSPersistentStore] { content.added }
        /// The stores that were removed.
        public var removedStores: [NSPersistentStore] { content.removed }
        /// A migrated store and the one that has replaced it, which has another UUID; `nil` if none was migrated.
        public var uuidChangedStores: (oldValue: NSPersistentStore, newValue: NSPersistentStore)? { content.moved }

        /// The name of the notification.
        public static var name: Notification.Name { .NSPersistentStoreCoordinatorStoresDidChange }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name.
        public static func makeMessage(_ notification: Notification) -> Self? {
            StoreChanges(notification).map { Self(content: $0) }
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification; its object is the coordinator.
        public static func makeNotification(_ message: Self) -> Notification { message.content.notification }
    }

    /// A store was written to, by this process or another.
    ///
    /// The message of `NSPersistentStoreRemoteChange`, which is posted if the store has the option
    /// ``NSPersistentStoreRemoteChangeNotificationPostOptionKey``.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(of: coordinator, for: .remoteChange) { message in
    ///     print(message.storeURL.path)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    public struct RemoteChangeMessage: NotificationCenter.AsyncNotificationMessage {
        /// The type of the object that posts it.
        public typealias Subject = NSPersistentStoreCoordinator

        /// The coordinator of the store.
        public let persistentStoreCoordinator: NSPersistentStoreCoordinator
        /// The URL of the store.
        public let storeURL: URL
        /// The UUID of the store.
        public let storeUUID: String
        /// The token of the newest transaction; `nil` if the store keeps no history.
        public let historyToken: NSPersistentHistoryToken?

        /// The name of the notification.
        public static var name: Notification.Name { .NSPersistentStoreRemoteChange }

        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or without the URL and the UUID of a store.
        public static func makeMessage(_ notification: Notification) -> Self? {
            guard notification.name == name,
                let coordinator = notification.object as? NSPersistentStoreCoordinator,
                let url = notification.userInfo?[NSPersistentStoreURLKey] as? URL,
                let uuid = notification.userInfo?[NSStoreUUIDKey] as? String
            else { return nil }
            return Self(
                persistentStoreCoordinator: coordinator,
                storeURL: url,
                storeUUID: uuid,
                historyToken: notification.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken
            )
        }

        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: The notification; its object is the coordinator.
        public static func makeNotification(_ message: Self) -> Notification {
            var userInfo: [AnyHashable: Any] = [
                NSStoreUUIDKey: message.storeUUID, NSPersistentStoreURLKey: message.storeURL,
            ]
            userInfo[NSPersistentHistoryTokenKey] = message.historyToken
            return Notification(name: name, object: message.persistentStoreCoordinator, userInfo: userInfo)
        }
    }
}
