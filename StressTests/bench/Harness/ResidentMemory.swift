import Foundation

/// How much memory a workload takes, measured in a process of its own: a peak never falls again.
enum ResidentMemory {
    /// The peak of this process so far, in bytes; `nil` where there is no `/proc`.
    static var peak: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 * 1024 }
    }

    /// The peak of the framework's side of `workload`, on the database that lies in `folder`.
    static func peak(of workload: Workload, in folder: String, scale: Scale) throws -> Int? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--child", workload.name, "--rows", "\(scale.venues)", "--folder", folder]
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
