import StrataLocks

/// The processor time that one evaluation may take before it is stopped.
///
/// A short predicate can need endless work: six nested collections visit each member to the sixth power.
/// ``run(seconds:_:)`` sets the limit for everything that its block evaluates on its thread. Loops sometimes check
/// whether the time is over. The thread's own time counts, so that a busy machine does not make a fetch fail.
package final class EvaluationBudget: Sendable {
    /// The budget of the current thread's evaluation.
    @TaskLocal private static var current: EvaluationBudget?

    private let seconds: Double
    private let deadline: Double
    private let reason = Locked<PredicateEvaluationError?>(nil)

    private init(seconds: Double) {
        self.seconds = seconds
        deadline = Self.processorTime + seconds
    }

    /// Runs `body`, which evaluates on this thread, within a number of seconds.
    ///
    /// - Throws: ``PredicateEvaluationError`` if the evaluation was stopped, even if `body` did not throw; otherwise
    ///   the errors of `body`.
    package static func run<R>(seconds: Double, _ body: () throws -> R) throws -> R {
        let budget = EvaluationBudget(seconds: seconds)
        do {
            return try $current.withValue(budget, operation: body)
        } catch {
            throw budget.reason.withLock { $0 } ?? error
        }
    }

    /// Finds out whether the evaluation has to end, for callers that cannot throw; `nil` if there is no limit.
    ///
    /// It must be read on the thread that evaluates.
    package static var end: (@Sendable () -> Bool)? {
        guard current != nil else { return nil }
        return { isSpent }
    }

    /// Whether the evaluation has to end, for callers that cannot throw.
    ///
    /// They end it in their own way.
    static var isSpent: Bool { current?.isOver ?? false }

    /// Ends the evaluation if its time is over.
    package static func check() throws {
        guard let current, current.isOver else { return }
        throw current.excess
    }

    /// Remembers why an evaluation failed, in case the error is lost inside a store.
    package static func note(_ error: any Error) {
        guard let error = error as? PredicateEvaluationError else { return }
        current?.reason.withLock { $0 = $0 ?? error }
    }

    private var isOver: Bool {
        guard Self.processorTime > deadline else { return false }
        Self.note(excess)
        return true
    }

    private var excess: PredicateEvaluationError {
        PredicateEvaluationError(
            "it takes more than \(seconds) s of processor time; ask for less at a time, or raise evaluationTimeLimit",
            isTimeLimit: true
        )
    }

    /// The processor time of the thread so far, in seconds.
    static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
