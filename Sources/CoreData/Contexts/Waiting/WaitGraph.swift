import Foundation
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
    }

    /// By the node of the waiter, whose blocks run one at a time and wait for one queue at a time.
    private static let waits = Mutex<[Node: Wait]>([:])

    /// Runs `body` on `queue` and waits for it.
    ///
    /// Stops the program if that wait could never end.
    ///
    /// What is passed:
    ///   - target: Whose queue it is.
    ///   - stack: The scopes that the caller is in, which stay occupied until the call returns.
    static func sync<T>(
        _ queue: DispatchQueue,
        of target: AnyObject,
        _ stack: ConfinementScope.Stack,
        _ body: () throws -> T
    ) rethrows -> T {
        guard !stack.isEmpty else { return try queue.sync(execute: body) }
        let held = begin(target, stack.owners)
        return try queue.sync {
            // The turn has come. The queue goes on to others when this block ends, so the wait is over now and not
            // later.
            waits.withLock { waits in
                for node in held { waits[node] = nil }
            }
            return try body()
        }
    }

    private static func begin(_ target: AnyObject, _ owners: [AnyObject]) -> [Node] {
        let held = owners.map(node)
        let goal = node(of: target)
        let new = owners.map { Wait(waiter: $0, target: target) }
        let chain = waits.withLock { waits -> [Wait]? in
            for (node, wait) in zip(held, new) { waits[node] = wait }
            let way = cycle(from: goal, backTo: held) { waits[$0].map { self.node(of: $0.target) } }
            return way?.compactMap { waits[$0] }
        }
        if let chain { stop(new[0], chain) }
        return held
    }

    /// The way by which waiting for `goal` leads back to somebody who waits for it, if there is one.
    ///
    /// What is passed:
    ///   - held: The queues that whoever is about to wait occupies.
    ///   - next: For whom somebody waits.
    /// Gives: The nodes of the way, `goal` first; `nil` if it leads nowhere.
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

    private static func stop(_ first: Wait, _ chain: [Wait]) -> Never {
        let links = ([first] + chain).map { "\(describe($0.waiter)) waits for \(describe($0.target))" }
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
