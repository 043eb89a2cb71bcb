import CoreData
import CoreDataJobs
import StrataLocks

/// Enqueues jobs by saves that succeed, are refused or are given up, and remembers what must come of them.
struct JobsProducer {
    /// How a save has ended.
    enum Outcome {
        case acknowledged
        /// The save has failed, or was never made: neither the purchase nor its jobs may be there.
        case refused
        /// The server has not said how the save has ended: either all of it is there or nothing.
        case doubtful
    }

    /// A purchase, and the jobs of its save.
    struct Plan {
        let purchase: Int64
        var errands: [Errand] = []
        var outcome: Outcome
    }

    /// A sabotage: the jobs are saved before the purchase, by a transaction of their own.
    static let ownSave = "own-save"
    /// A sabotage: jobs have no unique keys.
    static let notUnique = "not-unique"
    /// A sabotage: jobs have no keys that limit how many run at once.
    static let noKey = "no-key"
    /// The most jobs that wait; more would only make the end take long.
    static let mostWaiting = 60

    let run: Run
    let coordinator: NSPersistentStoreCoordinator
    let number: Int
    /// The keys of jobs that this producer alone enqueues, one after the other.
    let lanes: [String]
    var stream: SeededStream
    private(set) var plans: [Plan] = []
    /// The jobs that it has asked to be cancelled.
    private(set) var cancelled: Set<Int64> = []
    private var last: Int64 = 0

    init(_ run: Run, _ coordinator: NSPersistentStoreCoordinator, _ number: Int) {
        (self.run, self.coordinator, self.number) = (run, coordinator, number)
        lanes = (0..<2).map { "lane-\(number)-\($0)" }
        stream = run.stream(100 + number)
    }

    private mutating func next() -> Int64 {
        last += 1
        return Int64(number) << 40 + last
    }

    /// Makes a purchase, or cancels a job.
    mutating func step() throws {
        if stream.chance(0.1) { return try cancelSome() }
        var plan = Plan(purchase: next(), outcome: .doubtful)
        let drawn = (0..<(1 + stream.below(3))).map { _ in draw(plan.purchase) }
        let (isRefused, isDropped) = (stream.chance(0.1), stream.chance(0.1))
        let (hasParent, till) = (stream.chance(0.25), Int64(stream.below(3)))
        let root = coordinator.context()
        let context = hasParent ? NSManagedObjectContext(.privateQueue) : root
        if hasParent { context.parent = root }
        var settings = Settings(run)
        settings.delays = drawn.map { $0.key == nil && stream.chance(0.2) }
        settings.priorities = drawn.map { $0.key == nil ? Int16(stream.below(3)) : 0 }
        let isEarly = run.isSabotaged(Self.ownSave)
        do {
            plan.errands = try context.performAndWait { () throws -> [Errand] in
                let enqueued = try Self.enqueue(drawn, settings, context)
                if isEarly { try context.save() }
                let purchase = Purchase(context: context)
                purchase.number = plan.purchase
                if !isRefused { purchase.buyer = "somebody" }
                let request = NSFetchRequest<Till>(entityName: "Till")
                request.predicate = NSPredicate(format: "number == %d", Int(till))
                try context.fetch(request).first?.sales += 1
                return enqueued
            }
            if isDropped {
                // A child has perhaps saved, and its parent gives it up.
                if hasParent, !isRefused { try context.performAndWait { try context.save() } }
                root.performAndWait { root.rollback() }
                context.performAndWait { context.rollback() }
                plan.outcome = .refused
            } else {
                try context.performAndWait { try context.save() }
                if hasParent { try root.performAndWait { try root.save() } }
                plan.outcome = .acknowledged
            }
        } catch let error as CocoaError {
            plan.errands = plan.errands.isEmpty ? drawn : plan.errands
            plan.outcome = Self.isRefusal(error) ? .refused : .doubtful
            if plan.outcome == .doubtful, run.kind != .postgresql { throw error }
        }
        run.count(
            plan.outcome == .acknowledged ? "saves" : plan.outcome == .refused ? "refused-saves" : "doubtful-saves"
        )
        plans.append(plan)
    }

