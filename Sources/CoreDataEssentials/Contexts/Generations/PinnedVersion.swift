/// The version of the stores that a context sees: the newest, or the one that it is pinned to.
///
/// Invariants:
/// - There are stores of a version only as long as the context is pinned.
/// - Each store that is seen is at its own index.
///
/// Confined to the context's queue. Members call no other code, so no access to a version lasts while other code runs.
struct PinnedVersion {
    /// The generation that the context is pinned to; `nil` if it sees the newest.
    private(set) var generation: PinnedGeneration?
    /// The stores of the generation, from the first read on.
    private(set) var stores: PinnedStores?
    /// Whether reads see the newest data although the context is pinned, since a conflict is being resolved.
    var seesNewest = false
    /// The stores by index as the context sees them, as far as they were needed.
    private(set) var seenStores: [OpenStore] = []

    init() {}

    /// Notes the next store that is seen.
    mutating func addSeen(_ store: OpenStore) { seenStores.append(store) }

    /// Forgets which stores are seen, so that they are determined again.
    mutating func forgetSeen() { seenStores = [] }

    /// Moves to a generation that has not been read yet, or to the newest data.
    mutating func move(to generation: PinnedGeneration?) {
        self.generation = generation
        stores = nil
        seenStores = []
    }

    /// Makes the context see a generation's stores from now on.
    mutating func see(_ stores: PinnedStores) {
        self.stores = stores
        seenStores = []
    }

    /// Stops a debug build if the stores that are seen contradict the generation.
    ///
    /// - Complexity: O(number of stores).
    func checkInvariants() {
        #if DEBUG
        assert(generation != nil || stores == nil, "CoreData: a context that is not pinned keeps a version.")
        assert(seenStores.indices.allSatisfy { seenStores[$0].index == $0 }, "CoreData: a store is not at its index.")
        #endif
    }
}
