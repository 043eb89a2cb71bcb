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
    }

    private static let references = Mutex<[UInt: Reference]>([:])

    static func enter(_ context: NSManagedObjectContext) {
        references.withLock { $0[UInt(bitPattern: ObjectIdentifier(context))] = Reference(context: context) }
    }

    /// Called when the context goes away, and none of its objects leads to it any more.
    static func leave(_ context: NSManagedObjectContext) {
        _ = references.withLock { $0.removeValue(forKey: UInt(bitPattern: ObjectIdentifier(context))) }
    }

    /// The context at an address that an object leads to; `nil` if it is going away.
    ///
    /// Called with the lock of that object held, for which the context would wait.
    static func context(at address: UnsafeMutableRawPointer) -> NSManagedObjectContext? {
        references.withLock { $0[UInt(bitPattern: address)]?.context }
    }
}
