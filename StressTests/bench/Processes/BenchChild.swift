import Foundation

/// The part of another process of the benchmark.
enum ChildPart: String {
    /// Commits the time each time it is asked to.
    case rawWriter, frameworkWriter
    /// Does jobs until there are none left.
    case rawWorker, frameworkWorker, frameworkWorkerOneByOne
    /// Does the jobs of a PostgreSQL database until there are none left.
    case rawWorkerOfPostgreSQL, frameworkWorkerOfPostgreSQL, frameworkWorkerOfPostgreSQLOneByOne
    /// Saves to a PostgreSQL database for some time, and prints how often.
    case rawPostgreSQL, frameworkPostgreSQL
    /// Commits the time to a PostgreSQL database each time it is asked to.
    case writerOfPostgreSQL
    /// Reads all rows of a PostgreSQL database, and prints how much memory that took.
    case readerOfPostgreSQL

    /// Does the part, in the process that was started for it.
    func run(in folder: String) throws {
        switch self {
        case .rawWriter: try RawSide.writeWhenAsked(in: folder)
        case .frameworkWriter: try FrameworkSide.writeWhenAsked(in: folder)
        case .rawWorker: try RawSide.work(in: folder)
        case .frameworkWorker: try FrameworkSide.work(in: folder, oneByOne: false)
        case .frameworkWorkerOneByOne: try FrameworkSide.work(in: folder, oneByOne: true)
        #if canImport(CoreDataPostgreSQL)
        case .rawWorkerOfPostgreSQL: try RawPostgreSQLSide.doJobsWhenAsked(folder)
        case .frameworkWorkerOfPostgreSQL, .frameworkWorkerOfPostgreSQLOneByOne:
            guard let url = URL(string: folder) else { throw BenchError("The URL is not valid") }
            try FrameworkSide.work(at: url, oneByOne: self == .frameworkWorkerOfPostgreSQLOneByOne)
        case .rawPostgreSQL: try ManyWriters(folder).work(isRaw: true)
        case .frameworkPostgreSQL: try ManyWriters(folder).work(isRaw: false)
        case .writerOfPostgreSQL: try PostgreSQLBench.writeWhenAsked(folder)
        case .readerOfPostgreSQL: try PostgreSQLBench.readAlone(folder)
        #else
        case .rawPostgreSQL, .frameworkPostgreSQL, .writerOfPostgreSQL, .readerOfPostgreSQL, .rawWorkerOfPostgreSQL,
            .frameworkWorkerOfPostgreSQL, .frameworkWorkerOfPostgreSQLOneByOne:
            throw BenchError("This was built without libpq")
        #endif
        }
    }
}

/// Another process of the benchmark, which gets its orders through its input.
final class BenchChild {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Starts a process, and waits until it is ready.
    init(_ part: ChildPart, in folder: String) throws {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--part", part.rawValue, "--folder", folder]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        guard try output.fileHandleForReading.read(upToCount: 1)?.isEmpty == false else {
            throw BenchError("\(part.rawValue) did not start")
        }
    }

    /// Asks the process to go on.
    func ask() throws { try input.fileHandleForWriting.write(contentsOf: Data([1])) }

    /// Closes the input of the process, so that it stops if it waits to be asked, and waits for its end.
    func end() throws {
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw BenchError("\(process.arguments ?? []) has failed") }
    }

    /// Everything that a process has printed that ends by itself.
    func told() throws -> String {
        let told = try output.fileHandleForReading.readToEnd() ?? Data()
        try end()
        return String(decoding: told, as: UTF8.self)
    }

    // MARK: - In the other process

    static func isReady() throws { try FileHandle.standardOutput.write(contentsOf: Data([1])) }

    /// Waits to be asked; `false` at the end of the input.
    static func isAsked() throws -> Bool { try FileHandle.standardInput.read(upToCount: 1)?.isEmpty == false }
}

/// The time on a clock that all processes of the machine share, in nanoseconds.
func sharedClock() -> Double { Double(DispatchTime.now().uptimeNanoseconds) }
