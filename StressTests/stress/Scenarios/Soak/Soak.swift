import CoreData
import LoadFigures
import StrataLocks

/// A steady mixed load, in which contexts of all kinds come and go.
///
/// Memory, files, threads and the log must level off, and nothing may get slower.
enum Soak: Scenario {
    static let name = "soak"
    static let summary = "steady mixed load: memory, descriptors, threads, contexts and files level off, latencies hold"
    static let seconds = 12.0
    static let work = (figure: "saves", floor: 100)
    static let sabotages = [
        Sabotage("leak", "resident memory"), Sabotage("open-files", "descriptors"), Sabotage("slower", "takes"),
        Sabotage("kept-contexts", "live contexts"),
    ]
    /// The rows that stay for the whole run.
    static let rows = 400

    static func run(_ run: Run) throws {
        let stack = try run.open(run.kind == .sqlite ? [NSPersistentHistoryTrackingKey: true] : nil)
        let maker = stack.context()
        try maker.performAndWait {
            for serial in 0..<rows { Node(context: maker).serial = Int64(serial) }
            try maker.save()
        }
        let writers = 2
        let readers = run.options.contexts
        let samples = Locked<[SoakSample]>([])
        run.race(writers + readers + 2) { worker in
            switch worker.number {
            case ..<writers: try SoakWriter.work(worker, stack)
            case ..<(writers + readers): try SoakReader.work(worker, stack)
            case writers + readers: try purge(worker, stack)
            default:
                let taken = watch(worker)
                samples.withLock { $0 = taken }
            }
        }
        judge(run, samples.withLock { $0 })
        SoakTimes.judge(run)
        SoakCensus.judge(run)
        try run.close(stack)
        try run.audit()
    }

    /// Reads the history and purges what was read, so that the history does not make the file grow.
    private static func purge(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        guard worker.run.kind == .sqlite else { return }
        let context = stack.context()
        var token: NSPersistentHistoryToken?
        while !worker.isOver {
            worker.beat("the history")
            let read = try context.performAndWait { () -> (NSPersistentHistoryToken?, Int) in
                let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
                let told = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
                guard let last = told.last?.token else { return (nil, 0) }
                _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: last))
                return (last, told.count)
            }
            token = read.0 ?? token
            worker.tally.count("transactions", read.1)
            usleep(50_000)
        }
    }

    // MARK: - Measuring

    private static func watch(_ worker: Worker) -> [SoakSample] {
        var samples: [SoakSample] = []
        // A run of hours takes no more samples than one of minutes.
        let seconds = (worker.run.end - worker.run.start) / .seconds(1)
        let interval = UInt32(max(0.1, seconds / 3_000) * 1e6)
        while !worker.isOver {
            worker.beat("taking a sample")
            samples.append(SoakSample(worker.run))
            usleep(interval)
        }
        return samples
    }

    /// Compares the second third of the time with the last third.
    ///
    /// The first third is for warming up.
    private static func judge(_ run: Run, _ samples: [SoakSample]) {
        guard let first = samples.first, let last = samples.last, samples.count >= 9 else {
            return run.find("only \(samples.count) samples were taken")
        }
        let third = samples.count / 3
        func middle(_ part: ArraySlice<SoakSample>, _ value: (SoakSample) -> Int) -> Int {
            part.map(value).sorted()[part.count / 2]
        }
        func growth(_ value: (SoakSample) -> Int) -> Int {
            middle(samples.suffix(third), value) - middle(samples.dropFirst(third).prefix(third), value)
        }
        let hours = (last.seconds - first.seconds) / 3 / 3600
        // A short run is still warming up.
        let memory = last.seconds > 600 ? 4_096 : 12_288
        let margins: [(name: String, margin: Int, value: (SoakSample) -> Int)] = [
            ("resident memory, KiB", memory, \.residentKiB), ("descriptors", 6, \.descriptors),
            ("threads", 8, \.threads), ("live contexts", 20, \.contexts), ("the log, KiB", 34_000, \.logKiB),
            ("the file, KiB", 1_024, \.fileKiB),
        ]
        for (name, margin, value) in margins {
            let more = growth(value)
            let perHour = Int(Double(more) / max(hours, 1e-6))
            if more > margin { run.find("\(name): \(more) more in the last third than before, \(perHour) an hour") }
        }
        run.count("rss-growth-kib", growth(\.residentKiB))
        run.count("rss-kib", last.residentKiB)
        run.count("descriptors", last.descriptors)
        run.count("threads", last.threads)
        run.count("live-contexts", last.contexts)
        run.count("log-max-kib", samples.map(\.logKiB).max() ?? 0)
        run.count("file-growth-kib", growth(\.fileKiB))
        run.count("samples", samples.count)
    }
}
