import Synchronization

/// What a child context knows of its parent, and of objects that only its tree has so far.
///
/// Confined to the child's queue, but for `parent`, which is constant.
final class ParentLink {
    let parent: NSManagedObjectContext
    /// The IDs of unsaved objects that the parent has, as far as this context has met them: by their temporary keys.
    ///
    /// They lead to permanent ones when the root saves, and that is how the child learns of it.
    var foreignIDs: [Int64: NSManagedObjectID] = [:]
    /// Objects here whose rows or relationships name foreign objects by temporary keys.
    private(set) var mentions: [ObjectIdentifier: NSManagedObject] = [:]
    /// The tree's count of promotions when the foreign IDs were last looked at.
    var seenPromotions: UInt64 = 0
    /// What ``ParentLink/stamp(_:)`` was when faults were last given rows in advance; `nil` if they have none that
    /// count.
    var prefetchStamp: UInt64?
    /// How often this context has gone up, for whatever reason.
    var visits: UInt64 = 0
    /// The context at the top, which alone makes keys permanent by saving.
    let root: NSManagedObjectContext

    init(_ parent: NSManagedObjectContext) {
        self.parent = parent
        root = parent.upward?.root ?? parent
        // Whoever knows no foreign object has missed nothing.
        seenPromotions = root.downward.promotions.count
    }

    /// A number that stays the same only as long as everything above answers as it did.
    func stamp(_ stores: [OpenStore]) -> UInt64 {
        var sum = parent.downward.state
        var link = parent.upward
        while let current = link {
            sum &+= current.parent.downward.state
            link = current.parent.upward
        }
        for store in stores { sum &+= store.cache.commits }
        return sum
    }

    func noteMention(_ object: NSManagedObject) { mentions[ObjectIdentifier(object)] = object }

    /// Goes through the objects that name foreign ones, and forgets those that do no longer.
    func filterMentions(_ stillNames: (NSManagedObject) -> Bool) { mentions = mentions.filter { stillNames($0.value) } }

    /// Forgets all objects, which the context has let go of.
    func forgetAll() {
        foreignIDs = [:]
        mentions = [:]
        prefetchStamp = nil
    }
}

/// What a context tells its children, who ask on threads of their own.
///
/// Any thread may call any member.
final class ChildrenLink: Sendable {
    private struct Follower {
        weak var context: NSManagedObjectContext?
    }

    private let hasChild = Atomic(false)
    private let stateCount = Atomic<UInt64>(0)
    private let followers = Mutex<[Follower]>([])
    /// Of a root: the unsaved objects of the tree that have become permanent.
    let promotions = KeyPromotions()

    init() {}

    /// Whether the context has been made a parent.
    var hasChildren: Bool { hasChild.load(ordering: .acquiring) }

    func noteChild() { hasChild.store(true, ordering: .releasing) }

    /// A number that changes whenever an object of the context does.
    var state: UInt64 { stateCount.load(ordering: .acquiring) }

    /// Notes that an object has changed, so that rows which children got before may be outdated.
    ///
    /// Called inside the context's scope.
    @inline(__always)
    func noteState() {
        if hasChild.load(ordering: .relaxed) { stateCount.wrappingAdd(1, ordering: .releasing) }
    }

    /// Lets a child merge what is saved into or by the context.
    func follow(_ child: NSManagedObjectContext, _ follows: Bool) {
        followers.withLock { followers in
            followers.removeAll { $0.context == nil || $0.context === child }
            if follows { followers.append(Follower(context: child)) }
        }
    }

    /// Enqueues a message with the children that follow, but not with the one that it comes from, nor with those that
    /// the collector serves.
    func tellFollowers(
        _ message: ChangeMessage,
        except child: NSManagedObjectContext? = nil,
        _ collector: SaveCollector? = nil
    ) {
        guard hasChildren else { return }
        for follower in followers.withLock({ $0.compactMap(\.context) })
        where follower !== child && collector?.serves(follower) != true {
            follower.enqueueMerge(message)
        }
    }
}

/// Counts the times when temporary IDs of a tree have become permanent, so that its contexts look only then.
///
/// Any thread may call any member.
final class KeyPromotions: Sendable {
    private let number = Atomic<UInt64>(0)

    var count: UInt64 { number.load(ordering: .sequentiallyConsistent) }

    /// Runs `body`, which makes IDs permanent.
    ///
    /// Counts before and after: whoever sees one of the IDs permanent sees another count than before, and whoever
    /// looked while only some were permanent looks again.
    func promote(_ body: () -> Void) {
        number.wrappingAdd(1, ordering: .sequentiallyConsistent)
        body()
        number.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }
}
