import Foundation
import StrataLocks
import StrataRows

/// The waits between contexts and coordinators: a running block of one waits for the queue of another.
///
/// If a block waits, directly or through others, for the queue that it occupies itself, none of them will ever go on.
/// This is detected when the last of them begins to wait. The program then stops with a message that names all of them,
/// instead of hanging.
///
/// A call from outside all scopes records nothing and takes no lock, since no other call can wait for its caller. Any
/// other call takes one mutex twice; no other lock is taken while it is held. Waits by other means (semaphores, other
/// queues) are not detected.
package enum WaitGraph {
    /// Identifies a queue; all contexts of the main queue have the same node.
    typealias Node = ObjectIdentifier

    /// One wait for a queue.
    private struct Wait: @unchecked Sendable {
        // @unchecked Sendable: contexts, coordinators, and the token of the main queue; all of them are Sendable.
        let waiter: AnyObject
        let target: AnyObject
        /// Whether visitors may enter the waiter's scope meanwhile.
        ///
        /// They may if the waiter is in a call by the program, which could do the same, and not during an operation of
        /// the framework.
        var isOpen: Bool
        /// The visit that the waiter wants to make, if its block is an internal one.
        let visit: Visit?
    }

    /// The waits by the node of the waiter, whose blocks run one at a time and wait for one queue at a time.
    private static let waits = Locked<[Node: Wait]>([:])

    /// Runs `body` on `queue` and waits for it.
    ///
    /// Stops the program if that wait could never end.
    ///
    /// - Parameters:
    ///   - queue: The queue that the body runs on.
    ///   - target: The owner of the queue.
    ///   - gate: The gate that the body has to pass, if there is one.
    ///   - stack: The scopes that the caller is in, which stay occupied until the call returns.
    ///   - entry: The way in which the scope is entered.
    ///   - body: The code to run.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body.
    static func sync<T>(
        on queue: DispatchQueue,
        of target: AnyObject,
        gate: ScopeGate?,
        stack: ConfinementScope.Stack,
        as entry: ConfinementScope.Entry = .call,
        _ body: () throws -> T
    ) rethrows -> T {
        guard !stack.isEmpty else {
            return try Schedule.sync(on: queue) {
                gate?.enter()
                defer { gate?.leave() }
                return try body()
            }
        }
        let held = begin(waitingFor: target, occupied: stack.occupied(duringOperation: entry == .ascent), visit: nil)
            .held
        return try Schedule.sync(on: queue) {
            gate?.enter()
            defer { gate?.leave() }
            // The turn has come, so the wait ends now: when this block ends, the queue already serves the next one.
            waits.withLock { waits in
                for node in held { waits[node] = nil }
            }
            return try body()
        }
    }

    /// Runs `body` inside the scope of `parent`, for an internal block of a child.
    ///
    /// Normally it runs when its turn comes between the blocks of the parent. But a block there may wait, directly or
    /// through others, for the queue that the internal block occupies. Then the turn would not come before the internal
    /// block has ended. In that case the body runs at once, inside the scope of the waiting call, as if that call had
    /// asked the parent itself.
    static func visit<T, Failure: Error>(
        _ parent: NSManagedObjectContext,
        _ body: () throws(Failure) -> T
    ) throws(Failure) -> T {
        var result: Result<T, Failure>?
        func run() {
            do throws(Failure) { result = .success(try body()) } catch { result = .failure(error) }
        }
        MainQueue.keepingTrack { carryOut(in: parent, ConfinementScope.stack, run) }
        guard let result else { fatalError("CoreData: a visit to \(parent.describedName) was not made.") }
        return try result.get()
    }

    private static func carryOut(
        in parent: NSManagedObjectContext,
        _ stack: ConfinementScope.Stack,
        _ body: () -> Void
    ) {
        let submitted = SlowOperationLog.submission(to: parent)
        withoutActuallyEscaping(body) { body in
            let visit = Visit { parent.runTurn(.performAndWait, submitted: submitted, stack: $0, as: .ascent, body) }
            defer { visit.forget() }
            guard !begin(waitingFor: parent, occupied: stack.occupied(duringOperation: true), visit: visit).isGranted
            else {
                return borrow(parent, stack: stack, visit: visit)
            }
            if let gate = parent.gate {
                if gate.enter(visit) { end(visit) } else { visit.sleep() }
                guard !isGranted(visit) else { return borrow(parent, stack: stack, visit: visit) }
                visit.run(within: stack)
                gate.leave()
            } else {
                let watch = MainQueueWatch.begin(parent)
                parent.queue.async {
                    guard end(visit) else { return }
                    watch?.end()
                    visit.run(within: stack)
                    visit.awake()
                }
                visit.sleep()
                watch?.end()
                if isGranted(visit) { borrow(parent, stack: stack, visit: visit) }
            }
        }
    }

    private static func isGranted(_ visit: Visit) -> Bool { waits.withLock { _ in visit.isGranted } }

    /// Makes a visit inside a scope whose occupant waits for the visitor.
    private static func borrow(
        _ parent: NSManagedObjectContext,
        stack: ConfinementScope.Stack,
        visit: Visit
    ) {
        let node = node(of: parent)
        if node == Node(MainQueue.token) {
            // The main queue's scope includes those of all contexts of the main queue.
            ConfinementScope.enter(MainQueue.token, within: stack) { visit.run(within: ConfinementScope.stack) }
        } else {
            visit.run(within: stack)
        }
        waits.withLock { $0[node]?.isOpen = true }
    }

    /// Notes a wait, and stops the program if it closes a ring that cannot be resolved.
    ///
    /// If there is a visit in the ring that can be granted, the first such visit is granted, and its visitor waits no
    /// more.
    ///
    /// - Returns: The nodes that wait from now on, and whether the wait is a visit that was granted.
    private static func begin(
        waitingFor target: AnyObject,
        occupied: [(owner: AnyObject, isDuringOperation: Bool)],
        visit own: Visit?
    ) -> (held: [Node], isGranted: Bool) {
        let goal = node(of: target)
        let all = occupied.map { scope in
            let wait = Wait(waiter: scope.owner, target: target, isOpen: !scope.isDuringOperation, visit: own)
            return (node: node(of: scope.owner), wait: wait)
        }
        var held: [Node] = []
        var isGranted = false
        let deadlock = waits.withLock { waits -> [Wait]? in
            // A scope that is lent to a visitor waits already, and continues to.
            for (node, wait) in all where waits[node] == nil {
                waits[node] = wait
                held.append(node)
            }
            own?.held = held
            let way = cycle(from: goal, backTo: all.map(\.node)) { waits[$0].map { node(of: $0.target) } }
            guard let way else { return nil }
            let ring = [all[0].wait] + way.compactMap { waits[$0] }
            for case (let visit?, let host) in ring.map({ ($0.visit, node(of: $0.target)) })
            where waits[host]?.isOpen == true {
                end(visit, &waits)
                visit.isGranted = true
                // A scope is lent to one visitor at a time.
                waits[host]?.isOpen = false
                if visit === own { isGranted = true } else { visit.awake() }
                return nil
            }
            return ring
        }
        if let deadlock { stop(deadlock) }
        return (held, isGranted)
    }

    /// Removes a visit from the waits, and returns whether it was among them.
    @discardableResult
    static func end(_ visit: Visit) -> Bool { waits.withLock { end(visit, &$0) } }

    @discardableResult
    private static func end(_ visit: Visit, _ waits: inout [Node: Wait]) -> Bool {
        guard visit.isOpen else { return false }
        visit.isOpen = false
        for node in visit.held { waits[node] = nil }
        return true
    }

    /// The way from `goal` back to one of the `held` nodes, along the waits, if there is one.
    ///
    /// - Parameters:
    ///   - goal: The queue that a call is about to wait for.
    ///   - held: The queues that the call occupies.
    ///   - next: Returns the node for which a node waits.
    /// - Returns: The nodes of the way, `goal` first; `nil` if there is no such way.
    static func cycle(from goal: Node, backTo held: [Node], _ next: (Node) -> Node?) -> [Node]? {
        var way: [Node] = []
        var node = goal
        while !held.contains(node) {
            // Other rings were found when they were closed.
            guard !way.contains(node), let following = next(node) else { return nil }
            way.append(node)
            node = following
        }
        return way
    }

    private static func node(of owner: AnyObject) -> Node {
        if let context = owner as? NSManagedObjectContext, context.concurrencyType == .mainQueueConcurrencyType {
            return Node(MainQueue.token)
        }
        return Node(owner)
    }

    // MARK: - Reporting

    /// The current waits, one sentence for each; any thread may ask.
    package static var waitingNow: [String] {
        let now = waits.withLock { Array($0.values) }
        return now.map { "\(describe($0.waiter)) waits for \(describe($0.target))" }.sorted()
    }

    // MARK: - Stopping

    private static func stop(_ ring: [Wait]) -> Never {
        let links = ring.map { "\(describe($0.waiter)) waits for \(describe($0.target))" }
        fatalError(
            """
            CoreData: deadlock: \(links.joined(separator: ", ")). Each occupies its queue until the next \
            one's is free, so none would ever go on. Wait in one direction only, from a child for its parent and from \
            a context for its coordinator; the other way use perform, which does not wait.
            """
        )
    }

    private static func describe(_ owner: AnyObject) -> String {
        switch owner {
        case let context as NSManagedObjectContext: return context.describedName
        case let coordinator as NSPersistentStoreCoordinator:
            return coordinator.name.map { "coordinator \"\($0)\"" } ?? "the coordinator"
        default: return "the main queue"
        }
    }
}
