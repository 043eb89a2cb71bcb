import CoreData

/// A process that takes part in a run as another machine would: it shares nothing with the others but the store.
///
/// It runs the scenario's ``Scenario/takePart(in:)``. Its work and its findings count like those of the run itself.
final class Machine: @unchecked Sendable {
    // @unchecked Sendable: it holds pipes and a process, which one thread at a time uses.

    /// The number of these processes on PostgreSQL.
    static let others = Knob("machines", 1, "processes that take part besides, on PostgreSQL")

    private let run: Run
    private let child: Child
    private let input = Pipe()
    private let output = Pipe()

    /// The number of processes in a run, including the one that judges.
    static func count(_ run: Run) -> Int { run.kind == .postgresql ? run.knob(others) + 1 : 1 }

    /// Starts the other processes that take part.
    static func start(_ run: Run) throws -> [Machine] { try (1..<count(run)).map { try Machine(run, $0) } }

    private init(_ run: Run, _ number: Int) throws {
        self.run = run
        let left = run.end - .now
        let seconds = Double(left.components.seconds) + Double(left.components.attoseconds) / 1e18
        child = try Child(
            ["child", "machine", run.scenario.name, run.folder.path, "\(number)"] + CommandLine.arguments.dropFirst()
                // The last of two equal options counts, and the seed may have been drawn.
                + ["--seed", "\(run.options.seed)", "--seconds", "\(max(seconds, 0.001))"],
            input: input,
            output: output,
            errors: FileHandle.standardError
        )
    }

    /// Sends a line, and waits for the line that answers it.
    func ask(_ line: String) throws -> String {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
        var answer = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1), let value = byte.first {
            if value == UInt8(ascii: "\n") { return String(decoding: answer, as: UTF8.self) }
            answer.append(value)
        }
        throw StressError("another process of the run has ended before its time")
    }

    /// Waits for the end of the process, and takes over its counts and its findings.
    ///
    /// - Returns: The result of its part of the scenario.
    /// - Throws: If it prints no result.
    func join() throws -> Data {
        // The process has its own watchdog.
        try input.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        let status = child.wait()
        guard status == 0 else { throw StressError("another process of the run ended with \(status)") }
        let news = try JSONDecoder().decode(MachineNews.self, from: data)
        run.noteDone(news.tally[run.scenario.work.figure])
        run.add(news.tally)
        run.count("elsewhere", news.tally[run.scenario.part])
        return news.result
    }
}

/// The result that a process prints at its end.
private struct MachineNews: Codable {
    let tally: Tally
    let result: Data
}

/// The code that runs in the process that takes part.
enum MachineChild {
    /// Takes part.
    ///
    /// - Parameter arguments: The scenario, the folder of the run, the number of the process, and the command line of the run.
    /// - Throws: Errors of the part.
    static func run(_ arguments: [String]) throws {
        guard arguments.count > 3, let number = Int(arguments[2]),
            let scenario = allScenarios.first(where: { $0.name == arguments[0] })
        else { throw StressError("child machine needs a scenario, a folder, a number and a command line") }
        let options = try StressOptions.parse(arguments.dropFirst(3))
        let folder = URL(fileURLWithPath: arguments[1])
        let run = try Run(scenario, options, options.store ?? .sqlite, in: folder, machine: number)
        defer { run.watchdog.stop() }
        if options.jitter > 0 { FaultPoints.jitter(options.seed, most: options.jitter) }
        let result = try scenario.takePart(in: run)
        let news = try JSONEncoder().encode(MachineNews(tally: run.tally, result: result))
        try FileHandle.standardOutput.write(contentsOf: news)
    }
}
