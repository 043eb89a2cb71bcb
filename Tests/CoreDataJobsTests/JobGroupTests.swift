import CoreData
import Expectations
import StrataLocks
import StrataSQLite
import StrataSQLiteStore
import TestSupport
import Testing

@testable import CoreDataJobs

@Suite("Jobs that are done together")
struct JobGroupTests {
    private static func worker(_ jobs: JobStack, together most: Int, _ calls: Shared<[[String]]>) -> JobWorker {
        let worker = jobs.worker("one", ["default": 4])
        worker.handle(Write.self, together: most) { group in
            calls.update { $0.append(group.jobs.map(\.text)) }
            try await group.perform { context in
                for job in group.jobs { Note(context: context).text = job.text }
            }
            if group.jobs.contains(where: { $0.text == "bad" }) { throw Failure(description: "bad") }
        }
        return worker
    }

    @Test(arguments: StoreKind.allCases)
    func `a group has as many jobs as there are places, but none with a key, and one save ends them`(
        _ kind: StoreKind
    ) async throws {
        let jobs = try JobStack(kind)
        for text in ["a", "b", "c", "d", "e"] { try jobs.enqueue(Write(text: text)) }
        try jobs.enqueue(Write(text: "k")) {
            $0.key = JobKey("k")
            $0.priority = -1
        }
        try jobs.enqueue(Write(text: "z")) {
            $0.keep = .zero
            $0.priority = -2
        }
        let calls = Shared<[[String]]>([])
        let worker = Self.worker(jobs, together: 3, calls)
        // The objects of each save that has ended jobs.
        let saves = Shared<[Int]>([])
        let coordinator = jobs.stack.coordinator
        let token = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextDidSave,
            object: nil,
            queue: nil
        ) { [weak coordinator] save in
            guard let context = save.object as? NSManagedObjectContext, let coordinator,
                context.persistentStoreCoordinator === coordinator
            else { return }
            let notes = (save.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject> ?? []).count { $0 is Note }
            if notes > 0 { saves.update { $0.append(notes) } }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try await expectEqual(worker.drain(atOnce: 4).done, 7)
        // The later groups depend on which places are free.
        expectEqual(calls.current.filter { $0.contains("a") }, [["a", "b", "c"]])
        expectEqual(calls.current.joined().sorted(), ["a", "b", "c", "d", "e", "k", "z"])
        expect(calls.current.contains(["k"]) && calls.current.allSatisfy { $0.count <= 3 })
        expectEqual(saves.current.sorted(), calls.current.map(\.count).sorted())
        try expectEqual(jobs.notes(), ["a", "b", "c", "d", "e", "k", "z"])
        try expectEqual(
            jobs.jobs { "\($0.state) \($0.attempt) \($0.claimedBy ?? "-") \($0.progress)" },
            Array(repeating: "done 1 - 1.0", count: 6)
        )
        expectEqual(worker.runningCount, 0)
    }

    @Test(.enabled(if: !StoreKind.isPostgreSQL, "SQLite's transactions"))
    func `a group costs one claim and one save`() async throws {
        let jobs = try JobStack(.sqlite)
        for number in 0..<24 { try jobs.enqueue(Write(text: "\(number)")) }
        let worker = jobs.worker("one", ["default": 8])
        worker.handle(Write.self, together: 8) { group in
            try await group.perform { context in
                for job in group.jobs { Note(context: context).text = job.text }
            }
        }
        let engine = try require(jobs.stack.coordinator.openStores.first?.rows as? SQLiteEngine)
        let commits = Shared(0)
        try engine.openFile().pool.setTrace { event in
            if event.sql.hasPrefix("COMMIT") { commits.update { $0 += 1 } }
        }
        try await expectEqual(worker.drain(atOnce: 8).done, 24)
        try engine.openFile().pool.setTrace(nil)
        // Three claims and three saves; reads are not committed, and a claim that finds nothing may be.
        expect((6...8).contains(commits.current), "\(commits.current)")
        try expectEqual(jobs.notes().count, 24)
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that makes its group fail is tried again, and the others are done once`(_ kind: StoreKind) async throws
    {
        let jobs = try JobStack(kind)
        for text in ["a", "bad", "c"] { try jobs.enqueue(Write(text: text)) }
        let calls = Shared<[[String]]>([])
        let worker = Self.worker(jobs, together: 8, calls)
        let counts = try await worker.drain(atOnce: 4)
        expect(counts.done == 2 && counts.retried == 1)
        expectEqual(calls.current.first, ["a", "bad", "c"])
        expectEqual(calls.current.dropFirst().sorted { $0[0] < $1[0] }, [["a"], ["bad"], ["c"]])
        try expectEqual(jobs.notes(), ["a", "c"])
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt)" }, ["done 1", "scheduled 1", "done 1"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a job that another worker has, and one that is to be cancelled, leave their group`(_ kind: StoreKind)
        async throws
    {
        let jobs = try JobStack(kind)
        for text in ["a", "lost", "c"] { try jobs.enqueue(Write(text: text)) }
        let (calls, isFirst) = (Shared<[[String]]>([]), Shared(true))
        let worker = jobs.worker("one", ["default": 4])
        worker.handle(Write.self, together: 4) { group in
            calls.update { $0.append(group.jobs.map(\.text)) }
            try await group.perform { context in
                for job in group.jobs { Note(context: context).text = job.text }
            }
            guard isFirst.current else { return }
            isFirst.update { $0 = false }
            try jobs.change { job in
                if job.payload.contains("lost") { job.claimedUntil = Date(timeIntervalSinceNow: -1) }
            }
            try await expectEqual(jobs.writer("two").drain().done, 1)
        }
        let counts = try await worker.drain(atOnce: 4)
        expect(counts.done == 2 && counts.lost == 1, "\(counts)")
        try expectEqual(jobs.notes(), ["a", "c", "lost"])
        try expectEqual(jobs.jobs { "\($0.state) \($0.attempt)" }, ["done 1", "done 2", "done 1"])

        for text in ["d", "e"] { try jobs.enqueue(Write(text: text)) }
        let begun = Steps()
        worker.handle(Write.self, together: 4) { group in
            if group.jobs.count > 1 {
                begun.pass()
                try await SystemJobClock().sleep(until: Date(timeIntervalSinceNow: 60))
            }
            try await group.perform { context in
                for job in group.jobs { Note(context: context).text = job.text }
            }
        }
        let draining = Task { try await worker.drain(atOnce: 4) }
        await begun.wait()
        try jobs.change { if $0.payload.contains("d\"") { $0.cancel() } }
        // The worker looks for requests when its clock moves.
        while worker.counts.cancelled == 0 {
            jobs.clock.advance(by: .seconds(1))
            await Task.yield()
        }
        _ = try await draining.value
        try expectEqual(jobs.notes(), ["a", "c", "e", "lost"])
        try expectEqual(jobs.jobs(JobStack.state).suffix(2), ["cancelled", "done"])
    }
}
