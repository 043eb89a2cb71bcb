import Foundation
import StrataRows
import Synchronization

/// Who waits for whom: contexts and coordinators whose running block waits for another one's queue.
///
/// If a block waits, by way of others, for the queue that it occupies itself, none of them will ever go on. That is
/// found at the moment when the last of them begins to wait, and the program stops with the chain spelled out instead
/// of hanging.
///
/// A call from outside all scopes writes nothing down and takes no lock, since nobody can wait for its caller.
/// Otherwise it takes one mutex, a leaf, twice. Waiting by other means (semaphores, other queues) cannot be seen
/// here.
package enum WaitGraph {
    /// Stands for a queue: contexts of the main queue share theirs.
    typealias Node = ObjectIdentifier

    /// A queue that somebody waits for.
    private struct Wait: @unchecked Sendable {
        // @unchecked Sendable: contexts, coordinators, and what stands for the main queue; all of them are Sendable.
        let waiter: AnyObject
        let target: AnyObject
        /// Whether others may enter the waiter's scope meanwhile: it is in a call, which may do so itself, and not amid
        /// an operation of the framework.
        var isOpen: Bool
        /// What the waiter is to do, if nobody has submitted its block.
        let visit: Visit?
    }

    /// By the node of the waiter, whose blocks run one at a time and wait for one queue at a time.
    private static let waits = Mutex<[Node: Wait]>([:])

    /// Runs `body` on `queue` and waits for it.
    ///
    /// Stops the program if that wait could never end.
    ///
    /// - Parameters:
    ///   - queue: What the body runs on.
    ///   - target: Whose queue it is.
    ///   - gate: What the body has to pass besides.
    ///   - stack: The scopes that the caller is in, which stay occupied until the call returns.
    ///   - entry: What the caller waits for.
    ///   - body: What to run.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    static func sync<T>(
        _ queue: DispatchQueue,
        of target: AnyObject,
        _ gate: ScopeGate?,
        _ stack: ConfinementScope.Stack,
        as entry: ConfinementScope.Entry = .call,
        _ body: () throws -> T
    ) rethrows -> T {
        guard !stack.isEmpty else {
            return try queue.sync {
                gate?.enter()
                defer { gate?.leave() }
                return try body()
            }
        }
        let held = begin(target, stack.occupied(amidOperation: entry == .ascent), nil).held
        return try queue.sync {
            gate?.enter()
            defer { gate?.leave() }
            // The turn has come. The queue goes on to others when this block ends, so the wait is over now and not
            // later.
            waits.withLock { waits in
                for node in held { waits[node] = nil }
            }
            return try body()
        }
    }

    /// Runs `body` inside the scope of `parent`, for a block of a child that nobody has submitted.
    ///
    /// That is when its turn comes between the blocks of the parent. But if a block there waits, by way of others even,
    /// for the queue that this one occupies, it will not come before this one has ended. Then the body runs at once,
    /// within the scope that the waiting call is in: as if what that call waits for had asked the parent itself.
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
            let visit = Visit { parent.runTurn(.performAndWait, submitted, $0, as: .ascent, body) }
            defer { visit.forget() }
            guard !begin(parent, stack.occupied(amidOperation: true), visit).isGranted else {
                return borrow(parent, stack, visit)
            }
            if let gate = parent.gate {
                if gate.enter(visit) { end(visit) } else { visit.sleep() }
                guard !isGranted(visit) else { return borrow(parent, stack, visit) }
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
                if isGranted(visit) { borrow(parent, stack, visit) }
            }
        }
    }

    private static func isGranted(_ visit: Visit) -> Bool { waits.withLock { _ in visit.isGranted } }

    /// Makes a visit inside a scope whose occupant waits for the visitor.
    private static func borrow(
        _ parent: NSManagedObjectContext,
        _ stack: ConfinementScope.Stack,
        _ visit: Visit
    ) {
        let node = node(of: parent)
        if node == Node(MainQueue.token) {
            // With it goes that of all contexts of the main queue.
            ConfinementScope.enter(MainQueue.token, within: stack) { visit.run(within: ConfinementScope.stack) }
        } else {
            visit.run(within: stack)
        }
        waits.withLock { $0[node]?.isOpen = true }
    }

    /// Notes a wait, and stops the program if it closes a ring.
    ///
    /// Unless there is a visit in the ring that can be granted: the first of these is, so that its visitor waits no
    /// more.
    ///
    /// - Returns: The nodes that wait from now on; or that the wait is a visit, and was granted.
    private static func begin(
        _ target: AnyObject,
        _ occupied: [(owner: AnyObject, isAmidOperation: Bool)],
        _ own: Visit?
    ) -> (held: [Node], isGranted: Bool) {
        let goal = node(of: target)
        let all = occupied.map { scope in
            let wait = Wait(waiter: scope.owner, target: target, isOpen: !scope.isAmidOperation, visit: own)
            return (node: node(of: scope.owner), wait: wait)
        }
        var held: [Node] = []
        var isGranted = false
        let deadlock = waits.withLock { waits -> [Wait]? in
            // A scope that is lent waits for something already, and goes on to do so.
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
                // For one at a time.
                waits[host]?.isOpen = false
                if visit === own { isGranted = true } else { visit.awake() }
                return nil
            }
            return ring
        }
        if let deadlock { stop(deadlock) }
        return (held, isGranted)
    }

    /// Takes a visit out of those who wait; whether it was one of them.
    @discardableResult
    static func end(_ visit: Visit) -> Bool { waits.withLock { end(visit, &$0) } }

    @discardableResult
    private static func end(_ visit: Visit, _ waits: inout [Node: Wait]) -> Bool {
        guard visit.isOpen else { return false }
        visit.isOpen = false
        for node in visit.held { waits[node] = nil }
        return true
    }

    /// The way by which waiting for `goal` leads back to somebody who waits for it, if there is one.
    ///
    /// - Parameters:
    ///   - goal: Whose queue somebody is about to wait for.
    ///   - held: The queues that whoever is about to wait occupies.
    ///   - next: For whom somebody waits.
    /// - Returns: The nodes of the way, `goal` first; `nil` if it leads nowhere.
    static func cycle(from goal: Node, backTo held: [Node], _ next: (Node) -> Node?) -> [Node]? {
        var way: [Node] = []
        var node = goal
        while !held.contains(node) {
            // Rings of others were found when they were closed.
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

    // MARK: - Telling

    /// Who waits for whom at this moment, a sentence a wait; any thread may ask.
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