    private static func isRefusal(_ error: CocoaError) -> Bool {
        let conflicts: [CocoaError.Code] = [.managedObjectMerge, .managedObjectConstraintMerge]
        return conflicts.contains(error.code) || error.code.rawValue == NSValidationMissingMandatoryPropertyError
    }

    // MARK: - Jobs

    /// What a block needs to know about how jobs are enqueued.
    private struct Settings: Sendable {
        let isUnique: Bool
        let hasKeys: Bool
        var delays: [Bool] = []
        var priorities: [Int16] = []

        init(_ run: Run) {
            (isUnique, hasKeys) = (!run.isSabotaged(notUnique), !run.isSabotaged(noKey))
        }
    }

    private mutating func draw(_ purchase: Int64) -> Errand {
        var errand = Errand(serial: next(), purchase: purchase, kind: .plain)
        switch stream.index([4, 1, 4, 3, 3]) {
        case 0:
            errand.key = stream.pick(lanes)
            if stream.chance(0.03) { errand.kind = .slow }
        case 1:
            errand.key = "pair-\(stream.below(2))"
            errand.limit = 2
        case 2:
            errand.kind = stream.chance(0.05) ? .slow : stream.pick([.stubborn, .doomed, .quitter, .polite])
            errand.failures = 1 + stream.below(3)
        case 3:
            errand.isForTheRun = stream.chance(0.3)
            errand.unique = errand.isForTheRun ? "once-\(stream.below(20))" : "unique-\(stream.below(3))"
        default: errand.isForgotten = stream.chance(0.5)
        }
        return errand
    }

    /// Enqueues jobs, on the queue of the context.
    ///
    /// - Returns: Those that are new; for the others there are jobs with their unique keys.
    private static func enqueue(_ errands: [Errand], _ settings: Settings, _ context: NSManagedObjectContext) throws
        -> [Errand]
    {
        var new: [Errand] = []
        for (index, errand) in errands.enumerated() {
            let job = try context.enqueue(errand) { options in
                options.queue = errand.key == nil ? "errands" : "lanes"
                // An attempt whose worker was killed counts as well.
                options.maximumAttempts = 5_000
                options.priority = settings.priorities[index]
                if settings.delays[index] { options.start = .after(.milliseconds(30)) }
                if errand.isForgotten { options.keep = .zero }
                if settings.hasKeys { options.key = errand.key.map { JobKey($0, limit: errand.limit) } }
                if settings.isUnique, let key = errand.unique {
                    options.unique = JobUniqueness(key, for: errand.isForTheRun ? .seconds(86_400) : .zero)
                }
            }
            // Another job of the same save may have the unique key.
            guard job.isInserted, try job.payload(as: Errand.self) == errand else { continue }
            new.append(errand)
        }
        return new
    }

    /// Asks that some jobs are cancelled.
    private mutating func cancelSome() throws {
        let context = coordinator.context()
        let least = Int64(number) << 40 + max(last - 30, 0)
        let chance = stream.below(3)
        do {
            let serials = try context.performAndWait { () throws -> [Int64] in
                var serials: [Int64] = []
                let request = QueuedJob.request(.scheduled, .ready, .blocked, .running)
                request.fetchLimit = 20
                for job in try context.fetch(request) {
                    // A worker has perhaps deleted the row meanwhile.
                    guard let errand = try? job.payload(as: Errand.self) else { continue }
                    // A job that leaves no row must have an effect.
                    guard errand.serial >= least, errand.serial < Int64(number + 1) << 40, !errand.isForgotten,
                        errand.unique == nil, Int(errand.serial % 3) == chance
                    else { continue }
                    job.cancel()
                    serials.append(errand.serial)
                }
                return serials
            }
            cancelled.formUnion(serials)
            try context.performAndWait { try context.save() }
            run.count("cancellations", serials.count)
        } catch let error as CocoaError {
            // A worker has changed or deleted a job at this moment.
            let expected: [CocoaError.Code] = [.managedObjectMerge, .managedObjectReferentialIntegrity]
            guard expected.contains(error.code) || run.kind == .postgresql else { throw error }
        }
    }
}
