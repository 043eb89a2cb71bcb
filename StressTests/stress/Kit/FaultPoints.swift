import CoreData
import StrataLocks

/// The fault points of the library, by name, for scenarios that need an error, a kill or a wait in the middle of a
/// save.
///
/// Only builds with the trait `FaultPoints` have them; in other builds nothing here has an effect.
enum FaultPoints {
    /// Whether the library has them.
    static var areBuiltIn: Bool { FaultPoint.areBuiltIn }

    /// The names of all points.
    static var names: [String] { FaultPoint.allCases.map(\.rawValue) }
    /// The names of the points at which an error fails the operation.
    static var failing: [String] { FaultPoint.allCases.filter(\.canFail).map(\.rawValue) }

    /// Runs `body` when a point is reached for the `hit`-th time, counted from 1, and once only.
    private static func at(_ name: String, hit: Int, _ body: @escaping @Sendable () throws -> Void) {
        let count = Locked(0)
        FaultPoint.handle { point in
            guard point.rawValue == name else { return }
            let reached = count.withLock { count in
                count += 1
                return count
            }
            if reached == hit { try body() }
        }
    }

    /// Throws `error` when a point is reached for the `hit`-th time, counted from 1, and once only.
    static func fail(at name: String, hit: Int = 1, with error: CocoaError = CocoaError(.fileWriteOutOfSpace)) {
        at(name, hit: hit) {
            throw error
        }
    }

    /// Cuts the connection to a server at one in ten commits, drawn from the seed: before COMMIT is sent, or before
    /// its answer arrives.
    static func cutCommits(_ seed: UInt64) {
        let stream = Locked(SeededStream(seed: seed, stream: 98))
        FaultPoint.handle { point in
            guard point == .commitSending || point == .commitAnswered, stream.withLock({ $0.chance(0.05) }) else {
                return
            }
            throw CocoaError(.persistentStoreSave)
        }
    }

    /// Cuts the connection to a server at each commit, and also when its outcome is asked for, so that it stays in
    /// doubt.
    ///
    /// - Parameter isCommitted: Whether the connection is cut after the commit; otherwise it is cut before COMMIT is
    ///   sent.
    static func leaveInDoubt(isCommitted: Bool) {
        let lost = isCommitted ? FaultPoint.commitAnswered : .commitSending
        FaultPoint.handle { point in
            if point == lost || point == .commitAsking { throw CocoaError(.persistentStoreSave) }
        }
    }

    /// Kills the process with `SIGKILL` when a point is reached for the `hit`-th time, counted from 1.
    static func kill(at name: String, hit: Int = 1) {
        at(name, hit: hit) {
            _ = Foundation.kill(getpid(), SIGKILL)
            pause()
        }
    }

    /// Makes the first thread that reaches a point wait there until it is released, for 30 seconds at most.
    static func hold(at name: String) -> Held {
        let held = Held()
        let count = Locked(0)
        FaultPoint.handle { point in
            guard point.rawValue == name,
                count.withLock({
                    $0 += 1; return $0
                }) == 1
            else { return }
            held.arrived.signal()
            _ = held.released.wait(timeout: .now() + 30)
        }
        return held
    }

    /// Lets threads sleep a little at some of the points, drawn from the seed, so that they meet where they seldom
    /// would.
    static func jitter(_ seed: UInt64, most microseconds: Int) {
        let stream = Locked(SeededStream(seed: seed, stream: 99))
        FaultPoint.handle { _ in
            let pause = stream.withLock { $0.chance(0.1) ? $0.below(microseconds) : 0 }
            if pause > 0 { usleep(UInt32(pause)) }
        }
    }

    /// Removes what was set up at the points.
    static func clear() { FaultPoint.handle(nil) }

    /// The names of the library's guards that can be switched off.
    static var guards: [String] { FaultGuard.allCases.map(\.rawValue) }

    /// Switches a guard off, if there is one of that name.
    static func switchOff(_ name: String) { FaultGuard(rawValue: name)?.switchOff() }

    /// A thread that is held at a point.
    final class Held: Sendable {
        fileprivate let arrived = DispatchSemaphore(value: 0)
        fileprivate let released = DispatchSemaphore(value: 0)

        /// Waits until a thread has reached the point.
        ///
        /// - Parameter seconds: The longest time to wait.
        /// - Returns: Whether a thread has reached it.
        func waitForArrival(_ seconds: Double = 10) -> Bool { arrived.wait(timeout: .now() + seconds) == .success }

        /// Lets the thread go on.
        func release() { released.signal() }
    }
}
