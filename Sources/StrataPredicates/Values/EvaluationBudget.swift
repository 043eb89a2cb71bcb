import StrataLocks

/// The processor time that one evaluation may take before it is given up.
///
/// A short predicate can ask for work without end: six collections inside of each other visit each member to the sixth power.
/// ``run(seconds:_:)`` sets the limit for all that its block evaluates on its thread; what loops asks now and then whether the
/// time is over. It is the thread's own time that counts, so that a busy machine does not make a fetch fail.
package final class EvaluationBudget: Sendable {
    /// The budget of the evaluation that the current thread is in.
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
    /// - Throws: ``PredicateEvaluationError`` where the evaluation was given up, whatever `body` made of that; else what `body`
    ///   throws.
    package static func run<R>(seconds: Double, _ body: () throws -> R) throws -> R {
        let budget = EvaluationBudget(seconds: seconds)
        do {
            return try $current.withValue(budget, operation: body)
        } catch {
            throw budget.reason.withLock { $0 } ?? error
        }
    }

    /// What tells whether the evaluation has to end, for those who cannot throw; `nil` if there is no limit.
    ///
    /// Must be asked on the thread that evaluates.
    package static var end: (@Sendable () -> Bool)? {
        guard current != nil else { return nil }
        return { isSpent }
    }

    /// Whether the evaluation has to end, for callers that cannot throw: they make it end in their own way.
    static var isSpent: Bool { current?.isOver ?? false }

    /// Ends the evaluation if its time is over.
    package static func check() throws {
        guard let current, current.isOver else { return }
        throw current.excess
    }

    /// Remembers why an evaluation failed, where the error itself gets lost on its way through a store.
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

    /// What the thread has used so far, in seconds.
    static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
