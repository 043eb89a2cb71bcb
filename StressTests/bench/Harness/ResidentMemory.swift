import Foundation

/// How much memory a workload takes.
///
/// It is measured in a separate process, because a peak never falls again, and memory that was freed is used again.
enum ResidentMemory {
    /// The peak of this process so far, in bytes; `nil` where there is no `/proc`.
    static var peak: Int? { status("VmHWM:") }

    private static func status(_ field: String) -> Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix(field) }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 * 1024 }
    }

    /// The bytes by which this process has grown for each of `count` objects while the result of `make` is held.
    static func growth<Result>(for count: Int, _ make: () throws -> Result) rethrows -> Int {
        let before = status("VmRSS:") ?? 0
        let held = try make()
        return withExtendedLifetime(held) { ((status("VmRSS:") ?? 0) - before) / count }
    }

    /// The peak of the framework's side of `workload`, on a copy of the database in `folder`.
    ///
    /// A run that only one side makes must not change the database with which both sides go on.
    static func peak(of workload: Workload, in folder: String, _ options: BenchOptions) throws -> Int? {
        let copy = folder + "/alone"
        try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        if !workload.startsEmpty {
            try FileManager.default.copyItem(
                atPath: folder + "/framework.sqlite",
                toPath: copy + "/framework.sqlite"
            )
        }
        let peak = try OneRun(inProcessOf: workload, on: FrameworkSide.self, in: copy, options).peakMemory
        return peak == 0 ? nil : peak
    }

    /// The bytes that a realised object takes on one of the sides.
    static func bytesPerObject(raw: Bool, in folder: String, _ options: BenchOptions) throws -> Int {
        var arguments = ["--weigh", raw ? "raw" : "coredata", "--rows", "\(options.rows)", "--folder", folder]
        if options.width != .narrow { arguments += ["--width", options.width.rawValue] }
        return try numbersOfChild(arguments).first ?? 0
    }

    /// The peak of a process that does `part` in a place.
    static func peak(of part: ChildPart, in place: String) throws -> Int? {
        try numbersOfChild(["--part", part.rawValue, "--folder", place]).first
    }

    /// The numbers that this program prints if it is run with other arguments.
    static func numbersOfChild(_ arguments: [String]) throws -> [Int] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchError("\(arguments.joined(separator: " ")) failed in a process of its own")
        }
        return String(decoding: text, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    }
}
