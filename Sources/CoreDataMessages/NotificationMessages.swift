import CoreDataEssentials
import Foundation

extension NotificationCenter {
    /// A message that is posted on the main actor where a notification is.
    ///
    /// ``NSManagedObjectContext/DidSaveMessage`` and the other messages of contexts with the main queue conform to it.
    /// On Apple's platforms `NotificationCenter.MainActorMessage` itself has these requirements. Foundation on Linux
    /// does not connect messages with notifications, so this module does that for its own ones.
    ///
    /// ```swift
    /// print(NSManagedObjectContext.DidSaveMessage.name == .NSManagedObjectContextDidSave)
    /// ```
    public protocol MainActorNotificationMessage: NotificationCenter.MainActorMessage where Subject: AnyObject {
        /// The name of the notification.
        static var name: Notification.Name { get }
        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or if this message is not posted for its
        ///   object.
        @MainActor static func makeMessage(_ notification: Notification) -> Self?
        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: A notification of which ``makeMessage(_:)`` makes an equal message.
        @MainActor static func makeNotification(_ message: Self) -> Notification
    }

    /// A message that is posted where a notification is, for observers that run on their own.
    ///
    /// ``NSManagedObjectContext/DidSaveObjectIDsAsyncMessage`` and the messages of coordinators conform to it. On
    /// Apple's platforms `NotificationCenter.AsyncMessage` itself has these requirements.
    ///
    /// ```swift
    /// print(NSPersistentStoreCoordinator.RemoteChangeMessage.name == .NSPersistentStoreRemoteChange)
    /// ```
    public protocol AsyncNotificationMessage: NotificationCenter.AsyncMessage where Subject: AnyObject {
        /// The name of the notification.
        static var name: Notification.Name { get }
        /// Makes the message of a notification.
        ///
        /// - Parameter notification: Any notification.
        /// - Returns: The message; `nil` for a notification of another name, or if this message is not posted for its
        ///   object.
        static func makeMessage(_ notification: Notification) -> Self?
        /// Makes the notification of a message.
        ///
        /// - Parameter message: The message.
        /// - Returns: A notification of which ``makeMessage(_:)`` makes an equal message.
        static func makeNotification(_ message: Self) -> Notification
    }

    // Foundation's methods take any type of message and run no code of it. These are more special, so the compiler
    // prefers them, and they make the messages of notifications.

    /// Observes messages of the main actor.
    ///
    /// ```swift
    /// let token = NotificationCenter.default.addObserver(
    ///     of: container.viewContext, for: NSManagedObjectContext.DidSaveMessage.self
    /// ) { message in
    ///     print(message.inserted.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    ///
    /// A message is posted right after its notification, before the save or the event ends. If the notification is
    /// posted on another thread than the main one, then the message follows in a later turn of the main queue. The
    /// messages are posted to the default centre.
    ///
    /// - Parameters:
    ///   - subject: The context or coordinator; `nil` for all.
    ///   - messageType: The type of the message.
    ///   - observer: Called on the main actor with each message.
    /// - Returns: A token. The observation ends when it is passed to `removeObserver(_:)`, or released.
    public func addObserver<Message: MainActorNotificationMessage>(
        of subject: Message.Subject? = nil,
        for messageType: Message.Type,
        using observer: @escaping @MainActor (Message) -> Void
    ) -> ObservationToken {
        MessageBridge.observe(subject, messageType, in: self, observer)
    }

    /// Observes messages whose observers run on their own.
    ///
    /// ```swift
    /// let background = container.newBackgroundContext()
    /// let token = NotificationCenter.default.addObserver(
    ///     of: background, for: NSManagedObjectContext.DidSaveObjectIDsAsyncMessage.self
    /// ) { message in
    ///     print(message.insertedIDs.count)
    /// }
    /// NotificationCenter.default.removeObserver(token)
    /// ```
    ///
    /// A message is posted right after its notification. Foundation calls the observer later, in a task, and the save
    /// does not wait for that. The messages are posted to the default centre.
    ///
    /// - Parameters:
    ///   - subject: The context or coordinator; `nil` for all.
    ///   - messageType: The type of the message.
    ///   - observer: Called with each message.
    /// - Returns: A token. The observation ends when it is passed to `removeObserver(_:)`, or released.
    public func addObserver<Message: AsyncNotificationMessage>(
        of subject: Message.Subject? = nil,
        for messageType: Message.Type,
        using observer: @escaping @Sendable (Message) async -> Void
    ) -> ObservationToken {
        MessageBridge.observe(subject, messageType, in: self, observer)
    }

