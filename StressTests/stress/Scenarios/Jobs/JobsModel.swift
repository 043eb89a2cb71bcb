import CoreData
import CoreDataJobs
import StrataLocks

/// The model of the scenario `jobs`: what the saves of producers store, what handlers store, and the jobs.
enum JobsModel {
    static func make() throws -> NSManagedObjectModel {
        try NSManagedObjectModel(for: [Purchase.self, Till.self, Trace.self, Lane.self] + JobEntities.classes)
    }
}

/// The cause of some jobs: the same save stores both.
@ManagedObject
final class Purchase: NSManagedObject {
    @Managed(.default(0)) var number: Int64
    /// A purchase without a buyer is not valid, so that its save is refused.
    @Managed(.required) var buyer: String
}

/// An object that producers contend for, so that some of their saves are refused as conflicts.
@ManagedObject
final class Till: NSManagedObject {
    @Managed(.unique, .default(0)) var number: Int64
    @Managed(.default(0)) var sales: Int64
}

/// The effect of one run of a handler.
@ManagedObject
final class Trace: NSManagedObject {
    @Managed(.default(0)) var serial: Int64
    /// The place among the effects of the lane; -1 without a lane.
    @Managed(.default(-1)) var place: Int64
}

/// The effects of the jobs with one key, of which one runs at a time.
@ManagedObject
final class Lane: NSManagedObject {
    @Managed(.unique, .default("")) var key: String
    @Managed(.default(0)) var count: Int64
}

/// What a job of the scenario does.
struct Errand: Job, Hashable {
    /// How the handler behaves.
    enum Kind: String, Codable, CaseIterable {
        /// It returns soon.
        case plain
        /// It takes longer than a lease.
        case slow
        /// It throws at its first attempts.
        case stubborn
        /// It throws an error that is final.
        case doomed
        /// It cancels itself.
        case quitter
        /// It postpones itself now and then.
        case polite
    }

    /// The number of the job, which no other has.
    var serial: Int64
    /// The number of the purchase whose save stores the job.
    var purchase: Int64
    var kind: Kind
    /// The attempts that a stubborn handler lets fail.
    var failures = 0
    /// The key of which only some jobs run at once.
    var key: String?
    var limit: Int16 = 1
    /// The key that no other unfinished job has.
    var unique: String?
    /// Whether that key stays taken until the end of the run.
    var isForTheRun = false
    /// Whether the row of the job goes when it is done.
    var isForgotten = false

    /// The key of jobs whose order is checked; `nil` if there is none.
    var lane: String? { limit == 1 ? key : nil }
}

/// A clock of workers that jumps.
final class JumpingClock: JobClock {
    private let offset: Locked<Double>

    init(_ seconds: Double = 0) { offset = Locked(seconds) }

    /// Sets how far the clock is ahead, in seconds.
    func jump(to seconds: Double) { offset.withLock { $0 = seconds } }

    var now: Date { Date(timeIntervalSinceNow: offset.withLock { $0 }) }

    func sleep(until time: Date) async throws {
        // A jump changes what the clock shows, and not how long a task sleeps.
        try await Task.sleep(for: .seconds(min(max(time.timeIntervalSince(now), 0), 60)))
    }
}
