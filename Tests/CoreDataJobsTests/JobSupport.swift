import CoreData
import Expectations
import TestSupport

@testable import CoreDataJobs

/// An object that jobs of the tests make or change.
@ManagedObject
final class Note: NSManagedObject {
    @Managed(.default("")) var text: String
    @Managed(.unique) var code: String?
}

/// A job that belongs to an object of the program.
@ManagedObject
final class NoteJob: QueuedJob {
    @Managed(.noInverse) var note: Note?
    @Managed var remark: String?
    @Managed(.default(0)) var mark: Int16
}

struct Write: Job {
    var text: String
}

struct Add: Job {
    typealias Output = Int
    var numbers: [Int]
    static var options: JobOptions {
        var options = JobOptions()
        options.queue = "sums"
        options.maximumAttempts = 3
        options.backoff = .constant(.seconds(60))
        return options
    }
}

struct Failure: Error, CustomStringConvertible {
    var description: String
}

/// A store with jobs, and workers with a clock that stands still.
final class JobStack: Sendable {
    static let model: NSManagedObjectModel = {
        do {
            return try NSManagedObjectModel(for: [Note.self, NoteJob.self] + JobEntities.classes)
        } catch {
            fatalError("\(error)")
        }
    }()

    let stack: Stack
    let clock: ManualJobClock

    init(_ kind: StoreKind, options: [AnyHashable: Any]? = nil) throws {
        stack = try Stack(kind, model: Self.model, options: options)
        // The stores' clocks are real, so this one begins with them.
        clock = ManualJobClock(Date())
    }

    func worker(
        _ name: String = "one",
        _ queues: [String: Int] = ["default": 4, "sums": 4],
        on coordinator: NSPersistentStoreCoordinator? = nil
    ) -> JobWorker {
        var settings = JobWorker.Settings()
        settings.clock = clock
        return JobWorker(coordinator ?? stack.coordinator, queues: queues, name: name, settings: settings)
    }

    /// Enqueues in a context of its own, and saves.
    func enqueue<J: Job>(_ job: J, _ configure: @escaping @Sendable (inout JobOptions) -> Void = { _ in }) throws {
        let context = stack.context()
        try context.performAndWait {
            try context.enqueue(job, configure)
            try context.save()
        }
    }

    /// A text for each job, as the store has them, in the order in which they were enqueued.
    func jobs(_ text: @escaping @Sendable (QueuedJob) -> String = { "\($0.name) \($0.state)" }) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            let request = QueuedJob.request()
            request.sortDescriptors = [NSSortDescriptor(key: "enqueuedAt", ascending: true)]
            return try context.fetch(request).map(text)
        }
    }

    /// The texts of the notes, sorted.
    func notes() throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<Note>(entityName: "Note")).map(\.text).sorted()
        }
    }

    /// Changes jobs, and saves.
    func change(_ body: @escaping @Sendable (QueuedJob) throws -> Void) throws {
        let context = stack.context()
        try context.performAndWait {
            for job in try context.fetch(QueuedJob.request()) { try body(job) }
            try context.save()
        }
    }

    static func text(_ job: QueuedJob) -> String { "\(job.payload) \(job.state)" }
    static let state: @Sendable (QueuedJob) -> String = { "\($0.state)" }

    /// A worker whose handler of Write makes a note.
    func writer(_ name: String = "one") -> JobWorker {
        let worker = worker(name)
        worker.handle(Write.self) { run in
            try await run.perform { context in Note(context: context).text = run.job.text }
        }
        return worker
    }

    /// Ends the leases of all jobs.
    func endLeases() throws {
        try change { if $0.claimedBy != nil { $0.claimedUntil = Date(timeIntervalSinceNow: -1) } }
    }
}

/// A place where a test waits until a handler has come to some step.
final class Steps: Sendable {
    private let bell = JobBell()

    func pass() { bell.ring() }

    /// Waits for the `count`th step.
    func wait(for count: Int = 1) async {
        let end = Date(timeIntervalSinceNow: 60)
        while true {
            let seen = bell.count
            if seen >= count || end < Date() { break }
            await bell.wait(beyond: seen, until: end, by: SystemJobClock())
        }
        expect(bell.count >= count, "a step did not come")
    }
}
