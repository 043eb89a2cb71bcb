import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataJobs

extension SharedStore {
    /// Opens the store with the model of jobs in this process.
    fileprivate func jobs() throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: JobStack.model)
        try coordinator.addPersistentStore(type: kind.type, configuration: nil, at: url, options: nil)
        return coordinator
    }
}

@Suite("Jobs of several processes")
struct JobProcessTests {
    /// The moment when the worker's process is killed.
    enum Moment: String, CaseIterable, Codable, Sendable {
        /// The handler has made its effect.
        case handler
        /// The handler has returned, and nothing is saved yet.
        case beforeSave
        /// The effect and the end of the job are committed.
        case afterSave
    }

    private static func settings(lease: Duration) -> JobWorker.Settings {
        var settings = JobWorker.Settings()
        settings.lease = lease
        settings.poll = .milliseconds(20)
        return settings
    }

    /// What the store has of the job and its effects, and the end of the job's lease.
    private static func look(_ coordinator: NSPersistentStoreCoordinator) async throws -> (text: String, lease: Date?) {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        // The coordinator is not notified of what other processes save.
        context.stalenessInterval = 0
        return try await context.perform {
            let job = try require(try context.fetch(QueuedJob.request()).first)
            let notes = try context.fetch(NSFetchRequest<Note>(entityName: "Note")).map(\.text)
            return ("\(job.state) \(job.claimedBy ?? "-") \(job.attempt) \(notes)", job.claimedUntil)
        }
    }

    /// Kills this process when a context saves.
    private static func die(with context: NSManagedObjectContext, at moment: Moment) {
        if moment == .handler { kill(getpid(), SIGKILL) }
        let name: Notification.Name =
            moment == .beforeSave ? .NSManagedObjectContextWillSave : .NSManagedObjectContextDidSave
        _ = NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { _ in
            kill(getpid(), SIGKILL)
        }
    }

    @Test(arguments: StoreKind.databases, Moment.allCases)
    func `the job of a worker that is killed is done by another after the lease, and its effect is there once`(
        _ kind: StoreKind,
        _ moment: Moment
    ) async throws {
        let folder = try SharedFolder(kind)
        let store = folder.store
        let coordinator = try store.jobs()
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try await context.perform {
            try context.enqueue(Write(text: "once"))
            try context.save()
        }

        await #expect(processExitsWith: .signal(SIGKILL)) { [store = store as SharedStore, moment = moment as Moment] in
            let worker = JobWorker(try store.jobs(), name: "victim", settings: Self.settings(lease: .milliseconds(700)))
            worker.handle(Write.self) { run in
                try await run.perform { context in
                    Note(context: context).text = run.job.text
                    Self.die(with: context, at: moment)
                }
            }
            try await worker.drain()
        }

        let left = try await Self.look(coordinator)
        let rescuer = JobWorker(coordinator, name: "rescuer", settings: Self.settings(lease: .seconds(60)))
        let (begun, starts) = (Steps(), Shared<[Date]>([]))
        rescuer.handle(Write.self) { run in
            starts.update { $0.append(Date()) }
            try await run.perform { context in Note(context: context).text = run.job.text }
            begun.pass()
        }
        if moment == .afterSave {
            expectEqual(left.text, "done - 1 [\"once\"]")
            try await expectEqual(rescuer.drain(), JobCounts())
        } else {
            expectEqual(left.text, "running victim 1 []")
            let running = Task { try await rescuer.run(stoppingOn: []) }
            await begun.wait()
            await rescuer.stop()
            try await running.value
            expectEqual(rescuer.counts.done, 1)
            // The clock of a server on this machine is the same.
            let (start, end) = (try require(starts.current.first), try require(left.lease))
            expect(start >= end, "the job was taken \(end.timeIntervalSince(start)) s before the end of its lease")
        }

        let seen = try await Self.look(coordinator).text
        expectEqual(seen, "done - \(moment == .afterSave ? 1 : 2) [\"once\"]")
    }

    private static let limit = 3

    /// Runs jobs until none is left, and checks how many run at once in all processes.
    private static func drainAll(_ coordinator: NSPersistentStoreCoordinator) async throws {
        let settings = Self.settings(lease: .seconds(60))
        let worker = JobWorker(coordinator, queues: ["default": Self.limit], settings: settings)
        let most = Shared(0)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        @Sendable func count(_ states: JobState...) async throws -> Int {
            let states = states.map(\.rawValue)
            return try await context.perform {
                let request = QueuedJob.request()
                request.predicate = NSPredicate(format: "state IN %@", states)
                return try context.count(for: request)
            }
        }
        worker.handle(Write.self) { run in
            for _ in 0..<3 {
                let running = try await count(.running)
                most.update { $0 = max($0, running) }
            }
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        // The other process may have all places at some moment.
        while try await count(.ready, .running) > 0 { try await worker.drain(atOnce: Self.limit) }
        expect(most.current <= Self.limit, "\(most.current) jobs ran at once")
    }

    private static func drainInProcess(_ store: SharedStore) async {
        await #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let coordinator = try store.jobs()
            store.signal("ready")
            try await Self.drainAll(coordinator)
        }
    }

    @Test(arguments: StoreKind.databases)
    func `the workers of two processes together run no more jobs of a queue than its limit`(_ kind: StoreKind)
        async throws
    {
        let folder = try SharedFolder(kind, signals: "ready")
        let store = folder.store
        let coordinator = try store.jobs()
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try await context.perform {
            for number in 1...40 { try context.enqueue(Write(text: "\(number)")) }
            try context.limitJobs(in: "default", to: Self.limit)
            try context.save()
        }
        async let other: Void = Self.drainInProcess(store)
        await store.arrival(of: "ready")
        try await Self.drainAll(coordinator)
        await other
        context.stalenessInterval = 0
        let notes = try await context.perform { try context.count(for: NSFetchRequest<Note>(entityName: "Note")) }
        expectEqual(notes, 40)
    }
}
