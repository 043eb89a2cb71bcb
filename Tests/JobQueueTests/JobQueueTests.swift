import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import JobQueue

/// A folder for a queue, which other processes may use as well.
private final class QueueFolder {
    let url: URL
    let container: NSPersistentContainer

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-jobs-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        container = try Self.open(url.path)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    static func open(_ folder: String) throws -> NSPersistentContainer {
        try QueueStore.open(at: URL(fileURLWithPath: folder).appendingPathComponent("queue.sqlite"))
    }

    func enqueue(_ count: Int64) async throws { try await enqueue(1...count) }

    func enqueue(_ numbers: ClosedRange<Int64>) async throws {
        let producer = Producer(container: container, logbook: try Logbook(Producer.name, in: url))
        try await producer.enqueue(numbers, in: container.newBackgroundContext())
    }

    func worker(_ name: String, lease: Double = 60) throws -> Worker {
        Worker(name, container: container, logbook: try Logbook(name, in: url), lease: lease)
    }

    func audit() async throws -> Audit { try await Audit(container, logbooks: url) }

    func status() async throws -> QueueStatus {
        let context = container.newBackgroundContext()
        return try await context.perform { try QueueStatus(context) }
    }
}

/// The tables that a monitor draws, in order.
private struct Drawing {
    private var texts: AsyncStream<String>.Iterator
    private(set) var tables: [String] = []

    init(_ texts: AsyncStream<String>) { self.texts = texts.makeAsyncIterator() }

    /// Waits for a table with all of these lines.
    ///
    /// Without lines it waits for the end.
    mutating func next(with lines: [String]) async {
        while let text = await texts.next() {
            tables.append(text)
            if !lines.isEmpty, lines.allSatisfy(text.contains) { return }
        }
    }
}

@Suite("The job queue")
struct JobQueueTests {
    @Test func `the classes make a model whose jobs can be claimed`() throws {
        let job = try require(try QueueStore.model.get().entitiesByName["Job"])

        let names = ClaimAttributes()
        expect(
            job.attributesByName[names.worker]?.isOptional == true
                && job.attributesByName[names.end]?.isOptional == true
        )
        expectEqual(job.indexes.map(\.name), ["byProgress"])
        expectEqual(job.managedObjectClassName, "JobQueue.Job")
    }

