/// A context's place in a tree: the way up to its parent, the way down to its children, and what they need not be told.
///
/// Invariants:
/// - The way up is set before the context has objects, and leads to the root by a finite number of steps.
/// - A context without children notes nothing for them.
///
/// The way down may be used on any thread, and so may the way up, which is set before anybody else knows the context.
/// The rest is confined to the context's queue.
final class TreeLink {
    /// The way to the parent; `nil` for a context on the coordinator.
    var upward: ParentLink?
    /// What children have to know on threads of their own.
    let downward = ChildrenLink()
    /// What a child need not be told of when it saves: of the rows that its tree has changed or merged itself.
    var acceptedVersions = AcceptedVersions()

    init() {}

    /// Stops a debug build if something in the place in the tree contradicts the rest.
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
    /// The way to the parent; `nil` for a context on the coordinator.
    final var upward: ParentLink? {
        @inline(__always) get { tree.upward }
    }

    /// What children have to know on threads of their own.
    final var downward: ChildrenLink {
        @inline(__always) get { tree.downward }
    }
}
