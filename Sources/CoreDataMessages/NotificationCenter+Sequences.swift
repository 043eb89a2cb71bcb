import CoreDataEssentials
import Foundation
import StrataLocks

extension NotificationCenter {
    /// The notifications of a name, as they are posted.
    ///
    /// ```swift
    /// let saves = NotificationCenter.default.notifications(named: .NSManagedObjectContextDidSave, object: context)
    /// let observing = Task { for await save in saves { print(save.name) } }
    /// observing.cancel()
    /// ```
    ///
    /// Foundation's method of this name does not exist on Linux. Notifications that are posted before the loop asks for
    /// the next one are kept, up to the 1,000 newest. They are delivered on the thread that runs the loop. From a
    /// context's notification, only the IDs and the context itself may be used there, unless `perform` is called.
    ///
    /// Each loop observes for itself, from its start. It ends when its task is cancelled. May be called on any thread.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - object: The object that posts; `nil`, the default, for any. The sequence keeps it alive.
    /// - Returns: The sequence; nothing is observed before a loop over it starts.
    public func notifications(named name: Notification.Name, object: AnyObject? = nil) -> Notifications {
        Notifications(center: self, name: name, object: object)
    }

    /// See ``NotificationCenter/notifications(named:object:)``.
    ///
    /// ```swift
    /// let saves = NotificationCenter.default.notifications(named: .NSManagedObjectContextDidSave, object: context)
    /// let observing = Task { for await save in saves { print(save.name) } }
    /// observing.cancel()
    /// ```
    public struct Notifications: AsyncSequence, @unchecked Sendable {
        // @unchecked Sendable: all members are constant, and the object is only compared with the one that posts.

        /// One notification.
        public typealias Element = Notification
        /// The sequence does not throw.
        public typealias Failure = Never

        fileprivate let center: NotificationCenter
        fileprivate let name: Notification.Name
        fileprivate let object: AnyObject?

        /// Starts to observe.
        ///
        /// - Returns: A new observer, for one task.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer: NotificationBuffer(self)) }

        /// One observer.
        ///
        /// Use it in one task.
        ///
        /// ```swift
        /// var saves = NotificationCenter.default.notifications(named: .NSManagedObjectContextDidSave, object: context).makeAsyncIterator()
        /// venue.price += 1
        /// try context.save()
        /// let save = await saves.next()
        /// ```
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let buffer: NotificationBuffer

            /// Returns the next notification; waits if there is none yet.
            ///
            /// - Returns: `nil` when the task was cancelled.
            public mutating func next() async -> Notification? { await buffer.next()?.value }
        }
    }
}

@available(*, unavailable)
extension NotificationCenter.Notifications.AsyncIterator: Sendable {}

/// The notifications that one observer has not taken yet.
private final class NotificationBuffer: @unchecked Sendable {
    // @unchecked Sendable: `token` is set in the initialiser and read in the deinitialiser; the rest is constant.

    private struct Waiting: PendingNews {
        private static let limit = 1_000

        private var notifications: [UncheckedBox<Notification>] = []

        init() {}

        var isEmpty: Bool { notifications.isEmpty }

        mutating func add(_ notification: UncheckedBox<Notification>) {
            if notifications.count == Self.limit { notifications.removeFirst() }
            notifications.append(notification)
        }

        mutating func take() -> UncheckedBox<Notification> { notifications.removeFirst() }
    }

    private let box = NewsBox<Waiting>()
    private let center: NotificationCenter
    private var token: (any NSObjectProtocol)?

    init(_ sequence: NotificationCenter.Notifications) {
        center = sequence.center
        token = center.addObserver(forName: sequence.name, object: sequence.object, queue: nil) { [box] posted in
            let notification = UncheckedBox(posted)
            box.note { $0.add(notification) }
        }
    }

    deinit {
        if let token { center.removeObserver(token) }
    }

    func next() async -> UncheckedBox<Notification>? { await box.next() }
}
