import CDispatch
import Foundation
import StrataLocks
import StrataRows

/// Watches a call that waits for the main queue, and reports it if that takes long.
///
/// A program without a run loop, without `dispatchMain()` and without an asynchronous `main` does not serve its main
/// queue. There, a call that waits for a context would wait for ever without a message. Contexts with private queues
/// are not watched, as Dispatch serves them.
///
/// One block checks all waiting calls. It is submitted while there are some, and never twice for the same time.
final class MainQueueWatch: Sendable {
    private struct Wait: @unchecked Sendable {
        // @unchecked Sendable: contexts are Sendable, and so are all other possible waiters.
        let target: NSManagedObjectContext
        /// The context or other owner in whose scope the call is made.
        let waiter: AnyObject?
        let queueLabel: String
        let since: ContinuousClock.Instant
        var isTold = false
    }

    private struct State {
        var waits: [ObjectIdentifier: Wait] = [:]
        /// The time of the next check; `nil` if no call waits.
        var nextLook: ContinuousClock.Instant?
    }

    private static let state = Locked(State())

    /// Notes that the caller is about to wait for a context; `nil` for one with a private queue.
    ///
    /// This is no failable initialiser: that would first allocate an object, nearly always for nothing.
    static func begin(_ target: NSManagedObjectContext) -> MainQueueWatch? {
        guard target.concurrencyType == .mainQueueConcurrencyType, let threshold = SlowOperationLog.waitThreshold else {
            return nil
        }
        return MainQueueWatch(target, threshold)
    }

    private init(_ target: NSManagedObjectContext, _ threshold: Duration) {
        let wait = Wait(
            target: target,
            waiter: ConfinementScope.innermost,
            queueLabel: String(cString: dispatch_queue_get_label(nil)),
            since: .now
        )
        let isFirst = Self.state.withLock { state in
            state.waits[ObjectIdentifier(self)] = wait
            guard state.nextLook.map({ wait.since + threshold < $0 }) ?? true else { return false }
            state.nextLook = wait.since + threshold
            return true
        }
        if isFirst { Self.scheduleLook(in: threshold) }
    }

    /// Notes that the caller no longer waits.
    func end() {
        // The entry is released outside the lock, as that may release a context.
        let wait = Self.state.withLock { $0.waits.removeValue(forKey: ObjectIdentifier(self)) }
        _ = consume wait
    }

    private static func scheduleLook(in duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(max(nanoseconds, 0)))) { look() }
    }

    /// Reports the calls that have waited for too long, and schedules a check of the others.
    private static func look() {
        let now = ContinuousClock.now
        let (late, next) = state.withLock { state -> ([Wait], Duration?) in
            state.nextLook = nil
            guard let threshold = SlowOperationLog.waitThreshold else { return ([], nil) }
            var late: [Wait] = []
            for (key, wait) in state.waits where !wait.isTold {
                let due = wait.since + threshold
                if due <= now {
                    state.waits[key]?.isTold = true
                    late.append(wait)
                } else {
                    state.nextLook = min(due, state.nextLook ?? due)
                }
            }
            return (late, state.nextLook.map { $0 - now })
        }
        if let next { scheduleLook(in: next) }
        for wait in late {
            let queue = "a block on queue \"\(wait.queueLabel)\""
            let waiter = (wait.waiter as? NSManagedObjectContext).map { "\($0.describedName), in \(queue)," } ?? queue
            SlowOperationLog.reportWait(for: wait.target, by: waiter, since: now - wait.since)
        }
    }
}
