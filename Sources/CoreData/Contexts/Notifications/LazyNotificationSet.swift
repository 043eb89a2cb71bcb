import Foundation
import Synchronization

/// A set of objects or IDs that is made only when a handler looks into it: see ``NotificationInterest``.
///
/// It is an `NSSet`, but it cannot be cast to `Set`, since Foundation's cast on Linux does not ask subclasses for their
/// members. Any thread may look into it.
final class LazyNotificationSet: NSSet {
    private enum Content {
        case objects([NSManagedObject])
        case idsOfObjects([NSManagedObject])
        case ids([ChangeMessage.Change])
    }

    private let content: Content
    /// The coordinator of the objects' context.
    private let coordinator: NSPersistentStoreCoordinator?
    private let made = Mutex<UncheckedBox<(array: [NSObject], set: NSSet)>?>(nil)

    /// The empty set, which most notifications have two of.
    private static nonisolated(unsafe) let empty = LazyNotificationSet(idsOf: [])
    // nonisolated(unsafe): any thread may look into a set.

    /// A set of objects of a context on `coordinator`.
    static func of(_ objects: [NSManagedObject], _ coordinator: NSPersistentStoreCoordinator?) -> LazyNotificationSet {
        objects.isEmpty ? empty : LazyNotificationSet(.objects(objects), coordinator)
    }

    /// A set of the IDs of stored objects of a context on `coordinator`.
    static func idsOf(_ objects: [NSManagedObject], _ coordinator: NSPersistentStoreCoordinator?) -> LazyNotificationSet
    {
        objects.isEmpty ? empty : LazyNotificationSet(.idsOfObjects(objects), coordinator)
    }

    private init(_ content: Content, _ coordinator: NSPersistentStoreCoordinator?) {
        self.content = content
        self.coordinator = coordinator
        super.init(objects: nil, count: 0)
    }

    /// A set of the IDs of rows.
    init(idsOf changes: [ChangeMessage.Change]) {
        content = .ids(changes)
        coordinator = nil
        super.init(objects: nil, count: 0)
    }

    // The superclass makes plain sets with these two initialisers.
    required convenience init(coder: NSCoder) { self.init(idsOf: []) }

    override init(objects: UnsafePointer<AnyObject>!, count: Int) {
        content = .ids([])
        coordinator = nil
        super.init(objects: objects, count: count)
    }

    /// The rows of the members, found without entering the scope of the objects' context.
    var changes: [ChangeMessage.Change] {
        switch content {
        case .ids(let changes): return changes
        case .objects(let objects), .idsOfObjects(let objects): return ChangeMessage.changes(of: objects, coordinator)
        }
    }

    /// The IDs of the rows of the members.
    var ids: Set<NSManagedObjectID> {
        Set(changes.map(\.id))
    }

    private var members: (array: [NSObject], set: NSSet) {
        if let known = made.withLock({ $0 }) { return known.value }
        let array: [NSObject]
        if case .objects(let objects) = content { array = objects } else { array = Array(ids) }
        let box = UncheckedBox((array: array, set: NSSet(array: array)))
        made.withLock { $0 = box }
        return box.value
    }

    override var count: Int {
        switch content {
        case .objects(let objects), .idsOfObjects(let objects): objects.count
        case .ids(let changes): changes.count
        }
    }

    override func member(_ object: Any) -> Any? { members.set.member(object) }
    override func objectEnumerator() -> NSEnumerator { (members.array as NSArray).objectEnumerator() }
    override var description: String { members.array.description }
    override func description(withLocale locale: Locale?) -> String { description }
}
