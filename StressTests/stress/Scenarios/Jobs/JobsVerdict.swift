import CoreData
import CoreDataJobs

/// Compares what is in the store at the end with what producers have enqueued.
struct JobsVerdict {
    private let run: Run
    private let stack: NSPersistentStoreCoordinator
    private let plans: [JobsProducer.Plan]
    private let cancelled: Set<Int64>

    init(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ producers: [JobsProducer]) {
        (self.run, self.stack) = (run, stack)
        plans = producers.flatMap(\.plans)
        cancelled = Set(producers.flatMap(\.cancelled))
    }

    /// What the store has in the end.
    private struct Contents {
        var purchases: Set<Int64> = []
        /// The states of the jobs that are there.
        var states: [Int64: JobState] = [:]
        var effects: [Int64: Int] = [:]
        /// The places and serial numbers of effects, by lane.
        var places: [String: [(place: Int64, serial: Int64)]] = [:]
        /// The jobs of which an attempt has failed.
        var retried: Set<Int64> = []
    }

    /// Reports what is missing, too much, or in the wrong order.
    func judge() throws {
        let contents = try read()
        var known: Set<Int64> = []
        for plan in plans {
            let isThere = contents.purchases.contains(plan.purchase)
            switch (isThere, plan.outcome) {
            case (false, .acknowledged): run.find("purchase \(plan.purchase), acknowledged, is missing")
            case (true, .refused): run.find("purchase \(plan.purchase) is there, though its save was refused")
            default: break
            }
            for errand in plan.errands {
                known.insert(errand.serial)
                if isThere { judge(errand, contents) } else { judgeAbsence(of: errand, contents) }
            }
            run.count("jobs", isThere ? plan.errands.count : 0)
        }
        for serial in Set(contents.states.keys).union(contents.effects.keys).subtracting(known) {
            run.find("job \(serial) is there, which nobody has enqueued")
        }
        for (lane, places) in contents.places { judge(lane, places, retried: contents.retried) }
        judgeFailures(contents.retried)
    }

    private func judgeAbsence(of errand: Errand, _ contents: Contents) {
        guard contents.states[errand.serial] != nil || contents.effects[errand.serial] != nil else { return }
        run.find("job \(errand.serial) is there, though its save has not happened")
    }

    private func judge(_ errand: Errand, _ contents: Contents) {
        let (state, effects) = (contents.states[errand.serial], contents.effects[errand.serial] ?? 0)
        let isCancelled = state == .cancelled
        let wanted: Int
        switch state {
        case nil where errand.isForgotten, .done: wanted = 1
        case .cancelled, .failed: wanted = 0
        case nil: return run.find("job \(errand.serial) (\(errand.kind)) is lost")
        case .scheduled, .ready, .blocked, .running:
            return run.find("job \(errand.serial) (\(errand.kind)) is left \(state?.rawValue ?? "")")
        }
        let name = "job \(errand.serial) (\(errand.kind))"
        if effects != wanted {
            run.find("\(name), \(state?.rawValue ?? "gone"), has \(effects) effects, not \(wanted)")
        }
        if (state == .failed) != (errand.kind == .doomed) && !isCancelled {
            run.find("job \(errand.serial) (\(errand.kind)) is \(state?.rawValue ?? "gone")")
        }
        if isCancelled, errand.kind != .quitter, !cancelled.contains(errand.serial) {
            run.find("job \(errand.serial) (\(errand.kind)) is cancelled, which nobody has asked for")
        }
    }

    /// The jobs of a lane are done in the order in which they were enqueued, but for those that had to be tried again.
    ///
    /// A job waits for its next attempt, and the next job of its key does not wait for it.
    private func judge(_ lane: String, _ places: [(place: Int64, serial: Int64)], retried: Set<Int64>) {
        let inOrder = places.sorted { $0.place < $1.place }
        if inOrder.map(\.place) != (0..<Int64(inOrder.count)).map({ $0 }) {
            run.find("the effects of \(lane) have the places \(inOrder.map(\.place))")
        }
        let tried = inOrder.map(\.serial).filter { !retried.contains($0) }
        for (one, next) in zip(tried, tried.dropFirst()) where one > next {
            run.find("job \(one) of \(lane) is done before job \(next)")
        }
    }

    /// The handlers of lanes throw no error, so only a server that ends a session lets their attempts fail.
    private func judgeFailures(_ retried: Set<Int64>) {
        let inLanes = plans.flatMap(\.errands).filter { $0.lane != nil && retried.contains($0.serial) }.map(\.serial)
        run.count("retried-in-lanes", inLanes.count)
        if run.kind != .postgresql, !inLanes.isEmpty { run.find("attempts of the jobs \(inLanes) have failed") }
    }

    private func read() throws -> Contents {
        let lanes = Dictionary(
            plans.flatMap(\.errands).compactMap { errand in errand.lane.map { (errand.serial, $0) } },
            uniquingKeysWith: { $1 }
        )
        let context = stack.context()
        return try context.performAndWait {
            var contents = Contents()
            for purchase in try context.fetch(NSFetchRequest<Purchase>(entityName: "Purchase")) {
                contents.purchases.insert(purchase.number)
            }
            for job in try context.fetch(QueuedJob.request()) {
                let errand = try job.payload(as: Errand.self)
                if contents.states.updateValue(job.state, forKey: errand.serial) != nil {
                    run.find("job \(errand.serial) is there twice")
                }
                if job.failure != nil { contents.retried.insert(errand.serial) }
            }
            for trace in try context.fetch(NSFetchRequest<Trace>(entityName: "Trace")) {
                contents.effects[trace.serial, default: 0] += 1
                if let lane = lanes[trace.serial] {
                    contents.places[lane, default: []].append((trace.place, trace.serial))
                }
            }
            return contents
        }
    }
}
