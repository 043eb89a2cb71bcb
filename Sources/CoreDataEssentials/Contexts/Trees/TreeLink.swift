/// A context's place in a tree: the link up to its parent, the link down to its children, and accepted versions.
///
/// Invariants:
/// - The upward link is set before the context has objects, and leads to the root in a finite number of steps.
/// - A context without children notes nothing for them.
///
/// The downward link may be used on any thread. So may the upward link, which is set before other code knows the
/// context. The rest is confined to the context's queue.
final class TreeLink {
    /// The link to the parent; `nil` for a context on the coordinator.
    var upward: ParentLink?
    /// The information for children, which read it on their own threads.
    let downward = ChildrenLink()
    /// The versions of rows that this context has changed or merged itself; they are no conflict for a child that
    /// saves.
    var acceptedVersions = AcceptedVersions()

    init() {}

    /// Stops a debug build if parts of this object contradict each other.
    ///
    /// - Complexity: O(1).
    func checkInvariants() {
        #if DEBUG
        assert(
            downward.hasChildren || acceptedVersions.isEmpty,
            "CoreData: a context without children accepts versions."
        )
        guard let upward else { return }
        assert(upward.parent.downward.hasChildren, "CoreData: a parent does not know that it has a child.")
        assert(upward.root.upward == nil, "CoreData: a tree's root has a parent.")
        #endif
    }
}

extension NSManagedObjectContext {
    /// The link to the parent; `nil` for a context on the coordinator.
    package final var upward: ParentLink? {
        @inline(__always) get { tree.upward }
    }

    /// The information for children, which read it on their own threads.
    final var downward: ChildrenLink {
        @inline(__always) get { tree.downward }
    }
}
