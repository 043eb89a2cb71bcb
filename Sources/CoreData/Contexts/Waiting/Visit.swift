import Foundation
import StrataRows

/// What a block that nobody has submitted does inside the scope of a context above, and waits for.
///
/// Made once, by the visitor itself, or else by the main queue. See ``WaitGraph/visit(_:_:)``.
final class Visit: @unchecked Sendable {
    // @unchecked Sendable: the wait graph's mutex guards `held`, `isOpen` and `isGranted`; `body` is run by the one who
    // has closed the visit under that mutex, or whom it was granted to, and let go of by the visitor, who waits until
    // then.

    /// The queues that the visitor occupies, and that wait with it.
    var held: [WaitGraph.Node] = []
    /// Whether the visit is still to be made.
    var isOpen = true
    /// Whether the visitor is to make it in the scope of a block that waits.
    var isGranted = false
    private var body: ((ConfinementScope.Stack) -> Void)?
    private let turn = DispatchSemaphore(value: 0)

    init(_ body: @escaping (ConfinementScope.Stack) -> Void) { self.body = body }

    /// Makes the visit, in the visitor's scopes besides.
    // Not inlined: when it returns nothing may hold the body any more, which must not outlive the visitor's call.
    @inline(never)
    func run(within stack: ConfinementScope.Stack) { body?(stack) }

    /// Waits until the visitor's turn has come, or the visit was granted, or made.
    func sleep() { turn.wait() }

    /// Ends the visitor's sleep.
    func awake() { turn.signal() }

    /// Lets go of what is to be done, which belongs to the visitor.
    func forget() { body = nil }
}
