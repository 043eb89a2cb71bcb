import CoreData
import CoreDataJobs
import Expectations
import Foundation
import TestSupport
import Testing

@testable import StrataInspector

@Suite("The inspector's jobs")
struct InspectorJobsTests {
    private struct Mail: Job {
        var number: Int
    }

    /// A store with five jobs in two queues, one of which has failed.
    private final class JobStore: Sendable {
        let stack: Stack

        init() async throws {
            stack = try Stack(.sqlite, model: JobEntities.model())
            let context = stack.context()
            try await context.perform {
                for number in 0..<4 { try context.enqueue(Mail(number: number)) { $0.queue = "mail" } }
                try context.save()
            }
            let worker = JobWorker(stack.coordinator, queues: ["other": 1])
            worker.handle(Mail.self) { _ in throw JobExit.fail("no such address") }
            try await context.perform {
                try context.enqueue(Mail(number: 4)) { $0.queue = "other" }
                try context.save()
            }
            try await worker.drain()
        }

        func run(_ arguments: String...) -> (lines: [String], code: ExitCode) { run(arguments) }

        func run(_ arguments: [String]) -> (lines: [String], code: ExitCode) {
            var lines: [String] = []
            let code = StrataCommand.run(
                ["jobs"] + arguments + ["--store", stack.storeURL.path],
                print: { lines += $0.split(separator: "\n").map(String.init) },
                complain: { lines.append($0) }
            )
            return (lines, code)
        }

        func states() throws -> [String] {
            let context = stack.context()
            return try context.performAndWait {
                try context.fetch(QueuedJob.request()).map { "\($0.queue) \($0.state)" }.sorted()
            }
        }
    }

    @Test func `jobs are listed and counted`() async throws {
        let store = try await JobStore()
        let listed = store.run("list", "--state", "failed")
        expectEqual(listed.code, .success, "\(listed.lines)")
        expectEqual(listed.lines.count, 2)
        expect(listed.lines.last?.contains("no such address") == true, "\(listed.lines)")
        let counted = store.run("list", "--counts")
        expectEqual(
            counted.lines.map { $0.split(separator: " ").joined(separator: " ") },
            ["Queue State Jobs", "mail ready 4", "other failed 1"]
        )
        expectEqual(store.run("list", "--queue", "mail", "--limit", "2").lines.count, 4)
        expectEqual(store.run("list", "--name", "Other").lines, ["There are no such jobs."])
    }

    @Test func `jobs are retried, cancelled and purged, and queues are paused`() async throws {
        let store = try await JobStore()
        expectEqual(store.run("retry").lines, ["1 jobs are retried."])
        expectEqual(store.run("cancel", "--queue", "mail").lines, ["4 jobs are cancelled."])
        try expectEqual(store.states(), Array(repeating: "mail cancelled", count: 4) + ["other ready"])
        expectEqual(store.run("purge").lines, ["4 jobs are purged."])
        try expectEqual(store.states(), ["other ready"])
        expectEqual(store.run("pause", "--queue", "other").lines, ["The queue other is paused."])
        expect(store.run("list", "--counts").lines.last?.hasPrefix("other (paused)") == true)
        expectEqual(store.run("resume", "--queue", "other").lines, ["The queue other is not paused."])
        expect(store.run("list", "--counts").lines.last?.hasPrefix("other ") == true)
    }

    @Test func `a queue gets a limit and loses it`() async throws {
        let store = try await JobStore()
        func counts() -> [String] {
            store.run("list", "--counts").lines.dropFirst().map { $0.split(separator: " ").joined(separator: " ") }
        }
        expectEqual(store.run("limit", "--queue", "mail", "--to", "3").lines, ["The queue mail has a limit of 3."])
        expectEqual(store.run("limit", "--queue", "later", "--to", "1").code, .success)
        expectEqual(store.run("pause", "--queue", "mail").code, .success)
        expectEqual(counts(), ["mail (paused) (at most 3) ready 4", "other failed 1", "later (at most 1) 0"])
        let context = store.stack.context()
        try expectEqual(context.performAndWait { try context.jobQueueLimits() }, ["mail": 3, "later": 1])
        for queue in ["mail", "later", "other"] {
            let ended = store.run("limit", "--queue", queue, "--to", "none")
            expectEqual(ended.lines, ["The queue \(queue) has no limit."])
        }
        expectEqual(counts(), ["mail (paused) ready 4", "other failed 1"])
    }

    @Test func `a paused queue is counted before it has a job`() async throws {
        let store = try await JobStore()
        for queue in ["later", "mail", "empty"] { expectEqual(store.run("pause", "--queue", queue).code, .success) }
        func counts(_ arguments: String...) -> [String] {
            store.run(["list", "--counts"] + arguments).lines.dropFirst()
                .map { $0.split(separator: " ").joined(separator: " ") }
        }
        expectEqual(
            counts(),
            ["mail (paused) ready 4", "other failed 1", "empty (paused) 0", "later (paused) 0"]
        )
        expectEqual(counts("--queue", "later"), ["later (paused) 0"])
        expectEqual(counts("--queue", "other"), ["other failed 1"])
    }

    @Test func `what makes no sense is refused`() async throws {
        let store = try await JobStore()
        expectEqual(store.run("dance").code, .usage)
        expectEqual(store.run("list", "--state", "happy").code, .usage)
        expectEqual(store.run("purge", "--state", "running").code, .usage)
        expectEqual(store.run("retry", "--state", "done").code, .usage)
        expectEqual(store.run("pause").code, .usage)
        for limit in ["0", "-1", "many", "5000000000"] {
            expectEqual(store.run("limit", "--queue", "mail", "--to", limit).code, .usage)
        }
        expectEqual(store.run("limit", "--queue", "mail").code, .usage)
        expectEqual(store.run("cancel", "--id", "x-coredata://other/QueuedJob/p1").code, .usage)
    }
}
