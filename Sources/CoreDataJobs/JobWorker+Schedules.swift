import CoreData
import StrataLocks

// Jobs that are enqueued at the times of cron expressions.
extension JobWorker {
    /// Enqueues a job at each time of a cron expression.
    ///
    /// Any number of workers may have the same schedule: there is one job for each time. The first worker that sees a
    /// schedule begins with the next time. If no worker ran for a while, then there is one job for the newest of the times
    /// that were missed.
    ///
    /// ```swift
    /// struct Report: Job { var day: Date }
    /// let worker = JobWorker(container)
    /// let nightly = try CronExpression("30 3 * * mon-fri", timeZone: TimeZone(identifier: "Europe/Lisbon") ?? .gmt)
    /// worker.schedule("nightly report", nightly) { time in Report(day: time) }
    /// ```
    ///
    /// If a job cannot be enqueued, then the worker reports that in the log. It tries again at the next time, or after
    /// ``Settings/maintenance`` if that is earlier.
    ///
    /// - Parameters:
    ///   - name: The name of the schedule, by which workers agree on its times.
    ///   - times: The times.
    ///   - configure: Changes the options, which are those of the type at first.
    ///   - job: Makes the job for a time.
    public func schedule<J: Job>(
        _ name: String,
        _ times: CronExpression,
        options configure: @escaping @Sendable (inout JobOptions) -> Void = { _ in },
        _ job: @escaping @Sendable (Date) -> J
    ) {
        let entry = JobScheduleEntry(name: name, times: times) { time, context in
            let queued = try context.enqueue(job(time), configure)
            if queued.isInserted, queued.state == .ready { queued.runAt = time }
            return queued
        }
        state.withLock { state in
            state.schedules.removeAll { $0.name == name }
            state.schedules.append(entry)
        }
    }

    /// Enqueues the jobs of the schedules whose time has come.
    ///
    /// - Returns: The next time of a schedule.
    func enqueueSchedules(at now: Date) async -> Date? {
        var next: Date?
        for var schedule in state.withLock({ $0.schedules }) {
            if schedule.next.map({ $0 > now }) != true {
                do {
                    schedule.next = try await desk.enqueue(schedule, at: now)
                } catch {
                    desk.coordinator.report(error, "enqueuing a job of the schedule “\(schedule.name)”")
                    // Soon, since a store that could not be reached may cost no time of a rare schedule.
                    let soon = now.addingTimeInterval(settings.maintenance.seconds)
                    schedule.next = min(schedule.times.next(after: now) ?? soon, soon)
                }
                let (name, time) = (schedule.name, schedule.next)
                state.withLock { state in
                    guard let index = state.schedules.firstIndex(where: { $0.name == name }) else { return }
                    state.schedules[index].next = time
                }
            }
            next = [next, schedule.next].compactMap { $0 }.min()
        }
        return next
    }
}

/// A schedule of a worker.
struct JobScheduleEntry: Sendable {
    let name: String
    let times: CronExpression
    /// Enqueues the job for a time.
    let enqueue: @Sendable (Date, NSManagedObjectContext) throws -> QueuedJob
    /// The next time, once the store was asked.
    var next: Date?
}
