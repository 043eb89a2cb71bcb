import StrataLocks
import StrataRows

/// Work of an internal block inside the scope of a context above, for which the block waits.
///
/// The work is done once, by the visitor itself or by the main queue. See ``WaitGraph/visit(_:_:)``.
final class Visit: @unchecked Sendable {
    // @unchecked Sendable: the wait graph's mutex guards `held`, `isOpen` and `isGranted`. `body` is run by the thread
    // that has closed the visit under that mutex, or to which the visit was granted. The visitor releases `body`; it
    // waits until then.

    /// The queues that the visitor occupies, and that wait with it.
    var held: [WaitGraph.Node] = []
    /// Whether the visit has not been made or granted yet.
    var isOpen = true
    /// Whether the visitor may make the visit in the scope of a block that waits.
    var isGranted = false
    private var body: ((ConfinementScope.Stack) -> Void)?
    private let turn = Waiter()

    init(_ body: @escaping (ConfinementScope.Stack) -> Void) { self.body = body }

    /// Runs the work; the visitor's scopes count as entered too.
    @inline(never)
    func run(within stack: ConfinementScope.Stack) { body?(stack) }

    /// Waits until the visitor's turn has come, or the visit was granted, or the work is done.
    func sleep() { turn.sleep() }

    /// Ends the visitor's sleep.
    func awake() { turn.call() }

    /// Releases the work, which belongs to the visitor.
    func forget() { body = nil }
}
