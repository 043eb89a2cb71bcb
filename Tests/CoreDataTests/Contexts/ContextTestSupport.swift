import CoreData
import Synchronization
import TestSupport

extension Stack {
    /// Saves a new object in a context of its own.
    func store<Object: NSManagedObject>(
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
    func storeCity(_ name: String = "Porto", population: Int64 = 1) throws -> NSManagedObjectID {
        try store(City.self) { city, _ in
            city.name = name
            city.population = population
        }
    }

    /// Changes a stored object in a context of its own and saves.
    func change<Object: NSManagedObject>(
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

    /// Deletes a stored object in a context of its own and saves.
    func delete(_ id: NSManagedObjectID) throws {
        let context = context("deleting")
        try context.performAndWait {
            context.delete(try context.existingObject(with: id))
            try context.save()
        }
    }

    /// Reads a stored object in a context of its own.
    func read<Object: NSManagedObject, Value>(
        _ id: NSManagedObjectID,
        _ type: Object.Type = Object.self,
        _ body: (Object) throws -> Value
    ) throws -> Value {
        let context = context("reading")
        return try context.performAndWait { try body(try typed(context.existingObject(with: id))) }
    }

    /// The number of stored objects of an entity.
    func count(_ entity: String) throws -> Int {
        let context = context("counting")
        return try context.performAndWait {
            try context.count(for: NSFetchRequest<NSManagedObject>(entityName: entity))
        }
    }
}

/// An object is of another class than the test expects.
struct WrongClass: Error {}

/// The object as its class, or a thrown error.
func typed<Object: NSManagedObject>(_ object: NSManagedObject) throws -> Object {
    guard let result = object as? Object else { throw WrongClass() }
    return result
}

extension NSManagedObjectContext {
    /// The object of an ID, as its class.
    func get<Object: NSManagedObject>(_ id: NSManagedObjectID, _ type: Object.Type = Object.self) throws -> Object {
        try typed(object(with: id))
    }

    /// All objects of an entity, in any order.
    func all<Object: NSManagedObject>(_ type: Object.Type = Object.self) throws -> [Object] {
        try fetch(NSFetchRequest<Object>(managedClass: Object.self))
    }
}

/// The notifications that were posted for one object, in order.
final class NotificationLog: Sendable {
    /// One notification: its name and the user info, as it was posted.
    struct Entry: @unchecked Sendable {
        // @unchecked Sendable: read after the fact, by the test.
        let name: Notification.Name
        let notification: Notification
        /// What `probe` said when the notification was posted.
        let probed: String

        /// The user info's set of objects under a key.
        func objects(_ key: String) -> Set<NSManagedObject> {
            notification.userInfo?[key] as? Set<NSManagedObject> ?? []
        }
        /// The user info's set of IDs under a key.
        func ids(_ key: String) -> Set<NSManagedObjectID> {
            notification.userInfo?[key] as? Set<NSManagedObjectID> ?? []
        }
    }

    private let log = Mutex<[Entry]>([])
    nonisolated(unsafe) private var tokens: [any NSObjectProtocol] = []
    // `tokens` is set once, before anybody else has the log.

    init(
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

    var entries: [Entry] { log.withLock { $0 } }
    var names: [Notification.Name] { entries.map(\.name) }
    func clear() { log.withLock { $0 = [] } }
}

extension [Notification.Name] {
    /// Everything that a context posts.
    static var ofContexts: Self {
        [
            .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
            .NSManagedObjectContextDidSaveObjectIDs, .NSManagedObjectContextDidMergeChangesObjectIDs,
        ]
    }
}

/// A value that tests share between threads.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    var current: Value { value.withLock { $0 } }
    func update(_ body: (inout Value) -> Void) { value.withLock { body(&$0) } }
}

extension Error {
    /// The code of a Cocoa error, to compare.
    var cocoaCode: CocoaError.Code? { (self as? CocoaError)?.code }
}

/// An observer that a test takes away again.
struct Observation {
    fileprivate let token: any NSObjectProtocol

    func remove() { NotificationCenter.default.removeObserver(token) }
}

/// Runs `body` on the posting thread whenever `object` posts a notification.
func whenPosted(_ name: Notification.Name, by object: AnyObject, _ body: @escaping () -> Void) -> Observation {
    nonisolated(unsafe) let body = body
    // The test posts from inside one context's scope only.
    return Observation(
        token: NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) { _ in body() }
    )
}
