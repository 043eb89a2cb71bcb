#if canImport(CoreDataPostgreSQL)
import CoreData
import CoreDataPostgreSQL
import Foundation
import Synchronization

/// Runs the framework and raw libpq in turn on one server, and compares them.
struct PostgreSQLBench {
    let url: String
    let options: BenchOptions
    private let scale: Scale
    static let rawSchema = "bench_raw"

    /// Measures the workloads, and prints a table.
    static func run(_ workloads: [PostgreSQLWorkload], _ options: BenchOptions) throws {
        guard let url = ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"] else {
            throw BenchError(
                "Start it beside a server: Tests/postgresql-server.sh run \(CommandLine.arguments[0]) --store postgresql"
            )
        }
        let distant =
            options.roundTrip > 0 ? try DistantServer(url, roundTrip: .milliseconds(options.roundTrip)) : nil
        defer { distant?.close() }
        let bench = PostgreSQLBench(url: distant?.url ?? url, options: options, scale: Scale(venues: options.rows))
        let distance = options.roundTrip > 0 ? ", a round trip takes \(options.roundTrip) ms longer" : ""
        print("\(options.rows) rows, medians of \(options.runs) runs\(distance)")
        for workload in workloads {
            // Each line is written at once, so that a waiting user sees it.
            FileHandle.standardOutput.write(Data((try bench.line(workload) + "\n").utf8))
        }
    }

    private func line(_ workload: PostgreSQLWorkload) throws -> String {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        let start = padded(workload.rawValue, 5) + padded(workload.summary, 75)
        func text(_ value: Double) -> String { String(format: value < 10 ? "%.2f" : "%.0f", value) }
        if workload == .remoteChange {
            let median = try remoteChanges()
            return start
                + "\(text(median)) ms, goal ≤ \(text(workload.goal)) ms\(median > workload.goal ? " missed" : "")"
        }
        if workload == .manyWriters { return start + (try manyWriters(workload.goal)) }
        if workload == .migration {
            return start
                + (try withStore { place in
                    try UnnoticedMigration(
                        at: place,
                        server: url,
                        schema: Self.schema(place),
                        rows: options.rows,
                        seconds: options.seconds
                    ).measure(goal: workload.goal)
                })
        }
        var raw: [Double] = []
        var framework: [Double] = []
        // The first round warms up caches and is not counted.
        for round in 0...options.runs {
            let isRawFirst = round % 2 == 0
            var sums: [Int] = []
            for isRaw in [isRawFirst, !isRawFirst] {
                let (value, checksum) = try isRaw ? rawValue(workload) : frameworkValue(workload)
                sums.append(checksum)
                if round > 0 { if isRaw { raw.append(value) } else { framework.append(value) } }
            }
            guard workload == .writers || sums[0] == sums[1] else {
                throw BenchError("The two sides of \(workload.rawValue) did different work: \(sums)")
            }
        }
        let (one, other) = (Self.median(raw), Self.median(framework))
        let ratio = other / one
        if workload == .writers {
            return start
                + "raw \(text(one)) saves a second, coredata \(text(other)), share \(text(ratio)), goal ≥ \(text(workload.goal))\(ratio < workload.goal ? " missed" : "")"
        }
        let memory = workload == .readEverything ? try peaks() : ""
        if workload.processes != nil {
            let (raw, framework) = (Double(scale.jobs) * 1000 / one, Double(scale.jobs) * 1000 / other)
            return start
                + "raw \(text(raw)) jobs a second, coredata \(text(framework)), ratio \(text(ratio)), goal ≤ \(text(workload.goal))\(ratio > workload.goal ? " missed" : "")"
        }
        return start
            + "raw \(text(one)) ms, coredata \(text(other)) ms, ratio \(text(ratio)), goal ≤ \(text(workload.goal))\(ratio > workload.goal ? " missed" : "")\(memory)"
    }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? .nan : sorted[sorted.count / 2]
    }

    private static func value(_ sample: Sample) -> (Double, Int) {
        (sample.duration / .milliseconds(1), sample.checksum)
    }

    // MARK: - Raw libpq

    private func rawValue(_ workload: PostgreSQLWorkload) throws -> (Double, Int) {
        // The raw side has no history, so the framework without a history is the comparison.
        if workload == .history { return try historyValue(false) }
        if workload == .jobAmongMany { return try takenJobs(waiting: Scale.fewWaitingJobs) }
        let database = try needsRows(workload) ? filledRawDatabase() : RawPostgreSQL(url, schema: Self.rawSchema)
        if !needsRows(workload) { try RawPostgreSQLSide.create(database) }
        switch workload {
        case .insert: return Self.value(try RawPostgreSQLSide.insert(database, scale, venuesPerSave: scale.venues))
        case .insertInBatches, .insertWithKeys:
            if workload == .insertWithKeys { try RawPostgreSQLSide.addForeignKey(database) }
            return Self.value(try RawPostgreSQLSide.insert(database, scale, venuesPerSave: Scale.venuesPerBatch))
        case .readEverything: return Self.value(try RawPostgreSQLSide.readEverything(database))
        case .lookUp: return Self.value(try RawPostgreSQLSide.lookUp(database, scale))
        case .gather: return Self.value(try RawPostgreSQLSide.gather(database, scale))
        case .change: return Self.value(try RawPostgreSQLSide.change(database, scale))
        case .changeLocked: return Self.value(try RawPostgreSQLSide.changeLocked(database, scale))
        case .batchUpdate: return Self.value(try RawPostgreSQLSide.updateBatch(database))
        case .batchDelete: return Self.value(try RawPostgreSQLSide.deleteBatch(database, scale))
        case .batchInsert: return Self.value(try RawPostgreSQLSide.insertBatch(database, scale))
        case .writers:
            let count = try RawPostgreSQLSide.writers(url, Self.rawSchema, Self.writers, seconds: options.seconds)
            return (Double(count) / options.seconds, 0)
        case .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne:
            return Self.value(try RawPostgreSQLSide.doJobs(database, url, scale.jobs, workload.processes ?? 1))
        case .history, .remoteChange, .manyWriters, .jobAmongMany, .migration: return (.nan, 0)
        }
    }

    /// Fills the table, and opens a new session, which has not seen the table yet, like the one that the framework
    /// then has.
    private func filledRawDatabase() throws -> RawPostgreSQL {
        let filling = try RawPostgreSQL(url, schema: Self.rawSchema)
        try RawPostgreSQLSide.create(filling)
        _ = try RawPostgreSQLSide.insert(filling, scale, venuesPerSave: scale.venues)
        try filling.execute("ANALYZE venue")
        return try RawPostgreSQL(url, schema: Self.rawSchema)
    }

    private func needsRows(_ workload: PostgreSQLWorkload) -> Bool {
        [.readEverything, .lookUp, .gather, .change, .changeLocked, .batchUpdate].contains(workload)
    }

    // MARK: - The framework

    private func frameworkValue(_ workload: PostgreSQLWorkload) throws -> (Double, Int) {
        if workload == .history { return try historyValue(true) }
        if workload == .jobAmongMany { return try takenJobs(waiting: scale.venues) }
        if let processes = workload.processes {
            return Self.value(
                try withStore { place in
                    try FrameworkSide.doJobs(at: place, count: scale.jobs) {
                        let part: ChildPart =
                            workload == .jobQueueOneByOne
                            ? .frameworkWorkerOfPostgreSQLOneByOne : .frameworkWorkerOfPostgreSQL
                        return try WorkerProcesses.run(part, in: place.absoluteString, processes)
                    }
                }
            )
        }
        return try withStore { place in
            func open() throws -> FrameworkSide.Stack { try openStack(place) }
            if needsRows(workload) { try fill(place) }
            // A new coordinator has an empty row cache.
            let stack = try open()
            defer { stack.close() }
            switch workload {
            case .insert:
                return Self.value(try FrameworkSide.insert(into: stack, scale: scale, venuesPerSave: scale.venues))
            case .insertInBatches, .insertWithKeys:
                return Self.value(
                    try FrameworkSide.insert(into: stack, scale: scale, venuesPerSave: Scale.venuesPerBatch)
                )
            case .readEverything: return Self.value(try FrameworkSide.readEverything(stack))
            case .lookUp: return Self.value(try FrameworkSide.lookUp(stack, scale: scale))
            case .gather: return Self.value(try gather(stack))
            case .change: return Self.value(try FrameworkSide.change(stack, scale: scale))
            case .changeLocked: return Self.value(try FrameworkSide.changeLocked(stack, scale: scale))
            case .batchUpdate: return Self.value(try FrameworkSide.updateBatch(stack))
            case .batchDelete: return Self.value(try FrameworkSide.deleteBatch(stack, scale: scale))
            case .batchInsert: return Self.value(try FrameworkSide.insertBatch(stack, scale: scale))
            case .writers: return (Double(try write(stack)) / options.seconds, 0)
            case .history, .remoteChange, .manyWriters, .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne,
                .jobAmongMany, .migration:
                return (.nan, 0)
            }
        }
    }

    private func fill(_ place: URL) throws {
        let stack = try openStack(place)
        _ = try FrameworkSide.insert(into: stack, scale: scale, venuesPerSave: scale.venues)
        stack.close()
        try RawPostgreSQL(url, schema: Self.rawSchema).execute("ANALYZE \(Self.schema(place)).venue")
    }

    private func takenJobs(waiting: Int) throws -> (Double, Int) {
        Self.value(try withStore { try FrameworkSide.takeJobs(at: $0, waiting: waiting) })
    }

    private func historyValue(_ isOn: Bool) throws -> (Double, Int) {
        try withStore { place in
            let stack = try openStack(place, [NSPersistentHistoryTrackingKey: isOn])
            defer { stack.close() }
            return Self.value(try FrameworkSide.insert(into: stack, scale: scale, venuesPerSave: Scale.venuesPerBatch))
        }
    }

    /// Fetches the rows of objects that are known by their IDs, all at once.
    private func gather(_ stack: FrameworkSide.Stack) throws -> Sample {
        let ids = Array(Set(try FrameworkSide.ids(stack, scale: scale)))
        return try stack.context.performAndWait {
            let start = ContinuousClock.now
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "self IN %@", ids)
            request.returnsObjectsAsFaults = false
            let checksum = try stack.context.fetch(request).reduce(0) { $0 &+ FrameworkSide.checksum(of: $1) }
            return Sample(duration: .now - start, checksum: checksum)
        }
    }

    private static let writers = 8

    private func write(_ stack: FrameworkSide.Stack) throws -> Int {
        try Self.write(stack, threads: Self.writers, seconds: options.seconds)
    }

    /// The number of saves of ten insertions that the threads make until the end.
    static func write(_ stack: FrameworkSide.Stack, threads: Int, seconds: Double) throws -> Int {
        try race(threads, seconds) {
            let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
            context.persistentStoreCoordinator = stack.coordinator
            context.undoManager = nil
            return {
                try context.performAndWait {
                    for number in 0..<10 {
                        let sample = VenueSample(number, scale: Scale(venues: 1000))
                        let venue = Venue(context: context)
                        venue.set(from: sample)
                    }
                    try context.save()
                    context.reset()
                }
            }
        }
    }

    /// The time from just before a save in another process to the changed object in a context of this one.
    ///
    /// - Returns: The median in milliseconds.
    private func remoteChanges() throws -> Double {
        try withStore { place in
            let stack = try openStack(place, FrameworkSide.sharing)
            defer { stack.close() }
            let times = try FrameworkSide.remoteChanges(stack) {
                try BenchChild(.writerOfPostgreSQL, in: place.absoluteString)
            }
            return Self.median(times) / 1e6
        }
    }

    /// In the process that was started for it: commits the time whenever it is asked to.
    static func writeWhenAsked(_ place: String) throws {
        guard let url = URL(string: place) else { throw BenchError("The URL is not valid") }
        try FrameworkSide.writeWhenAsked(
            try FrameworkSide.Stack(.postgreSQL, url, FrameworkSide.model, options: FrameworkSide.sharing)
        )
    }

    // MARK: - Memory

    /// The bytes by which the peak of a process that reads everything may exceed that of one that reads the same from
    /// SQLite.
    private static let mostMemoryOverSQLite = 30 << 20

    /// The peaks of two processes that read everything, one from the server and one from SQLite, in words.
    private func peaks() throws -> String {
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FrameworkSide.fill(folder, scale: scale)
        let peaks = try withStore { place in
            try fill(place)
            return (
                try ResidentMemory.peak(of: .readerOfPostgreSQL, in: place.absoluteString),
                try ResidentMemory.peak(of: Workload.readEverything, in: folder, options)
            )
        }
        guard let peak = peaks.0, let other = peaks.1 else { return "; peak RSS unknown" }
        let isMissed = peak - other > Self.mostMemoryOverSQLite
        return
            "; peak RSS \(peak >> 20) MiB, of \(Workload.readEverything.name) \(other >> 20), goal ≤ \(Self.mostMemoryOverSQLite >> 20) more\(isMissed ? " missed" : "")"
    }

    /// Reads everything, and prints the peak of this process, which was started for it.
    static func readAlone(_ place: String) throws {
        guard let url = URL(string: place) else { throw BenchError("The URL is not valid") }
        let stack = try FrameworkSide.Stack(.postgreSQL, url, FrameworkSide.model)
        defer { stack.close() }
        _ = try FrameworkSide.readEverything(stack)
        print(ResidentMemory.peak ?? 0)
    }

    // MARK: - Stores

    private static func schema(_ place: URL) -> String {
        URLComponents(url: place, resolvingAgainstBaseURL: true)?.queryItems?.last { $0.name == "schema" }?.value ?? ""
    }

    func withStore<R>(_ body: (URL) throws -> R) throws -> R {
        let schema = "bench_" + UUID().uuidString.lowercased().prefix(8)
        guard let place = URL(string: "\(url)&schema=\(schema)") else { throw BenchError("The URL is not valid") }
        let result = Result { try body(place) }
        try NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel())
            .destroyPersistentStore(at: place, type: .postgreSQL, options: nil)
        return try result.get()
    }

    private func openStack(_ place: URL, _ options: [AnyHashable: Any]? = nil) throws -> FrameworkSide.Stack {
        var all: [AnyHashable: Any] = [NSPersistentStoreConnectionPoolMaxSizeKey: Self.writers + 2]
        all.merge(options ?? [:]) { $1 }
        return try FrameworkSide.Stack(.postgreSQL, place, FrameworkSide.model, options: all)
    }

    /// Lets threads repeat a step, which `make` makes for each of them, and counts the steps of all.
    static func race(_ count: Int, _ seconds: Double, _ make: @escaping @Sendable () throws -> () throws -> Void) throws
        -> Int
    {
        let total = Mutex(0)
        let failure = Mutex<(any Error)?>(nil)
        let group = DispatchGroup()
        for _ in 0..<count {
            group.enter()
            let thread = Thread {
                defer { group.leave() }
                do {
                    let step = try make()
                    let end = ContinuousClock.now + .seconds(seconds)
                    var done = 0
                    while ContinuousClock.now < end {
                        try step()
                        done += 1
                    }
                    total.withLock { $0 += done }
                } catch {
                    failure.withLock { $0 = error }
                }
            }
            thread.stackSize = 1 << 20
            thread.start()
        }
        group.wait()
        if let error = failure.withLock({ $0 }) { throw error }
        return total.withLock { $0 }
    }
}
#endif
