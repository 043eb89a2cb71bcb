import StrataLocks
import StrataPredicates

/// A part of a model, which can be changed until the model is frozen, and never after.
///
/// A model is built on one thread. When a coordinator takes it, it is frozen. After that any thread may read it without
/// a lock, because no part of it can change.
protocol ModelElement: AnyObject {
    /// Whether the model of this part is in use by a coordinator.
    var isFrozen: Bool { get }

    /// The name of this part of the model in messages: `entity "Venue"`.
    var subject: String { get }
}

extension ModelElement {
    /// Stops the program if the model is in use.
    ///
    /// Called by every setter before it changes anything.
    func assertMutable(_ member: StaticString = #function) {
        guard !isFrozen else {
            // `fatalError` is used instead of `preconditionFailure`, because the message must also appear in release
            // builds.
            fatalError(
                "\(member) of \(subject) was set, but its model is in use by a coordinator and cannot be changed; "
                    + "change a copy (`model.copy()`) before you create the coordinator."
            )
        }
    }
}

/// A part of a model to which other parts may link.
protocol LinkTarget: AnyObject {
    /// The anchor, which lives exactly as long as the part itself.
    var anchor: LinkAnchor { get }
}

/// The target of weak references to a part of a model, in place of the part itself.
///
/// A weak reference permanently moves the reference counts of its target to a place where counting is slow; and each
/// object of an entity counts a reference to the entity.
final class LinkAnchor {
    /// The part of this anchor, once another part has linked to it.
    unowned(unsafe) fileprivate(set) var part: AnyObject?
}

/// A link from one part of a model to another part that does not own it.
///
/// The link is weak while the model is being built, so that a model can be freed. It is strong once the model is
/// frozen: frozen models are immortal, so the cycle has no cost, and readers do not pay for a weak reference.
final class ModelLink<Target: LinkTarget> {
    private weak var loose: LinkAnchor?
    private let fixed = OnceReference<Target>()

    /// The target of the link; `nil` if it is unset, or the target was freed before the model was frozen.
    var target: Target? {
        get { fixed.load() ?? looseTarget }
        set {
            newValue?.anchor.part = newValue
            loose = newValue?.anchor
        }
    }

    // The anchor of a `Target` only refers to that `Target`.
    private var looseTarget: Target? { loose?.part.map { unsafeDowncast($0, to: Target.self) } }

    /// Makes the link permanent.
    func freeze() {
        guard let looseTarget else { return }
        _ = fixed.storeIfNil(looseTarget)
    }
}
