import CoreData

/// The resources that the process uses at one moment.
struct SoakSample {
    let seconds: Double
    let residentKiB: Int
    let descriptors: Int
    let threads: Int
    /// The number of living contexts.
    let contexts: Int
    let logKiB: Int
    let fileKiB: Int

    /// Takes a sample now.
    init(_ run: Run) {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        func line(_ name: String) -> Int {
            let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
            return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        }
        func kibibytes(_ path: String) -> Int {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return (attributes?[.size] as? Int ?? 0) / 1024
        }
        seconds = (ContinuousClock.now - run.start) / .seconds(1)
        residentKiB = line("VmRSS")
        descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
        threads = line("Threads")
        contexts = SoakCensus.contexts
        logKiB = kibibytes(run.storeURL.path + "-wal")
        fileKiB = kibibytes(run.storeURL.path)
    }
}
