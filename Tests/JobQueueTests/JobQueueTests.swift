import CoreData
import CoreDataJobs
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

    /// A worker that runs one job at a time.
    static func worker(_ name: String, in folder: String, lease: Double = 60) throws -> Worker {
        let logbook = try Logbook(name, in: URL(fileURLWithPath: folder))
        return Worker(name, container: try open(folder), logbook: logbook, runs: 1, lease: lease)
    }

    func worker(_ name: String) throws -> Worker {
        Worker(name, container: container, logbook: try Logbook(name, in: url))
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
    @Test func `workers in several processes do every job once, also the one of a worker that is killed`() async throws
    {
        let folder = try QueueFolder()
        try await folder.enqueue(200)
        let path = folder.url.path

        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let worker = try QueueFolder.worker("victim", in: path, lease: 0.1)
            worker.jobs.handle(Checksum.self) { run in
                try await Worker.work(on: run, as: "victim")
                // The receipt of this job is not saved.
                if run.job.number == 9 { kill(getpid(), SIGKILL) }
            }
            try await worker.jobs.drain()
        }
        try await expectEqual(folder.status().jobs, [.ready: 191, .running: 1, .done: 8])
        await withTaskGroup(of: Void.self) { group in
            for name in ["one", "two", "three"] {
                group.addTask {
                    await #expect(processExitsWith: .success) { [path = path as String, name = name as String] in
                        let worker = try QueueFolder.worker(name, in: path)
                        let context = try QueueFolder.open(path).newBackgroundContext()
                        // The victim's lease may not have ended when everything else is done.
                        while try await context.perform({ try QueueStatus(context).open }) > 0 {
                            try await worker.jobs.drain()
                        }
                    }
                }
            }
        }

        let audit = try await folder.audit()
        expectEqual(audit.faults, [])
        expectEqual(audit.jobs, 200)
        let status = try await folder.status()
        expectEqual(status.jobs, [.done: 200])
        expectEqual(status.receipts["victim"], 8)
        expectEqual(status.receipts.values.reduce(0, +), 200)
    }

    @Test func `producers, workers and the audit read nothing one by one`() async throws {
        let folder = try QueueFolder()
        let metrics = PrometheusInstrument()
        folder.container.persistentStoreCoordinator.instrument = metrics
        try await folder.enqueue(40)
        try await expectEqual(folder.worker("worker").jobs.drain().done, 40)
        try await expectEqual(folder.audit().faults, [])
        try await expectEqual(folder.status().jobs, [.done: 40])
        expect(metrics.count(of: .fetch) > 0 && metrics.count(of: .repeatedReads) == 0)
    }

    @Test func `the audit finds what is lost, done twice, or not done`() async throws {
        let folder = try QueueFolder()
        try await folder.enqueue(8)
        let worker = try folder.worker("worker")
        try await expectEqual(worker.jobs.drain().done, 8)
        try await expectEqual(folder.audit().faults, [])
        try await folder.enqueue(6...7)
        let context = folder.container.newBackgroundContext()
        try await context.perform {
            let jobs = try context.fetch(QueuedJob.request())
            func job(_ number: Int64) throws -> QueuedJob {
                try require(try jobs.first { try $0.payload(as: Checksum.self).number == number })
            }
            let receipts = Dictionary(
                uniqueKeysWithValues: try context.fetch(NSFetchRequest<Receipt>(entityName: "Receipt")).map {
                    ($0.number, $0)
                }
            )
            context.delete(try job(1))
            let receipt = Receipt(context: context)
            (receipt.number, receipt.worker, receipt.finishedAt) = (2, "other", Date())
            receipt.result = Checksum.result(of: Checksum.document(2))
            context.delete(try require(receipts[3]))
            receipts[4]?.result = 0
            try context.enqueue(Checksum(number: 9)).cancel()
            try context.save()
        }

        let faults = try await folder.audit().faults
        expectEqual(
            faults.sorted(),
            [
                "job 1 is in the queue 0 times",
                "job 1, which producer has saved, is lost",
                "job 2 was done 2 times, by [\"worker\", \"other\"]",
                "job 3 was done 0 times, by []",
                "job 4 has a wrong result",
                "job 6 is in the queue 2 times",
                "job 6 is ready, and not done",
                "job 7 is in the queue 2 times",
                "job 7 is ready, and not done",
                "job 9 is cancelled, and not done",
                "job 9 was done 0 times, by []",
                "producer has noted a job twice",
                "the receipt of job 3, which worker has saved, is lost",
            ]
        )
    }

    @Test func `a producer goes on with the next number, until the queue is long enough or the time is over`()
        async throws
    {
        let folder = try QueueFolder()
        try await folder.enqueue(3)
        var producer = Producer(container: folder.container, logbook: try Logbook(Producer.name, in: folder.url))
        (producer.batch, producer.backlog) = (4, 8)
        try await producer.run(until: .distantPast)
        try await expectEqual(folder.status().jobs, [.ready: 3])
        let producing = Task { [producer] in try await producer.run(until: .distantFuture) }
        while try await folder.status().open < 11 { await Task.yield() }
        producing.cancel()
        try await producing.value
        try await expectEqual(folder.status().jobs, [.ready: 11])
        try expectEqual(Logbook.numbers(Producer.name, in: folder.url), Array(1...11))
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
        status.jobs = [.ready: 3, .done: 12]
        status.receipts = ["worker-2": 5, "worker-1": 7]

        expectEqual(Monitor.line(status, 41.7), "ready 3  running 0  done 12  41/s  (worker-1 7, worker-2 5)")
        let table = Monitor.table(status, 41.7)
        expect(table.first == "  ready               3" && table.last == "  worker-2            5")
    }

    @Test(.timeLimit(.minutes(20)))
    func `the monitor's table follows what another process commits, drawn over the last one`() async throws {
        let folder = try QueueFolder()
        let path = folder.url.path
        try await folder.enqueue(5)
        let (drawn, drawing) = AsyncStream.makeStream(of: String.self)
        // Only a commit makes the monitor look again.
        let monitor = Monitor(container: folder.container, isTerminal: true) { drawing.yield($0) }
        let watching = Task { try await monitor.run() }
        var status = QueueStatus()
        status.jobs = [.ready: 5]
        var drawings = Drawing(drawn)
        await drawings.next(with: Array(Monitor.table(status, 0).prefix(3)))

        await #expect(processExitsWith: .success) { [path = path as String] in
            let worker = try QueueFolder.worker("other", in: path)
            try await expectEqual(worker.jobs.drain().done, 5)
        }
        status.jobs = [.done: 5]
        status.receipts = ["other": 5]
        let table = Monitor.table(status, 0)
        await drawings.next(with: Array(table.prefix(3) + table.suffix(1)))
        watching.cancel()
        try await watching.value
        drawing.finish()
        await drawings.next(with: [])

        let tables = drawings.tables
        expect(tables.count >= 3 && tables[0].hasPrefix("  ready"))
        for (last, next) in zip(tables, tables.dropFirst()) {
            let height = last.count { $0 == "\n" }
            expect(next.hasPrefix("\u{1B}[\(height)A  ready"))
        }
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
