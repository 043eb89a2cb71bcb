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
    static func peak(of workload: Workload, in folder: String, scale: Scale) throws -> Int? {
        let copy = folder + "/alone"
        try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        if !workload.startsEmpty {
            try FileManager.default.copyItem(
                atPath: folder + "/framework.sqlite",
                toPath: copy + "/framework.sqlite"
            )
        }
        return try numberOfChild(["--child", workload.name, "--rows", "\(scale.venues)", "--folder", copy])
    }

    /// The bytes that a realised object takes on one of the sides.
    static func bytesPerObject(raw: Bool, in folder: String, scale: Scale) throws -> Int {
        let arguments = ["--weigh", raw ? "raw" : "coredata", "--rows", "\(scale.venues)", "--folder", folder]
        return try numberOfChild(arguments) ?? 0
    }

    /// The peak of a process that does `part` in a place.
    static func peak(of part: ChildPart, in place: String) throws -> Int? {
        try numberOfChild(["--part", part.rawValue, "--folder", place])
    }

    /// The number that this program prints if it is run with other arguments.
    private static func numberOfChild(_ arguments: [String]) throws -> Int? {
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
        return Int(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
}
