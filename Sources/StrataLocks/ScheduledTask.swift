#if Schedules
/// A task each part of which runs on a scheduled thread.
///
/// So a ``ScheduleRun`` also decides when a task goes on after an `await`. Code that has another executor, such as the
/// blocks of a context, comes to scheduled threads by its own way.
package enum ScheduledTask {
    /// Runs a body as a task, and waits for its end; called on a scheduled thread.
    package static func run(_ body: @escaping @Sendable () async -> Void) {
        guard let thread = Schedule.current else { fatalError("ScheduledTask.run(_:) needs a scheduled thread.") }
        let end = Waiter()
        Task(executorPreference: Executor(thread.run)) {
            await body()
            end.call()
        }
        end.sleep()
    }

    /// Starts a new scheduled thread for each part.
    private final class Executor: TaskExecutor {
        private let run: ScheduleRun

        init(_ run: ScheduleRun) { self.run = run }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            run.spawn(on: nil) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }
}
#endif
