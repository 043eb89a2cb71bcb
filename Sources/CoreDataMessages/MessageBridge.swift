import CoreDataEssentials
import Foundation

/// Makes messages of notifications for their observers.
///
/// Foundation's `post` of a message stops the program if an observer of all notifications exists: that observer gets the
/// message as a notification. So messages are never posted. Each observer of a message has an observer of the
/// notification, which makes the message. Foundation keeps the observer of the message and its token; when it lets go
/// of that observer, the delivery ends.
enum MessageBridge {
    /// Ends the observation of a notification with its own end.
    private final class Delivery: @unchecked Sendable {
        // @unchecked Sendable: all are set once, before the delivery is shared, and any thread may use them.
        private let center: NotificationCenter
        private var observer: (any NSObjectProtocol)?
        private var end: () -> Void = {}
        private var body: @Sendable (Notification) -> Void = { _ in }

        init(_ center: NotificationCenter) { self.center = center }

        func begin(
            _ name: Notification.Name,
            _ subject: AnyObject?,
            end: @escaping @Sendable () -> Void = {},
            _ body: @escaping @Sendable (Notification) -> Void
        ) {
            self.end = end
            self.body = body
            observer = center.addObserver(forName: name, object: subject, queue: nil, using: body)
        }

        deinit {
            end()
            guard let observer else { return }
            // Foundation lets go of an observer under the lock of its centre, so the centre cannot be used here. The program's
            // objects that an observer holds may use it at their end, so they are held until the lock is free.
            nonisolated(unsafe) let last = observer
            DispatchQueue.global().async { [center, body] in
                center.removeObserver(last)
                withExtendedLifetime(body) {}
            }
        }
    }

    private static let mainQueueKey: DispatchSpecificKey<Void> = {
        let key = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: key, value: ())
        return key
    }()

    /// Whether this is the main queue.
    ///
    /// A program with an asynchronous `main` drains it on other threads than the first.
    private static var isOnMainQueue: Bool {
        Thread.isMainThread || DispatchQueue.getSpecific(key: mainQueueKey) != nil
    }

    // MARK: - Observers

    static func observe<Message: NotificationCenter.MainActorNotificationMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ observer: @escaping @MainActor (Message) -> Void
    ) -> NotificationCenter.ObservationToken {
        let delivery = Delivery(center)
        delivery.begin(Message.name, subject) { [weak delivery] notification in
            // The observer of the notification is removed a little later than that of the message.
            guard delivery != nil else { return }
            // A context of a private queue may post on the main thread too, and the message is not for that.
            let context = notification.object as? NSManagedObjectContext
            guard context.map({ $0.concurrencyType == .mainQueueConcurrencyType }) ?? true else { return }
            // The content of the notification belongs to the main queue, or is thread-safe.
            nonisolated(unsafe) let notification = notification
            if isOnMainQueue {
                MainActor.assumeIsolated {
                    if let message = Message.makeMessage(notification) { observer(message) }
                }
            } else {
                // The main queue may wait for this thread, so this does not wait for the main queue.
                DispatchQueue.main.async {
                    if delivery != nil, let message = Message.makeMessage(notification) { observer(message) }
                }
            }
        }
        return keep(subject, type, in: center) { message in withExtendedLifetime(delivery) { observer(message) } }
    }

    static func observe<Message: NotificationCenter.AsyncNotificationMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ observer: @escaping @Sendable (Message) async -> Void
    ) -> NotificationCenter.ObservationToken {
        let delivery = Delivery(center)
        // One task keeps the order of the messages.
        let (stream, continuation) = AsyncStream<Message>.makeStream()
        let task = Task { for await message in stream { await observer(message) } }
        delivery.begin(Message.name, subject, end: { task.cancel() }) { [weak delivery] notification in
            if delivery != nil, let message = Message.makeMessage(notification) { continuation.yield(message) }
        }
        return keep(subject, type, in: center) { message in
            await observer(message)
            withExtendedLifetime(delivery) {}
        }
    }

    static func messages<Message: NotificationCenter.AsyncNotificationMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ limit: Int
    ) -> some AsyncSequence<Message, Never> & Sendable {
        let (stream, continuation) = AsyncStream<Message>.makeStream(bufferingPolicy: .bufferingNewest(limit))
        let delivery = Delivery(center)
        delivery.begin(Message.name, subject) { notification in
            if let message = Message.makeMessage(notification) { continuation.yield(message) }
        }
        // The stream keeps this closure until its end.
        continuation.onTermination = { _ in withExtendedLifetime(delivery) {} }
        return stream
    }

    // MARK: - Foundation's methods

    // With these constraints the compiler finds Foundation's methods, and not those of this module.

    private static func keep<Message: NotificationCenter.MainActorMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ observer: @escaping @MainActor (Message) -> Void
    ) -> NotificationCenter.ObservationToken where Message.Subject: AnyObject {
        center.addObserver(of: subject, for: type, using: observer)
    }

    private static func keep<Message: NotificationCenter.AsyncMessage>(
        _ subject: Message.Subject?,
        _ type: Message.Type,
        in center: NotificationCenter,
        _ observer: @escaping @Sendable (Message) async -> Void
    ) -> NotificationCenter.ObservationToken where Message.Subject: AnyObject {
        center.addObserver(of: subject, for: type, using: observer)
    }
}
