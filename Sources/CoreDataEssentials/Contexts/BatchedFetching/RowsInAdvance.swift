/// The rows that reads have brought before they were asked for, and how long faults may be filled with them.
///
/// Invariants:
/// - Only the latest few of the fetches that read batch by batch are remembered. A fetch that has read everything is
///   forgotten.
///
/// This is confined to the context's queue. Members call nothing, so no access lasts while other code runs.
struct RowsInAdvance {
    /// The moments at which faults were given rows in advance, by store.
    private(set) var prefetches: [Prefetch] = []
    /// The latest fetches whose faults get their rows batch by batch.
    private(set) var batchedFetches: [BatchedFetch] = []
    /// How many outdated rows are read again at once.
    var renewal = RowRenewal()
    /// The members that the root of a tree is about to hand down to a child.
    var foreseen: ForeseenMembers?

    private static let batchedFetchLimit = 8

    init() {}

    // MARK: - Prefetches

    /// Makes room for the note about a store.
    mutating func reserve(storeIndex: Int) {
        while prefetches.count <= storeIndex { prefetches.append(Prefetch()) }
    }

    /// Notes the moment at which faults of a store were given their rows.
    mutating func recordPrefetch(_ prefetch: Prefetch, storeIndex: Int) { prefetches[storeIndex] = prefetch }

    /// Marks all rows that were brought before as no longer the newest.
    mutating func outdate() { prefetches = prefetches.map(\.outdated) }

    /// Forgets which rows were brought, since the context no longer reads from those stores.
    mutating func forgetPrefetches() { prefetches = [] }

    // MARK: - Batched fetches

    /// Remembers a fetch whose faults get their rows batch by batch.
    ///
    /// Only the latest fetches are remembered: the faults of older fetches are filled one by one.
    mutating func remember(_ fetch: BatchedFetch) {
        if batchedFetches.count >= Self.batchedFetchLimit { batchedFetches.removeFirst() }
        batchedFetches.append(fetch)
    }

    /// Forgets a fetch that has read all its batches.
    mutating func forget(_ fetch: BatchedFetch) { batchedFetches.removeAll { $0 === fetch } }

    /// Replaces the remembered fetches by those that still have an object.
    mutating func keepFetches(_ rest: [BatchedFetch]) { batchedFetches = rest }

    /// Stops a debug build if too many fetches are remembered.
    func checkInvariants() {
        #if DEBUG
        assert(batchedFetches.count <= Self.batchedFetchLimit, "CoreData: too many batched fetches are remembered.")
        #endif
    }
}

/// The moment at which faults of one store were given their rows in advance.
///
/// As long as the store has seen no save since, those rows are the newest.
struct Prefetch {
    /// The store; `nil` before the first fetch.
    ///
    /// The coordinator holds it: the context holds the coordinator, and the coordinator never drops a store that it
    /// has had. The context itself holds a pinned version, and drops this value first.
    private var store: Unmanaged<OpenStore>?
    private var commits: UInt64 = 0

    init() {}

    init(_ store: OpenStore, _ commits: UInt64) {
        self.store = Unmanaged.passUnretained(store)
        self.commits = commits
    }

    /// The same moment after the context has moved to another version: rows read before are no longer the newest.
    var outdated: Prefetch {
        guard let store else { return self }
        return Prefetch(store._withUnsafeGuaranteedRef { $0.base }, .max)
    }

    var hasBegun: Bool { store != nil }

    func began(at commits: UInt64) -> Bool { hasBegun && self.commits == commits }

    /// Whether the store is open and has seen no save since.
    @inline(__always)
    var isCurrent: Bool {
        guard let store else { return false }
        return store._withUnsafeGuaranteedRef { $0.isOpen && $0.cache.commits == commits }
    }
}
