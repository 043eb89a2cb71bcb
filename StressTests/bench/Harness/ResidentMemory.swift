import Foundation

/// How much memory a workload takes, measured in a process of its own: a peak never falls again.
enum ResidentMemory {
    /// The peak of this process so far, in bytes; `nil` where there is no `/proc`.
    static var peak: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 * 1024 }
    }

    /// The peak of the framework's side of `workload`, on a copy of the database that lies in `folder`: a run that only one
    /// side makes shall not change what both sides go on with.
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
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--child", workload.name, "--rows", "\(scale.venues)", "--folder", copy]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchError("\(workload.name) failed in a process of its own")
        }
        return Int(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
}
