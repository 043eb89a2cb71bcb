import StrataLocks
import StrataPredicates

/// What all parts of a model share: they can be changed until the model is frozen, and never after.
///
/// A model is built on one thread. When a coordinator takes it, it is frozen, and from then on any thread may read it
/// with no lock, since nothing in it can change.
protocol ModelElement: AnyObject {
    /// Whether the model this belongs to is in use by a coordinator.
    var isFrozen: Bool { get }

    /// What a message calls this part of the model: `entity "Venue"`.
    var subject: String { get }
}

extension ModelElement {
    /// Traps when the model is in use.
    ///
    /// Called by every setter before it changes anything.
    func assertMutable(_ member: StaticString = #function) {
        guard !isFrozen else {
            // `fatalError` and not `preconditionFailure`: the message must show in release builds too.
            fatalError(
                "\(member) of \(subject) was set, but its model is in use by a coordinator and cannot be changed; "
                    + "change a copy (`model.copy()`) before you create the coordinator."
            )
        }
    }
}

/// A part of a model that others may link to.
protocol LinkTarget: AnyObject {
    /// Lives exactly as long as the part itself.
    var anchor: LinkAnchor { get }
}

/// What weak references to a part of a model point at in its place.
///
/// A weak reference moves the counts of what it points at to a place where counting is slow, for good; and each object
/// that is made of an entity counts the entity.
final class LinkAnchor {
    /// The part whose anchor this is, once somebody has linked to it.
    unowned(unsafe) fileprivate(set) var part: AnyObject?
}

/// A link from one part of a model to another part that does not own it.
///
/// Weak while the model is being built, so that a model can be dropped. Strong once it is frozen: frozen models are
/// immortal, so the cycle costs nothing, and a reader saves the weak reference's bookkeeping.
final class ModelLink<Target: LinkTarget> {
    private weak var loose: LinkAnchor?
    private let fixed = OnceReference<Target>()

    /// What the link points at; `nil` when unset, and when the target is gone before the model was frozen.
    var target: Target? {
        get { fixed.load() ?? looseTarget }
        set {
            newValue?.anchor.part = newValue
            loose = newValue?.anchor
        }
    }

    // The anchor of a `Target` names that alone.
    private var looseTarget: Target? { loose?.part.map { unsafeDowncast($0, to: Target.self) } }

    /// Makes the link permanent.
    func freeze() {
        guard let looseTarget else { return }
        _ = fixed.storeIfNil(looseTarget)
    }
}
