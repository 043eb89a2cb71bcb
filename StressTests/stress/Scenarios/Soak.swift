import CoreData

/// A steady mixed day: contexts come and go, save, fetch and merge; memory, files, threads and the log level off.
enum Soak: Scenario {
    static let name = "soak"
    static let summary = "steady mixed load: memory, descriptors, threads and the log level off, latencies hold"
    static let seconds = 12.0
    static let work = (figure: "saves", floor: 100)
    static let sabotages = [Sabotage("leak", "resident memory"), Sabotage("open-files", "descriptors")]

    /// What the process takes at one moment.
    private struct Sample {
        var seconds: Double
        var residentKiB: Int
        var descriptors: Int
        var threads: Int
        var logKiB: Int
    }

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let maker = stack.context()
        try maker.performAndWait {
            for serial in 0..<400 { Node(context: maker).serial = Int64(serial) }
            try maker.save()
        }
        let writers = 2
        var samples: [Sample] = []
        let sampler = run.options.contexts + writers
        let box = SampleBox()
        run.race(sampler + 1) { worker in
            switch worker.number {
            case 0..<writers: try write(worker, stack)
            case sampler: box.samples = watch(worker)
            default: try read(worker, stack)
            }
        }
        samples = box.samples
        judge(run, samples)
        try run.close(stack)
        try run.audit()
    }

    // MARK: - Load

    private static func write(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        while !worker.isOver {
            worker.beat("a small save")
            let context = stack.context(.mergeByPropertyObjectTrump)
            try context.performAndWait {
                let request = NSFetchRequest<Node>(entityName: "Node")
                request.predicate = NSPredicate(format: "serial == %@", worker.stream.below(400))
                guard let node = try context.fetch(request).first else { return }
                node.first += 1
                node.label = String(repeating: "z", count: worker.stream.below(200))
                let child = Node(context: context)
                child.serial = 1_000 + Int64(worker.number)
                // As many go as come.
                request.predicate = NSPredicate(format: "serial == %@", 1_000 + worker.number)
                request.includesPendingChanges = false
                for old in try context.fetch(request) { context.delete(old) }
                try worker.time("save") { try context.save() }
            }
            worker.tally.count("saves")
            if worker.run.isSabotaged("leak") { Leaks.keep(Array(repeating: UInt8(1), count: 200_000)) }
            if worker.run.isSabotaged("open-files") { _ = open("/dev/null", O_RDONLY) }
            usleep(1_000)
        }
    }

    private static func read(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let following = stack.context()
        following.automaticallyMergesChangesFromParent = true
        while !worker.isOver {
            worker.beat("a fetch")
            let context = worker.stream.chance(0.5) ? following : stack.context()
            try worker.time("fetch") {
                try context.performAndWait {
                    let request = NSFetchRequest<Node>(entityName: "Node")
                    request.predicate = NSPredicate(format: "first >= %@", worker.stream.below(4))
                    request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
                    request.fetchLimit = 50
                    for node in try context.fetch(request) { _ = node.label }
                }
            }
            worker.tally.count("fetches")
            usleep(2_000)
        }
    }

    // MARK: - Measuring

    private static func watch(_ worker: Worker) -> [Sample] {
        var samples: [Sample] = []
        let log = worker.run.storeURL.path + "-wal"
        let interval = UInt32(100_000)
        while !worker.isOver {
            worker.beat("taking a sample")
            let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            func line(_ name: String) -> Int {
                let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
                return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
            }
            let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
            let attributes = try? FileManager.default.attributesOfItem(atPath: log)
            let took = (ContinuousClock.now - worker.run.start).components
            samples.append(
                Sample(
                    seconds: Double(took.seconds) + Double(took.attoseconds) / 1e18,
                    residentKiB: line("VmRSS"),
                    descriptors: descriptors,
                    threads: line("Threads"),
                    logKiB: (attributes?[.size] as? Int ?? 0) / 1024
                )
            )
            usleep(interval)
        }
        return samples
    }

    /// Compares the second third of the time with the last: the first is for warming up.
    private static func judge(_ run: Run, _ samples: [Sample]) {
        guard samples.count >= 9 else { return run.find("only \(samples.count) samples were taken") }
        let third = samples.count / 3
        func middle(_ part: ArraySlice<Sample>, _ value: (Sample) -> Int) -> Int {
            part.map(value).sorted()[part.count / 2]
        }
        func growth(_ value: (Sample) -> Int) -> Int {
            middle(samples.suffix(third), value) - middle(samples.dropFirst(third).prefix(third), value)
        }
        let hours = (samples[samples.count - 1].seconds - samples[0].seconds) / 3 / 3600
        let margins: [(name: String, margin: Int, value: (Sample) -> Int)] = [
            ("resident memory, KiB", 12_000, \.residentKiB), ("descriptors", 6, \.descriptors),
            ("threads", 8, \.threads), ("the log, KiB", 34_000, \.logKiB),
        ]
        for (name, margin, value) in margins {
            let more = growth(value)
            let perHour = Int(Double(more) / max(hours, 1e-6))
            if more > margin { run.find("\(name): \(more) more in the last third than before, \(perHour) an hour") }
        }
        run.count("rss-growth-kib", growth(\.residentKiB))
        run.count("rss-kib", samples[samples.count - 1].residentKiB)
        run.count("descriptors", samples[samples.count - 1].descriptors)
        run.count("threads", samples[samples.count - 1].threads)
        run.count("log-max-kib", samples.map(\.logKiB).max() ?? 0)
        run.count("samples", samples.count)
    }

    /// Carries the samples from the thread that took them.
    private final class SampleBox: @unchecked Sendable {
        // @unchecked Sendable: written by one thread, read after that one has ended.
        var samples: [Sample] = []
    }
}

/// What a sabotage never frees.
private enum Leaks {
    // nonisolated(unsafe): guarded by the lock.
    nonisolated(unsafe) private static var all: [[UInt8]] = []
    private static let lock = NSLock()

    static func keep(_ bytes: [UInt8]) { lock.withLock { all.append(bytes) } }
}
