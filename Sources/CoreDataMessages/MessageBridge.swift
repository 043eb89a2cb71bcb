import CoreDataEssentials
import Foundation
import StrataLocks

/// Posts messages where notifications are posted.
///
/// A message without an observer costs about as much as a notification without one, so a message is posted only after
/// the program has named it. From then on one observer of the notification makes each message. It is never removed,
/// because Foundation does not show when the last observer of a message leaves.
enum MessageBridge {
    /// The types of messages that are posted.
    private static let started = Locked<Set<ObjectIdentifier>>([])

    /// Begins to post the messages of a type on the main actor; does nothing if that has begun.
    static func start<Message: NotificationCenter.MainActorNotificationMessage>(_ type: Message.Type) {
        start(type, Message.name) { notification in
            // A context of a private queue may post on the main thread too, and the message is not for that.
            let context = notification.object as? NSManagedObjectContext
            guard context.map({ $0.concurrencyType == .mainQueueConcurrencyType }) ?? true else { return }
            // What the notification has belongs to the main queue, or is thread-safe.
            nonisolated(unsafe) let notification = notification
            if Thread.isMainThread {
                MainActor.assumeIsolated { post(type, notification) }
            } else {
                // The main queue may wait for this thread, so this does not wait for the main queue.
                DispatchQueue.main.async { post(type, notification) }
            }
        }
    }

    /// Begins to post the messages of a type for observers of their own; does nothing if that has begun.
    static func start<Message: NotificationCenter.AsyncNotificationMessage>(_ type: Message.Type) {
        start(type, Message.name) { notification in
            guard let subject = notification.object as? Message.Subject,
                let message = Message.makeMessage(notification)
            else { return }
            NotificationCenter.default.post(message, subject: subject)
        }
    }

    private static func start(
        _ type: Any.Type,
        _ name: Notification.Name,
        _ post: @escaping @Sendable (Notification) -> Void
    ) {
        started.withLock { started in
            guard started.insert(ObjectIdentifier(type)).inserted else { return }
            // The lock is held, so that a second caller returns only when messages are posted.
            _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil, using: post)
        }
    }

    @MainActor private static func post<Message: NotificationCenter.MainActorNotificationMessage>(
        _: Message.Type,
        _ notification: Notification
    ) {
        guard let subject = notification.object as? Message.Subject, let message = Message.makeMessage(notification)
        else { return }
        NotificationCenter.default.post(message, subject: subject)
    }

    /// An identifier for messages, which are posted from now on.
    static func identifier<Message: NotificationCenter.MainActorNotificationMessage>()
        -> NotificationCenter.BaseMessageIdentifier<Message>
    {
        start(Message.self)
        return NotificationCenter.BaseMessageIdentifier()
    }

    /// An identifier for messages, which are posted from now on.
    static func identifier<Message: NotificationCenter.AsyncNotificationMessage>()
        -> NotificationCenter.BaseMessageIdentifier<Message>
    {
        start(Message.self)
        return NotificationCenter.BaseMessageIdentifier()
    }

    // MARK: - Foundation's methods

    // With these constraints the compiler finds Foundation's methods, and not those of this module.

    static func observe<Message: NotificationCenter.MainActorMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ observer: @escaping @MainActor (Message) -> Void
    ) -> NotificationCenter.ObservationToken where Message.Subject: AnyObject {
        center.addObserver(of: subject, for: type, using: observer)
    }

    static func observe<Message: NotificationCenter.AsyncMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ observer: @escaping @Sendable (Message) async -> Void
    ) -> NotificationCenter.ObservationToken where Message.Subject: AnyObject {
        center.addObserver(of: subject, for: type, using: observer)
    }

    static func messages<Message: NotificationCenter.AsyncMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ limit: Int
    ) -> some AsyncSequence<Message, Never> & Sendable where Message.Subject: AnyObject {
        center.messages(of: subject, for: type, bufferSize: limit)
    }
}
