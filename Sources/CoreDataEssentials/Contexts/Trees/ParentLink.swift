import StrataLocks
import Synchronization

/// The link from a child context to its parent, with the objects that only its tree has so far.
///
/// Confined to the child's queue, except for `parent`, which is constant.
package final class ParentLink {
    let parent: NSManagedObjectContext
    /// The IDs of unsaved objects of the parent that this context has met, by their temporary keys.
    ///
    /// When the root saves, the IDs become permanent, and so the child learns the permanent keys.
    var foreignIDs: [Int64: NSManagedObjectID] = [:]
    /// Objects of this context whose rows or relationships name foreign objects by temporary keys.
    ///
    /// Objects that are not in use are released as if they were not listed. So the next fetch reads them anew.
    private var mentions: [ObjectIdentifier: Mention] = [:]
    /// The number of mentions at which those of released objects are removed.
    private var mostMentions = 64
    /// The tree's count of promotions when the foreign IDs were last checked.
    var seenPromotions: UInt64 = 0
    /// The ``ParentLink/stamp(_:)`` when faults were last given rows in advance; `nil` if no such rows are valid.
    var prefetchStamp: UInt64?
    /// The number of times that this context has entered its parent, for any reason.
    var visits: UInt64 = 0
    /// The context at the top; only its saves make keys permanent.
    let root: NSManagedObjectContext

    private struct Mention {
        weak var object: NSManagedObject?
    }

    init(_ parent: NSManagedObjectContext) {
        self.parent = parent
        root = parent.upward?.root ?? parent
        // A context without foreign objects does not need earlier promotions.
        seenPromotions = root.downward.promotions.count
    }

    /// A number that stays the same only as long as all contexts and stores above give the same answers.
    func stamp(_ stores: [OpenStore]) -> UInt64 {
        var sum = parent.downward.state
        var link = parent.upward
        while let current = link {
            sum &+= current.parent.downward.state
            link = current.parent.upward
        }
        // The numbers are mixed, because they are not only growing ones: while a commit is pending, each is another one.
        for store in stores { sum = sum &* 0x9E37_79B9_7F4A_7C15 &+ store.cache.commits }
        return sum
    }

    /// Notes an object that names foreign ones: amortised O(1).
    func addMention(_ object: NSManagedObject) {
        mentions[ObjectIdentifier(object)] = Mention(object: object)
        guard mentions.count >= mostMentions else { return }
        mentions = mentions.filter { $0.value.object != nil }
        mostMentions = max(64, mentions.count * 2)
    }

    /// Checks the objects that name foreign ones, and forgets those that no longer do.
    func filterMentions(_ stillNames: (NSManagedObject) -> Bool) {
        mentions = mentions.filter { $0.value.object.map(stillNames) ?? false }
    }

    /// Forgets all objects, after the context has released them.
    func forgetAll() {
        foreignIDs = [:]
        mentions = [:]
        prefetchStamp = nil
    }
}

/// Information of a context for its children, which read it on their own threads.
///
/// Any thread may call any member.
final class ChildrenLink: Sendable {
    private struct Follower {
        weak var context: NSManagedObjectContext?
    }

    private let hasChild = AtomicCell(false)
    private let stateCount = AtomicCell<UInt64>(0)
    private let followers = Locked<[Follower]>([])
    /// The count of promotions in the tree; only that of the root is used.
    let promotions = KeyPromotions()

    init() {}

    /// Whether the context has been made a parent.
    var hasChildren: Bool { hasChild.load(ordering: .acquiring) }

    func markAsParent() { hasChild.store(true, ordering: .releasing) }

    /// A number that changes whenever an object of the context changes.
    var state: UInt64 { stateCount.load(ordering: .acquiring) }

    /// Notes that an object has changed, so that rows which children have read before may be outdated.
    ///
    /// Called inside the context's scope.
    @inline(__always)
    func countStateChange() {
        if hasChild.load(ordering: .relaxed) { stateCount.wrappingAdd(1, ordering: .releasing) }
    }

    /// Starts or stops merging the context's saves, and saves into the context, into a child.
    func follow(_ child: NSManagedObjectContext, _ follows: Bool) {
        let held = followers.withLock { followers in
            // No child ends here, where the lock is taken: all are held until it is free.
            let held = followers.compactMap(\.context)
            followers.removeAll { $0.context == nil || $0.context === child }
            if follows { followers.append(Follower(context: child)) }
            return held
        }
        withExtendedLifetime(held) {}
    }

    /// Enqueues a message with the children that follow.
    ///
    /// The child that the message comes from is left out, and so are contexts that the collector serves.
    func notifyFollowers(
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

/// Counts changes of temporary IDs of a tree into permanent ones, so that its contexts check only after changes.
///
/// Any thread may call any member.
final class KeyPromotions: Sendable {
    private let number = AtomicCell<UInt64>(0)

    var count: UInt64 { number.load(ordering: .sequentiallyConsistent) }

    /// Runs `body`, which makes IDs permanent.
    ///
    /// The count is raised before and after. So a thread that finds one of the IDs permanent finds another count than
    /// before. A thread that looked while only some were permanent looks again.
    func promote(_ body: () -> Void) {
        number.wrappingAdd(1, ordering: .sequentiallyConsistent)
        body()
        number.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }
}
