import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataJobs

@Suite("What a server reads for jobs", .enabled(if: Server.isThere), .serialized)
struct JobReadingTests {
    private struct Note: Job {
        var number: Int
    }

    /// The jobs that wait.
    enum Waiting: CaseIterable, Sendable {
        /// Some of them have a key that no other job has, and some wait for a time.
        case different
        /// The same, and the server has counted them.
        case counted
        /// As the first, and their queue has a limit.
        case limited
        /// All have one key, one waits for its place, and the server has counted them.
        case oneKey
    }

    private static let waiting = 4000

    @Test(arguments: Waiting.allCases)
    func `taking jobs reads few rows, however many wait`(_ kind: Waiting) async throws {
        let stack = try Stack(.postgreSQL, model: try NSManagedObjectModel(for: JobEntities.classes))
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let observer = try Connection.open(target, timeout: 30)
        try observer.command("SET search_path TO \(target.quotedSchema)")
        let context = stack.context()
        try await context.perform {
            for number in 0..<Self.waiting {
                let job = try context.enqueue(Note(number: number)) {
                    if kind == .oneKey { return $0.key = JobKey("key") }
                    if number % 4 == 0 { $0.start = .after(.seconds(3600)) }
                    if number % 4 == 1 { $0.key = JobKey("key \(number)") }
                }
                if kind == .oneKey, number == Self.waiting - 1 { job.state = .blocked }
            }
            if kind == .limited { try context.limitJobs(in: "default", to: 2) }
            try context.save()
        }
        let table = try observer.query(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'queued%'"
        )[0].string(0)
        if kind == .counted || kind == .oneKey { try observer.command("ANALYZE \(table)") }

        let worker = JobWorker(stack.coordinator, queues: ["default": 1])
        let done = Locked(0)
        worker.handle(Note.self) { [weak worker] _ in
            let count = done.withLock { done in
                done += 1
                return done
            }
            // The worker waits for this job before it stops.
            if count == 10 { Task.detached { await worker?.stop() } }
        }
        try await worker.run(stoppingOn: [])
        expect(worker.counts.done >= 10)

        // The server counts what a session has read when that ends.
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        let end = ContinuousClock.now + .seconds(30)
        var read = Int64.max
        while ContinuousClock.now < end {
            let row = try observer.query(
                """
                SELECT n_tup_ins, n_tup_upd, seq_tup_read + idx_tup_fetch
                FROM pg_stat_user_tables WHERE relid = '\(table)'::regclass
                """
            )[0]
            if row.int64(0) >= Int64(Self.waiting), row.int64(1) >= 20 {
                read = row.int64(2)
                break
            }
            usleep(10_000)
        }
        expect(read < 1000, "the server has read \(read) rows for \(worker.counts.done) of \(Self.waiting) jobs")
    }
}
