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
        if options.isInstrumented { FrameworkSide.instrument = EventCounter() }
        FrameworkSide.rowCacheBytes = options.rowCacheBytes
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
        if let workload = options.child {
            _ = try FrameworkSide.run(workload, in: options.folder, scale: Scale(venues: options.rows))
            print(ResidentMemory.peak ?? 0)
            return
        }

        if !options.only.isEmpty { try compare(options) }
        if !options.concurrent.isEmpty { try compareCrews(options) }
    }

    private static func compare(_ options: BenchOptions) throws {
        var comparisons: [Comparison] = []
        try Harness(options: options, raw: RawSide.self, framework: FrameworkSide.self).run { comparison in
            comparisons.append(comparison)
            FileHandle.standardError.write(Data("\(comparison.workload.name) done\n".utf8))
            if let path = options.json { try append(comparison.json, to: path) }
        }
        print("\(options.rows) rows, medians of \(options.runs) runs")
        for line in Comparison.table(comparisons) + comparisons.compactMap(\.objectMemory) { print(line) }
    }

    private static func compareCrews(_ options: BenchOptions) throws {
        var outcomes: [ConcurrentBench.Outcome] = []
        try ConcurrentBench(options: options, raw: RawSide.self, framework: FrameworkSide.self).run { outcome in
            outcomes.append(outcome)
            if let path = options.json { try append(outcome.json, to: path) }
        }
        print("\(options.rows) rows, \(options.seconds) s a run, medians of \(options.runs) runs")
        for line in ConcurrentBench.lines(outcomes) { print(line) }
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
