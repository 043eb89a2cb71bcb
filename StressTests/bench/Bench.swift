import CStrataSQLite
import CoreData

/// The program: measures, prints a table, appends to a file.
@main
enum Bench {
    static func main() {
        do {
            try run(try BenchOptions.parse(CommandLine.arguments.dropFirst()))
        } catch {
            FileHandle.standardError.write(Data("bench: \(error.localizedDescription)\n".utf8))
            exit(1)
        }
    }

    private static func run(_ options: BenchOptions) throws {
        guard !options.showsHelp else {
            print(BenchOptions.help)
            return
        }
        // The framework turns this off at its first connection. That is refused if the raw side was first, and would make
        // both sides slower on several threads.
        if options.side != RawDefaultsSide.self { _ = strata_sqlite3_disable_memory_statistics() }
        if options.isInstrumented { FrameworkSide.instrument = EventCounter() }
        FrameworkSide.rowCacheBytes = options.rowCacheBytes
        RowWidth.current = options.width
        if let tenants = options.tenants {
            #if canImport(CoreDataPostgreSQL)
            return try TenantBench.run(options, tenants: tenants)
            #else
            throw BenchError("This was built without libpq, so no requests to \(tenants) tenants can be measured")
            #endif
        }
        if let workloads = options.postgreSQL {
            #if canImport(CoreDataPostgreSQL)
            return try PostgreSQLBench.run(workloads, options)
            #else
            throw BenchError("This was built without libpq, so nothing can be measured on \(workloads.count) workloads")
            #endif
        }
        if let part = options.part { return try part.run(in: options.folder) }
        if let side = options.weighed {
            print(try side.bytesPerObject(in: options.folder, scale: Scale(venues: options.rows)))
            return
        }
        if let models = options.weighedModels {
            let scale = Scale(venues: options.rows)
            print(try ModelSide.bytesPerObject(in: options.folder, scale: scale, isRead: models == .read))
            return
        }
        if options.prepares { return try options.side.fill(options.folder, scale: options.scale) }
        if let workload = options.onceModels {
            print(try OneRun(workload, in: options.folder, scale: options.scale).line)
            return
        }
        if let workload = options.once {
            let isWarm = options.caches == .warm
            let run = try OneRun(workload, on: options.side, in: options.folder, scale: options.scale, isWarm: isWarm)
            print(run.line)
            return
        }

        if options.readsNorthwind { return try readNorthwind(options) }
        if !options.only.isEmpty { try compare(options) }
        if !options.concurrent.isEmpty { try compareCrews(options) }
        if !options.models.isEmpty { try compareModels(options) }
    }

    private static func compare(_ options: BenchOptions) throws {
        var comparisons: [Comparison] = []
        let defaults = options.measuresDefaults ? RawDefaultsSide.self : nil
        let harness = Harness(options: options, raw: RawSide.self, rawDefaults: defaults, framework: FrameworkSide.self)
        // If a workload fails, then the figures of the others are still printed.
        defer { if !comparisons.isEmpty { show(comparisons, options) } }
        try harness.run { comparison in
            comparisons.append(comparison)
            FileHandle.standardError.write(Data("\(comparison.workload.name) done\n".utf8))
            if let path = options.json { try append(comparison.json, to: path) }
        }
    }

    private static func show(_ comparisons: [Comparison], _ options: BenchOptions) {
        let caches = options.caches
        print("\(options.rows) rows of \(options.width.properties) properties")
        print("medians of \(options.runs) runs, caches \(caches.rawValue): \(caches.summary)")
        print("raw: SQLite with the framework's page cache and pragmas; defaults: SQLite with its own")
        for line in Comparison.table(comparisons) + comparisons.compactMap(\.objectMemory) { print(line) }
    }

    private static func readNorthwind(_ options: BenchOptions) throws {
        var all: [NorthwindFigures] = []
        try NorthwindBench.run(options) { figures in
            all.append(figures)
            if let path = options.json { try append(figures.json, to: path) }
        }
        let columns = NorthwindData.orderColumns.count
        print("\(NorthwindData.orderCount) orders with \(columns) columns, \(options.runs) rounds in turns\n")
        for line in NorthwindFigures.table(all) { print(line) }
    }

    private static func compareCrews(_ options: BenchOptions) throws {
        var outcomes: [ConcurrentBench.Outcome] = []
        let defaults = options.measuresDefaults ? RawDefaultsSide.self : nil
        let framework = FrameworkSide.self
        try ConcurrentBench(options: options, raw: RawSide.self, rawDefaults: defaults, framework: framework).run {
            outcome in
            outcomes.append(outcome)
            if let path = options.json { try append(outcome.json, to: path) }
        }
        print("\(options.rows) rows, \(options.seconds) s a run, medians of \(options.runs) runs")
        for line in ConcurrentBench.lines(outcomes) { print(line) }
    }

    private static func compareModels(_ options: BenchOptions) throws {
        print("\(options.rows) rows, medians of \(options.runs) runs")
        try ModelBench(options: options).run { figure in
            print(figure.line)
            if let path = options.json { try append(figure.json, to: path) }
        }
    }

    private static func append(_ line: String, to path: String) throws {
        if !FileManager.default.fileExists(atPath: path) {
            guard FileManager.default.createFile(atPath: path, contents: nil) else {
                throw BenchError("Cannot write \(path)")
            }
        }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: Data((line + "\n").utf8))
    }
}
