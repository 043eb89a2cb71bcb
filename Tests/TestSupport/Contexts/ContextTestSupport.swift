import CoreData
import StrataLocks

extension Stack {
    /// Saves a new object in a new context.
    package func store<Object: NSManagedObject>(
        _ type: Object.Type = Object.self,
        _ setUp: (Object, NSManagedObjectContext) -> Void
    ) throws -> NSManagedObjectID {
        let context = context("setting up")
        return try context.performAndWait {
            let object = Object(context: context)
            setUp(object, context)
            try context.save()
            return object.objectID
        }
    }

    /// Saves a city.
    package func storeCity(_ name: String = "Porto", population: Int64 = 1) throws -> NSManagedObjectID {
        try store(City.self) { city, _ in
            city.name = name
            city.population = population
        }
    }

    /// Changes a stored object in a new context, and saves.
    package func change<Object: NSManagedObject>(
        _ id: NSManagedObjectID,
        _ type: Object.Type = Object.self,
        _ body: (Object, NSManagedObjectContext) -> Void
    ) throws {
        let context = context("changing")
        try context.performAndWait {
            body(try typed(context.existingObject(with: id)), context)
            try context.save()
        }
    }

    /// Deletes a stored object in a new context, and saves.
    package func delete(_ id: NSManagedObjectID) throws {
        let context = context("deleting")
        try context.performAndWait {
            context.delete(try context.existingObject(with: id))
            try context.save()
        }
    }

    /// Reads a stored object in a new context.
    package func read<Object: NSManagedObject, Value>(
        _ id: NSManagedObjectID,
        _ type: Object.Type = Object.self,
        _ body: (Object) throws -> Value
    ) throws -> Value {
        let context = context("reading")
        return try context.performAndWait { try body(try typed(context.existingObject(with: id))) }
    }

    /// The number of stored objects of an entity.
    package func count(_ entity: String) throws -> Int {
        let context = context("counting")
        return try context.performAndWait {
            try context.count(for: NSFetchRequest<NSManagedObject>(entityName: entity))
        }
    }
}

/// An error: an object has another class than the test expects.
package struct WrongClass: Error {
    package init() {}
}

/// The object as its class; throws if it has another class.
package func typed<Object: NSManagedObject>(_ object: NSManagedObject) throws -> Object {
    guard let result = object as? Object else { throw WrongClass() }
    return result
}

extension NSManagedObjectContext {
    /// The object with an ID, as its class.
    package func get<Object: NSManagedObject>(_ id: NSManagedObjectID, _ type: Object.Type = Object.self) throws
        -> Object
    {
        try typed(object(with: id))
    }

    /// All objects of an entity, in any order.
    package func all<Object: NSManagedObject>(_ type: Object.Type = Object.self) throws -> [Object] {
        try fetch(NSFetchRequest<Object>(managedClass: Object.self))
    }
}

/// The notifications that were posted for one object, in order.
package final class NotificationLog: Sendable {
    /// One notification, with its name and its user info at the time of posting.
    package struct Entry: @unchecked Sendable {
        // @unchecked Sendable: only the test reads it, afterwards.
        package let name: Notification.Name
        package let notification: Notification
        /// The result of `probe` when the notification was posted.
        package let probed: String

        package init(name: Notification.Name, notification: Notification, probed: String) {
            self.name = name
            self.notification = notification
            self.probed = probed
        }

        /// The user info's set of objects under a key.
        package func objects(_ key: String) -> Set<NSManagedObject> {
            notification.userInfo?[key] as? Set<NSManagedObject> ?? []
        }
        /// The user info's set of IDs under a key.
        package func ids(_ key: String) -> Set<NSManagedObjectID> {
            notification.userInfo?[key] as? Set<NSManagedObjectID> ?? []
        }
    }

    private let log = Locked<[Entry]>([])
    nonisolated(unsafe) private var tokens: [any NSObjectProtocol] = []
    // `tokens` is set once, before other code has the log.

    package init(
        _ names: [Notification.Name],
        of object: AnyObject,
        probe: @escaping @Sendable () -> String = { "" }
    ) {
        for name in names {
            tokens.append(
                NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) {
                    [weak self] notification in
                    let entry = Entry(name: name, notification: notification, probed: probe())
                    self?.log.withLock { $0.append(entry) }
                }
            )
        }
    }

    deinit {
        for token in tokens { NotificationCenter.default.removeObserver(token) }
    }

    package var entries: [Entry] { log.withLock { $0 } }
    package var names: [Notification.Name] { entries.map(\.name) }
    package func clear() { log.withLock { $0 = [] } }
}

extension [Notification.Name] {
    /// All notifications that a context posts.
    package static var ofContexts: Self {
        [
            .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
            .NSManagedObjectContextDidSaveObjectIDs, .NSManagedObjectContextDidMergeChangesObjectIDs,
        ]
    }
}

/// A value that tests share between threads.
package final class Shared<Value: Sendable>: Sendable {
    private let value: Locked<Value>

    package init(_ value: Value) { self.value = Locked(value) }

    package var current: Value { value.withLock { $0 } }
    package func update(_ body: (inout Value) -> Void) { value.withLock { body(&$0) } }
}

extension Error {
    /// The code of a Cocoa error, for comparisons.
    package var cocoaCode: CocoaError.Code? { (self as? CocoaError)?.code }
}

/// An observer that a test removes again.
package struct Observation {
    fileprivate let token: any NSObjectProtocol

    package func remove() { NotificationCenter.default.removeObserver(token) }
}

/// Runs `body` on the posting thread whenever `object` posts a notification.
package func whenPosted(_ name: Notification.Name, by object: AnyObject, _ body: @escaping () -> Void) -> Observation {
    nonisolated(unsafe) let body = body
    // The test posts from inside one context's scope only.
    return Observation(
        token: NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) { _ in body() }
    )
}

/// A reference that a test passes from one block of a context to the next.
package struct UncheckedSendable<Value>: @unchecked Sendable {
    // @unchecked Sendable: the test uses the value inside the scope of its context only.
    package let value: Value

    package init(_ value: Value) { self.value = value }
}

extension NSManagedObjectContext {
    /// Runs `body` inside the scope like a block that cannot throw, so that a failed read where nothing can throw does
    /// not end it.
    package func insideQuietly(_ body: () throws -> Void) throws {
        let result = performAndWait { Result(catching: body) }
        try result.get()
    }
}
