import CoreData
import Expectations
import StrataLocks
import StrataSQLite
import StrataSQLiteStore
import TestSupport
import Testing

@testable import CoreDataJobs

/// What a worker asks the database, however many jobs wait.
@Suite("Statements of jobs", .enabled(if: !StoreKind.isPostgreSQL, "SQLite's plans"))
struct JobPlanTests {
    /// The plans of all statements on jobs that `body` causes, by statement.
    private static func plans(_ jobs: JobStack, _ body: () async throws -> Void) async throws -> [String: [String]] {
        let engine = try require(jobs.stack.coordinator.openStores.first?.rows as? SQLiteEngine)
        let statements = Locked<Set<String>>([])
        try engine.openFile().pool.setTrace { event in
            guard event.sql.contains("ZQUEUEDJOB"), !event.sql.hasPrefix("INSERT") else { return }
            statements.withLock { _ = $0.insert(event.sql) }
        }
        try await body()
        try engine.openFile().pool.setTrace(nil)
        let connection = try Connection(path: jobs.stack.storeURL.path, access: .readOnly)
        var plans: [String: [String]] = [:]
        for sql in statements.withLock({ $0 }) {
            plans[sql] = try connection.queryPlan(sql.replacing("strata_out_of_range()", with: "NULL"))
        }
        return plans
    }

    @Test func `no statement of a worker reads all jobs or sorts them`() async throws {
        let jobs = try JobStack(.sqlite)
        let worker = jobs.worker()
        worker.handle(Write.self) { run in try await run.report(progress: 0.5) }
        worker.handle(Add.self) { _ in throw Failure(description: "") }
        let limiting = jobs.stack.context()
        try await limiting.perform {
            try limiting.limitJobs(in: "sums", to: 1)
            try limiting.save()
        }
        let plans = try await Self.plans(jobs) {
            for number in 0..<3 {
                try jobs.enqueue(Write(text: "\(number)")) {
                    $0.key = JobKey("k", limit: 2); $0.unique = JobUniqueness("u\(number)")
                }
                try jobs.enqueue(Add(numbers: []))
            }
            for _ in 0..<4 {
                try await worker.drain()
                jobs.clock.advance(by: .seconds(90_000))
            }
            let context = jobs.stack.context()
            try await context.perform {
                try context.enqueue(Write(text: "x")) { $0.key = JobKey("k") }.state = .blocked
                try context.save()
            }
            try await worker.desk.unblockAll()
            _ = try await worker.desk.rescue(1, of: "default", at: jobs.clock.now)
        }
        expect(plans.count > 10)
        let claims = plans.filter { $0.key.contains("ZCLAIMEDUNTIL IS NULL") }.values.map { $0.joined(separator: "\n") }
        let isRange = claims.map { $0.contains("byQueue (ZQUEUE=? AND ZSTATE=?)") }
        expect(!claims.isEmpty && isRange.allSatisfy { $0 }, "\(claims)")
        let counts = plans.filter { $0.key.contains("COUNT(*)") && !$0.key.contains("ZKEY") }.values.map { $0.joined() }
        expect(counts.contains { $0.contains("byQueue (ZQUEUE=? AND ZSTATE=?)") }, "\(counts)")
        for (sql, plan) in plans.sorted(by: { $0.key < $1.key }) {
            let faults = plan.filter { $0.contains("SCAN t0") || $0.contains("TEMP B-TREE") }
            expect(faults.isEmpty, "\(sql)\n\(plan.joined(separator: "\n"))")
        }
    }
}
