import CoreData
import StrataLocks
import Synchronization

/// A context that is counted while it lives.
final class CountedContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: like its superclass, to which it adds no state.
    override init(concurrencyType: NSManagedObjectContextConcurrencyType) {
        super.init(concurrencyType: concurrencyType)
        SoakCensus.count(1)
    }

    deinit { SoakCensus.count(-1) }

    /// Makes a context on a coordinator.
    convenience init(_ stack: NSPersistentStoreCoordinator, _ policy: NSMergePolicy = .mergeByPropertyObjectTrump) {
        self.init(.privateQueue)
        persistentStoreCoordinator = stack
        mergePolicy = policy
    }

    /// Makes a child of a context.
    convenience init(below parent: NSManagedObjectContext) {
        self.init(.privateQueue)
        self.parent = parent
    }
}

/// Counts the living contexts, and watches some of their objects.
enum SoakCensus {
    private struct Trace: @unchecked Sendable {
        // @unchecked Sendable: the object is only checked for being alive.
        weak var object: NSManagedObject?
    }

    private static let number = Atomic(0)
    private static let traces = Locked<[Trace]>([])
    /// The number of objects that are watched at most.
    private static let most = 2_000

    /// The number of living contexts.
    static var contexts: Int { number.load(ordering: .relaxed) }

    static func count(_ change: Int) { number.add(change, ordering: .relaxed) }

    /// Watches an object without holding it.
    static func follow(_ object: NSManagedObject) {
        traces.withLock { traces in
            if traces.count == most { traces.removeFirst(most / 2) }
            traces.append(Trace(object: object))
        }
    }

    /// Demands that every context and every watched object is gone after the work.
    static func judge(_ run: Run) {
        // Work that was started and not awaited may take another moment.
        var tries = 0
        while contexts > 0 || living > 0, tries < 500 {
            usleep(10_000)
            tries += 1
        }
        if contexts > 0 { run.find("live contexts: \(contexts) are left when the work is done") }
        if living > 0 { run.find("\(living) objects outlive their contexts though nobody holds them") }
    }

    private static var living: Int { traces.withLock { $0.count { $0.object != nil } } }
}
