import Foundation
import StrataLocks

/// Guards the parts of an object that any thread may read: the ID and the context of a managed object, and where the link
/// of a ``GlancedObject`` leads.
///
/// There are many locks. An object's address selects its lock, so threads seldom wait for the same one. These locks
/// are taken before those of the tables of IDs and of the coordinator, and a thread never holds two of them.
enum SharedIdentity {
    private static let locks = (0..<64).map { _ in NSLock() }

    static func withLock<Result>(of object: AnyObject, _ body: () -> Result) -> Result {
        // Objects lie several dozen bytes apart.
        let address = UInt(bitPattern: ObjectIdentifier(object))
        let lock = locks[Int((address >> 5 ^ address >> 11) & 63)]
        lock.lock()
        defer { lock.unlock() }
        return body()
    }
}

/// The contexts that exist, by address.
///
/// Other threads find a context here without touching it, because it may be about to end.
enum LiveContexts {
    private struct Reference {
        weak var context: NSManagedObjectContext?
    }

    private static let references = Locked<[UInt: Reference]>([:])

    static func enter(_ context: NSManagedObjectContext) {
        references.withLock { $0[UInt(bitPattern: ObjectIdentifier(context))] = Reference(context: context) }
    }

    /// Called when the context ends; then none of its objects leads to it any more.
    static func leave(_ context: NSManagedObjectContext) {
        _ = references.withLock { $0.removeValue(forKey: UInt(bitPattern: ObjectIdentifier(context))) }
    }

    /// The context at an address that an object leads to; `nil` if the context is ending.
    ///
    /// The caller holds that object's lock, for which an ending context waits.
    static func context(at address: UnsafeMutableRawPointer) -> NSManagedObjectContext? {
        references.withLock { $0[UInt(bitPattern: address)]?.context }
    }
}
