import Foundation
import Synchronization

/// Guards what any thread may read of an object: its ID and its context.
///
/// There are many locks, of which an object has the one that its address leads to, so that threads seldom meet at one. They are taken
/// before those of the tables of IDs and of the coordinator, and never together.
enum SharedIdentity {
    private static let locks = (0..<64).map { _ in NSLock() }

    static func withLock<Result>(of object: NSManagedObject, _ body: () -> Result) -> Result {
        // Objects lie some dozens of bytes apart.
        let address = UInt(bitPattern: ObjectIdentifier(object))
        let lock = locks[Int((address >> 5 ^ address >> 11) & 63)]
        lock.lock()
        defer { lock.unlock() }
        return body()
    }
}

/// The contexts that exist, by their addresses, so that other threads find one without touching it, as it may be about to go away.
enum LiveContexts {
    private struct Reference {
        weak var context: NSManagedObjectContext?
        /// The coordinator that the context keeps alive, its own or that of its root.
        var coordinator: ObjectIdentifier?
    }

    private static let references = Mutex<[UInt: Reference]>([:])

    static func enter(_ context: NSManagedObjectContext) {
        references.withLock { $0[UInt(bitPattern: ObjectIdentifier(context))] = Reference(context: context) }
    }

    /// Called when the context goes away, and none of its objects leads to it any more.
    static func leave(_ context: NSManagedObjectContext) {
        _ = references.withLock { $0.removeValue(forKey: UInt(bitPattern: ObjectIdentifier(context))) }
    }

    /// Notes which coordinator a context is on, by itself or through its parents.
    static func note(_ context: NSManagedObjectContext, on coordinator: NSPersistentStoreCoordinator?) {
        let identity = coordinator.map { ObjectIdentifier($0) }
        references.withLock { $0[UInt(bitPattern: ObjectIdentifier(context))]?.coordinator = identity }
    }

    /// How many contexts are on a coordinator.
    ///
    /// Holds none of them meanwhile, not even for a moment: a context goes away on the thread that lets go of it, and its objects
    /// with it, never on that of somebody who counts.
    static func count(on coordinator: NSPersistentStoreCoordinator) -> Int {
        let identity = ObjectIdentifier(coordinator)
        return references.withLock { $0.values.count { $0.coordinator == identity } }
    }

    /// The context at an address that an object leads to; `nil` if it is going away.
    ///
    /// Called with the lock of that object held, for which the context would wait.
    static func context(at address: UnsafeMutableRawPointer) -> NSManagedObjectContext? {
        references.withLock { $0[UInt(bitPattern: address)]?.context }
    }
}
