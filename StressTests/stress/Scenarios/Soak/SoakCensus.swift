import CoreData
import StrataLocks
import Synchronization

/// A context that is counted as long as it lives.
final class CountedContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: as its superclass, to which it adds no state.
    override init(concurrencyType: NSManagedObjectContextConcurrencyType) {
        super.init(concurrencyType: concurrencyType)
        SoakCensus.count(1)
    }

    deinit { SoakCensus.count(-1) }

    /// One on a coordinator.
    convenience init(_ stack: NSPersistentStoreCoordinator, _ policy: NSMergePolicy = .mergeByPropertyObjectTrump) {
        self.init(.privateQueue)
        persistentStoreCoordinator = stack
        mergePolicy = policy
    }

    /// One below another.
    convenience init(below parent: NSManagedObjectContext) {
        self.init(.privateQueue)
        self.parent = parent
    }
}

/// Who lives: contexts by number, and some of the objects that have come from them.
enum SoakCensus {
    private struct Trace: @unchecked Sendable {
        // @unchecked Sendable: all that is asked of the object is whether it lives.
        weak var object: NSManagedObject?
    }

    private static let number = Atomic(0)
    private static let traces = Locked<[Trace]>([])
    /// As many objects are kept in sight.
    private static let most = 2_000

    /// The contexts that live.
    static var contexts: Int { number.load(ordering: .relaxed) }

    static func count(_ change: Int) { number.add(change, ordering: .relaxed) }

    /// Keeps an object in sight, without holding it.
    static func follow(_ object: NSManagedObject) {
        traces.withLock { traces in
            if traces.count == most { traces.removeFirst(most / 2) }
            traces.append(Trace(object: object))
        }
    }

    /// Now that nobody works any more, everything has to go.
    static func judge(_ run: Run) {
        // What was started and not waited for may take another moment.
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
