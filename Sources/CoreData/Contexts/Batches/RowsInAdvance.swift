/// The rows that reads have brought before somebody asked for them: what faults may be filled with, and up to when.
///
/// Invariants:
/// - Of the fetches that read batch by batch only the latest few are remembered, and none of which everything is read.
///
/// Confined to the context's queue. Members call nothing, so no access lasts while other code runs.
struct RowsInAdvance {
    /// When faults were given rows in advance, by store.
    private(set) var prefetches: [Prefetch] = []
    /// The latest fetches whose faults get their rows batch by batch.
    private(set) var batchedFetches: [BatchedFetch] = []
    /// Of the root of a tree: members that are being handed down.
    var foreseen: ForeseenMembers?

    private static let batchedFetchLimit = 8

    init() {}

    // MARK: - Prefetches

    /// Makes room for what is noted of a store.
    mutating func reserve(storeIndex: Int) {
        while prefetches.count <= storeIndex { prefetches.append(Prefetch()) }
    }

    /// Notes when faults of a store were given their rows.
    mutating func note(_ prefetch: Prefetch, storeIndex: Int) { prefetches[storeIndex] = prefetch }

    /// Lets no row that was brought before count as the newest.
    mutating func outdate() { prefetches = prefetches.map(\.outdated) }

    /// Forgets which rows were brought, as nothing is read from those stores any more.
    mutating func forgetPrefetches() { prefetches = [] }

    // MARK: - Batched fetches

    /// Remembers a fetch whose faults get their rows batch by batch.
    ///
    /// Only the latest are remembered: the faults of others are filled one by one.
    mutating func remember(_ fetch: BatchedFetch) {
        if batchedFetches.count >= Self.batchedFetchLimit { batchedFetches.removeFirst() }
        batchedFetches.append(fetch)
    }

    /// Forgets a fetch that has read everything.
    mutating func forget(_ fetch: BatchedFetch) { batchedFetches.removeAll { $0 === fetch } }

    /// Replaces the remembered fetches by those of which an object is left.
    mutating func keepFetches(_ rest: [BatchedFetch]) { batchedFetches = rest }

    /// Stops a debug build if more fetches are remembered than should be.
    func checkInvariants() {
        #if DEBUG
        assert(batchedFetches.count <= Self.batchedFetchLimit, "CoreData: too many batched fetches are remembered.")
        #endif
    }
}

/// The moment at which faults of one store were given their rows in advance: as long as the store has seen no save
/// since, those rows are the newest.
struct Prefetch {
    /// `nil` before the first fetch.
    ///
    /// Held by the coordinator, which the context holds and which never drops the stores that it has had; a version
    /// by the context itself, which forgets this first.
    private var store: Unmanaged<OpenStore>?
    private var commits: UInt64 = 0

    init() {}

    init(_ store: OpenStore, _ commits: UInt64) {
        self.store = Unmanaged.passUnretained(store)
        self.commits = commits
    }

    /// As it was before the context moved to another version: what was read then is not the newest.
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