    /// The messages of a type, as they are posted.
    ///
    /// ```swift
    /// let messages = NotificationCenter.default.messages(
    ///     of: coordinator, for: NSPersistentStoreCoordinator.RemoteChangeMessage.self)
    /// let reader = Task {
    ///     for await message in messages { print(message.storeURL) }
    /// }
    /// reader.cancel()
    /// ```
    ///
    /// - Parameters:
    ///   - subject: The context or coordinator; `nil` for all.
    ///   - messageType: The type of the message.
    ///   - limit: The number of messages that wait for the loop. If it is reached, then the oldest message is dropped.
    /// - Returns: A sequence without an end. It has the messages that are posted after its iterator was made.
    public func messages<Message: AsyncNotificationMessage>(
        of subject: Message.Subject? = nil,
        for messageType: Message.Type,
        bufferSize limit: Int = 10
    ) -> some AsyncSequence<Message, Never> & Sendable {
        MessageBridge.messages(subject, messageType, in: self, limit)
    }

    /// Observes the messages of an identifier about a subject.
    ///
    /// - Parameters:
    ///   - subject: The context or the coordinator.
    ///   - identifier: The identifier, such as `.didSave`.
    ///   - observer: Called on the main actor with each message.
    /// - Returns: A token that ends the observation when it is removed or released.
    public func addObserver<Identifier: MessageIdentifier, Message: MainActorNotificationMessage>(
        of subject: Message.Subject,
        for identifier: Identifier,
        using observer: @escaping @MainActor (Message) -> Void
    ) -> ObservationToken where Identifier.MessageType == Message {
        MessageBridge.observe(subject, Message.self, in: self, observer)
    }

    /// Observes the messages of an identifier about all subjects.
    ///
    /// - Parameters:
    ///   - subject: The class of the subjects.
    ///   - identifier: The identifier, such as `.didSave`.
    ///   - observer: Called on the main actor with each message.
    /// - Returns: A token that ends the observation when it is removed or released.
    public func addObserver<Identifier: MessageIdentifier, Message: MainActorNotificationMessage>(
        of subject: Message.Subject.Type,
        for identifier: Identifier,
        using observer: @escaping @MainActor (Message) -> Void
    ) -> ObservationToken where Identifier.MessageType == Message {
        MessageBridge.observe(nil, Message.self, in: self, observer)
    }

    /// Observes the messages of an identifier about a subject.
    ///
    /// - Parameters:
    ///   - subject: The context or the coordinator.
    ///   - identifier: The identifier, such as `.didSaveObjectIDsAsync`.
    ///   - observer: Called in a task with each message, one after the other.
    /// - Returns: A token that ends the observation when it is removed or released.
    public func addObserver<Identifier: MessageIdentifier, Message: AsyncNotificationMessage>(
        of subject: Message.Subject,
        for identifier: Identifier,
        using observer: @escaping @Sendable (Message) async -> Void
    ) -> ObservationToken where Identifier.MessageType == Message {
        MessageBridge.observe(subject, Message.self, in: self, observer)
    }

    /// Observes the messages of an identifier about all subjects.
    ///
    /// - Parameters:
    ///   - subject: The class of the subjects.
    ///   - identifier: The identifier, such as `.didSaveObjectIDsAsync`.
    ///   - observer: Called in a task with each message, one after the other.
    /// - Returns: A token that ends the observation when it is removed or released.
    public func addObserver<Identifier: MessageIdentifier, Message: AsyncNotificationMessage>(
        of subject: Message.Subject.Type,
        for identifier: Identifier,
        using observer: @escaping @Sendable (Message) async -> Void
    ) -> ObservationToken where Identifier.MessageType == Message {
        MessageBridge.observe(nil, Message.self, in: self, observer)
    }

    /// The messages of an identifier about a subject.
    ///
    /// - Parameters:
    ///   - subject: The context or the coordinator.
    ///   - identifier: The identifier, such as `.didSaveObjectIDsAsync`.
    ///   - limit: The number of messages that wait; older ones are dropped.
    /// - Returns: A sequence of the messages from now on.
    public func messages<Identifier: MessageIdentifier, Message: AsyncNotificationMessage>(
        of subject: Message.Subject,
        for identifier: Identifier,
        bufferSize limit: Int = 10
    ) -> some AsyncSequence<Message, Never> & Sendable where Identifier.MessageType == Message {
        MessageBridge.messages(subject, Message.self, in: self, limit)
    }

    /// The messages of an identifier about all subjects.
    ///
    /// - Parameters:
    ///   - subject: The class of the subjects.
    ///   - identifier: The identifier, such as `.didSaveObjectIDsAsync`.
    ///   - limit: The number of messages that wait; older ones are dropped.
    /// - Returns: A sequence of the messages from now on.
    public func messages<Identifier: MessageIdentifier, Message: AsyncNotificationMessage>(
        of subject: Message.Subject.Type,
        for identifier: Identifier,
        bufferSize limit: Int = 10
    ) -> some AsyncSequence<Message, Never> & Sendable where Identifier.MessageType == Message {
        MessageBridge.messages(nil, Message.self, in: self, limit)
    }
}
