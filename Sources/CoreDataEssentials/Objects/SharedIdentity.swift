import Foundation
import StrataLocks

/// Guards the parts of an object that any thread may read: the ID and the context of a managed object, and where the link
/// of a ``GlancedObject`` leads.
///
/// There are many locks. An object's address selects its lock, so threads seldom wait for the same one. These locks
/// are taken before those of the tables of IDs and of the coordinator, and a thread never holds two of them.
enum SharedIdentity {
    private final class Lock: Sendable {
        let mutex = Locked(())
    }

    private static let locks = (0..<64).map { _ in Lock() }

    static func withLock<Result>(of object: AnyObject, _ body: () -> Result) -> Result {
        // Objects lie several dozen bytes apart.
        let address = UInt(bitPattern: ObjectIdentifier(object))
        let lock = locks[Int((address >> 5 ^ address >> 11) & 63)]
        return lock.mutex.withLock { _ in UncheckedBox(body()) }.value
    }
}

/// The addresses of the contexts that exist.
///
/// Other threads find a context here without touching it, because it may be about to end. A weak reference is made only
/// when another thread asks: from then on, all counting of references to the context is several times as slow, and most
/// contexts live for one request to a server.
enum LiveContexts {
    private struct Reference {
        weak var context: NSManagedObjectContext?

        // If the compiler saw where the reference comes from, then it could leave out the question whether the context is
        // ending.
        @inline(never)
        init(_ context: NSManagedObjectContext) { self.context = context }
    }

    private static let addresses = Locked<Set<UInt>>([])

    static func enter(_ context: NSManagedObjectContext) {
        addresses.withLock { _ = $0.insert(UInt(bitPattern: ObjectIdentifier(context))) }
    }

    /// Called when the context ends; then none of its objects leads to it any more.
    static func leave(_ context: NSManagedObjectContext) {
        addresses.withLock { _ = $0.remove(UInt(bitPattern: ObjectIdentifier(context))) }
    }

    /// The context at an address that an object leads to; `nil` if the context is ending.
    ///
    /// The caller holds that object's lock, for which an ending context waits. So the context must not end here: the
    /// reference that is taken first leaves this method with the result, and the caller gives it up without the lock.
    static func context(at address: UnsafeMutableRawPointer) -> NSManagedObjectContext? {
        addresses.withLock { addresses in
            guard addresses.contains(UInt(bitPattern: address)) else { return nil }
            // The memory of a context that is listed is still there, because its end waits for this lock.
            let context = Unmanaged<NSManagedObjectContext>.fromOpaque(address).retain()
            // A weak reference to an object that is ending leads nowhere. Then no reference keeps the context.
            guard context._withUnsafeGuaranteedRef({ Reference($0) }).context != nil else {
                context.release()
                return nil
            }
            return context.takeRetainedValue()
        }
    }
}