    @Test func `workers in several processes do every job once, also those of one that is killed`() async throws {
        let folder = try QueueFolder()
        try await folder.enqueue(200)
        let path = folder.url.path

        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let container = try QueueFolder.open(path)
            let logbook = try Logbook("victim", in: URL(fileURLWithPath: path))
            let worker = Worker("victim", container: container, logbook: logbook, lease: 0.5)
            let context = container.newBackgroundContext()
            context.name = "victim.1"
            try await worker.workOnce(in: context)
            let count = try await context.perform { try worker.claim(in: context).count }
            expectEqual(count, 8)
            kill(getpid(), SIGKILL)
        }
        try await expectEqual(folder.status().claimed, 8)
        await withTaskGroup(of: Void.self) { group in
            for name in ["one", "two", "three"] {
                group.addTask {
                    await #expect(processExitsWith: .success) { [path = path as String, name = name as String] in
                        let container = try QueueFolder.open(path)
                        let logbook = try Logbook(name, in: URL(fileURLWithPath: path))
                        let worker = Worker(name, container: container, logbook: logbook, lease: 30)
                        let counting = container.newBackgroundContext()
                        try await worker.run(contexts: 2) {
                            counting.performAndWait {
                                (try? counting.count(for: Job.request("isDone == NO"))) == 0
                            }
                        }
                    }
                }
            }
        }

        let audit = try await folder.audit()
        expectEqual(audit.faults, [])
        expectEqual(audit.jobs, 200)
        let status = try await folder.status()
        expect(status.done == 200 && status.waiting == 0 && status.claimed == 0)
        expectEqual(status.doneByWorker["victim"], 8)
        expectEqual(status.doneByWorker.values.reduce(0, +), 200)
    }

    @Test func `a job that ends after its lease has run out leaves nothing behind`() async throws {
        let folder = try QueueFolder()
        try await folder.enqueue(3)
        let (slow, fast) = (try folder.worker("slow", lease: 1e-9), try folder.worker("fast"))
        let slowContext = folder.container.newBackgroundContext()
        slowContext.name = "slow.1"
        let fastContext = folder.container.newBackgroundContext()
        fastContext.name = "fast.1"

        let claimed = try await slowContext.perform { try slow.claim(in: slowContext) }
        expectEqual(claimed.count, 3)
        try await expectEqual(fast.workOnce(in: fastContext), 3)
        for claim in claimed {
            let number = try await slowContext.perform {
                try slow.finish(claim, Job.result(of: claim.payload), in: slowContext)
            }
            expectEqual(number, nil)
        }

        expectEqual(slow.countsSoFar, Worker.Counts(done: 0, expired: 3))
        try await expectEqual(folder.audit().faults, [])
        try await expectEqual(folder.status().doneByWorker, ["fast": 3])
    }

    @Test func `a claim that another follows between look and save ends with nothing saved`() async throws {
        let folder = try QueueFolder()
        try await folder.enqueue(1)
        let (slow, fast) = (try folder.worker("slow", lease: 1e-9), try folder.worker("fast"))
        let slowContext = folder.container.newBackgroundContext()
        slowContext.name = "slow.1"
        slowContext.retainsRegisteredObjects = true
        let fastContext = folder.container.newBackgroundContext()
        fastContext.name = "fast.1"
        let claim = try require(try await slowContext.perform { try slow.claim(in: slowContext) }.first)
        try await expectEqual(fast.workOnce(in: fastContext), 1)

        // The context keeps the job as it was when it was claimed, so only the save can find the other claim.
        let number = try await slowContext.perform { try slow.finish(claim, 0, in: slowContext) }

        expect(number == nil && slow.countsSoFar.expired == 1)
        try await expectEqual(folder.audit().faults, [])
    }

    @Test func `contexts that claim at the same time get different jobs, and the oldest ones first`() async throws {
        let folder = try QueueFolder()
        try await folder.enqueue(20)
        let worker = try folder.worker("worker")
        let container = folder.container
        @Sendable func claim(_ number: Int) async throws -> [String] {
            let context = container.newBackgroundContext()
            context.name = "worker.\(number)"
            return try await context.perform { try worker.claim(in: context).map(\.payload) }
        }
        async let first = claim(1)
        async let second = claim(2)

        let claimed = try await first + second
        expectEqual(claimed.count, 16)
        expectEqual(Set(claimed), Set((1...16).map { Job.payload($0) }))
        try await expectEqual(claim(3), (17...20).map { Job.payload($0) })
        try await expectEqual(folder.status().claimed, 20)
    }

    @Test func `the audit finds what is lost, done twice, or not done`() async throws {
        let folder = try QueueFolder()
        try await folder.enqueue(20)
        let worker = try folder.worker("worker")
        let context = folder.container.newBackgroundContext()
        context.name = "worker.1"
        while try await worker.workOnce(in: context) > 0 {}
        try await expect(folder.audit().isSound)

        try await context.perform {
            let request = NSFetchRequest<Job>(entityName: "Job")
            request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
            let jobs = try context.fetch(request)
            context.delete(jobs[0])
            let receipt = Receipt(context: context)
            receipt.worker = "other.1"
            receipt.finishedAt = Date()
            receipt.result = Job.result(of: jobs[1].payload)
            receipt.job = jobs[1]
            jobs[2].receipts.forEach(context.delete)
            jobs[3].isDone = false
            jobs[4].receipts.first?.result = 0
            try context.save()
        }

        let faults = try await folder.audit().faults
        expect(faults.contains("job 1, which producer has saved, is lost"))
        expect(faults.contains("job 1, which worker has saved, is lost"))
        expect(faults.contains { $0.hasPrefix("job 2 was done 2 times") })
        expect(faults.contains("job 3 is done, but nobody has done it"))
        expect(faults.contains("the receipt of job 3, which worker has saved, is lost"))
        expect(faults.contains("job 4 has a receipt, but is not done"))
        expect(faults.contains("job 5 has a wrong result"))
        expectEqual(faults.count, 7)
    }

    @Test func `a logbook leaves out the line that its process had no time to end`() throws {
        let folder = try QueueFolder()
        let logbook = try Logbook("a", in: folder.url)
        logbook.note([1, 2])
        logbook.note([3])
        let path = folder.url.appendingPathComponent("b.log")
        try "4\n5\n6".write(to: path, atomically: false, encoding: .utf8)

        try expectEqual(Logbook.numbers("a", in: folder.url), [1, 2, 3])
        try expectEqual(Logbook.numbers("b", in: folder.url), [4, 5])
        try expectEqual(Logbook.names(in: folder.url), ["a", "b"])
    }

    @Test func `the arguments name a role and its options`() throws {
        let options = try Options.parse(["work", "--name=w", "--contexts", "3", "--lease", "0.5", "--supervised"])
        expect(options.role == .work && options.name == "w" && options.contexts == 3)
        expect(options.lease == 0.5 && options.isSupervised)
        try expectEqual(Options.parse([]).role, .demo)
        expectThrows(UsageError.self) { try Options.parse(["work", "--name", "a.b"]) }
        expectThrows(UsageError.self) { try Options.parse(["--seconds", "x"]) }
        expectThrows(UsageError.self) { try Options.parse(["frob"]) }
    }

    @Test func `the monitor shows states and workers`() {
        var status = QueueStatus()
        status.waiting = 3
        status.done = 12
        status.doneByWorker = ["worker-2": 5, "worker-1": 7]

        expectEqual(Monitor.line(status, 41.7), "waiting 3  claimed 0  done 12  41/s  (worker-1 7, worker-2 5)")
        let table = Monitor.table(status, 41.7)
        expect(table.first == "  waiting             3" && table.last == "  worker-2            5")
    }

    @Test(.timeLimit(.minutes(20)))
    func `the monitor's table follows what another process commits, drawn over the last one`() async throws {
        let folder = try QueueFolder()
        let path = folder.url.path
        try await folder.enqueue(5)
        let (drawn, drawing) = AsyncStream.makeStream(of: String.self)
        // Without a commit the monitor would look again only after the test.
        let monitor = Monitor(container: folder.container, isTerminal: true, patience: 300) { drawing.yield($0) }
        let isOver = Shared(false)
        async let watching: Void = monitor.run { isOver.current }
        var status = QueueStatus()
        status.waiting = 5
        var drawings = Drawing(drawn)
        await drawings.next(with: Array(Monitor.table(status, 0).prefix(3)))

        await #expect(processExitsWith: .success) { [path = path as String] in
            let container = try QueueFolder.open(path)
            let logbook = try Logbook("other", in: URL(fileURLWithPath: path))
            let worker = Worker("other", container: container, logbook: logbook, lease: 60)
            let context = container.newBackgroundContext()
            context.name = "other.1"
            try await expectEqual(worker.workOnce(in: context), 5)
        }
        status.waiting = 0
        status.done = 5
        status.doneByWorker = ["other": 5]
        let table = Monitor.table(status, 0)
        await drawings.next(with: Array(table.prefix(3) + table.suffix(1)))
        isOver.update { $0 = true }
        // This commit rings the doorbell once more.
        try await folder.enqueue(6...6)
        try await watching
        drawing.finish()
        await drawings.next(with: [])

        let tables = drawings.tables
        expect(tables.count >= 3 && tables[0].hasPrefix("  waiting"))
        for (last, next) in zip(tables, tables.dropFirst()) {
            let height = last.count { $0 == "\n" }
            expect(next.hasPrefix("\u{1B}[\(height)A  waiting"))
        }
    }

    @Test(.timeLimit(.minutes(20)))
    func `a wait for the doorbell does not miss a ring between look and wait`() async {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel())
        let doorbell = Doorbell(coordinator)
        let count = doorbell.count
        NotificationCenter.default.post(name: .NSPersistentStoreRemoteChange, object: coordinator)
        await doorbell.wait(beyond: count, atMost: 300)
        expectEqual(doorbell.count, count + 1)
        // No commit rings the doorbell here.
        await doorbell.wait(beyond: count + 1, atMost: 0.01)
        expectEqual(doorbell.count, count + 1)
    }

    // The steps are scripted, so a correct program never reaches the deadlines. They are long since other programs may
    // hold up its threads.
    @Test(.timeLimit(.minutes(10)))
    func `a process is paused when all of its threads stand still`() async throws {
        expectEqual(ThreadState(stat: "12 (a) R (b) T 1 12")?.standsStill, true)
        expectEqual(ThreadState(stat: "12 (T) T) R 1 12")?.standsStill, false)
        expectEqual(ThreadState(stat: "12"), nil)
        expectEqual(ThreadState.all(of: .max), nil)

        let child = try Child(["-c", "read line"], program: URL(fileURLWithPath: "/bin/sh"))
        let looks = Shared<[String]>(["RST", "TTS", "TTZ", "TTT"])
        try await child.pause(within: 300) { _ in
            let letters = looks.current.first ?? ""
            looks.update { $0 = Array($0.dropFirst()) }
            return letters.compactMap { ThreadState(stat: "1 (name) \($0) 1") }
        }
        expectEqual(looks.current, ["TTT"])
        #if os(Linux)
        try await child.pause(within: 300) { process in
            let states = ThreadState.all(of: process)
            expectEqual(states?.isEmpty, false)
            return states
        }
        expectEqual(ThreadState.all(of: child.processID)?.allSatisfy { $0.letter == "T" }, true)
        #endif
        // A process that goes on is reported without a wait for the rest of the deadline.
        await expectThrows(QueueError.self) {
            try await child.pause(within: 0) { _ in [ThreadState(stat: "1 (name) R 1")].compactMap(\.self) }
        }
        child.goOn()
        try await expectEqual(child.endedWhenAsked(within: 300), 1)
    }
}
