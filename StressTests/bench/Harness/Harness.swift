import Foundation

/// Runs both sides in turn and compares them.
struct Harness {
    let options: BenchOptions
    let raw: any Side.Type
    let framework: any Side.Type

    private var scale: Scale { Scale(venues: options.rows) }

    /// Measures every workload that the options name, and calls `report` with each comparison.
    func run(report: (Comparison) throws -> Void) throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        if options.only.contains(where: { !$0.startsEmpty }) {
            try raw.fill(folder, scale: scale)
            try framework.fill(folder, scale: scale)
        }
        for workload in options.only { try report(try compare(workload, in: folder)) }
    }

    private func compare(_ workload: Workload, in folder: String) throws -> Comparison {
        var rawTimes: [Duration] = []
        var frameworkTimes: [Duration] = []
        // The first round warms up the system's page cache and is not counted.
        for round in 0...options.runs {
            // The sides take turns to go first, so that neither always profits from what the other left in the
            // caches.
            let sides = round % 2 == 0 ? [raw, framework] : [framework, raw]
            var checksums: [Int] = []
            for side in sides {
                let sample = try side.run(workload, in: folder, scale: scale)
                checksums.append(sample.checksum)
                guard round > 0 else { continue }
                if side == raw { rawTimes.append(sample.duration) } else { frameworkTimes.append(sample.duration) }
            }
            guard checksums[0] == checksums[1] else {
                throw BenchError("The two sides of \(workload.name) did different work: \(checksums)")
            }
        }
        let peak = try ResidentMemory.peak(of: workload, in: folder, scale: scale)
        return Comparison(
            workload: workload,
            raw: rawTimes,
            framework: frameworkTimes,
            operations: scale.operations(of: workload),
            peakMemory: peak,
            objectBytes: workload == .readEverything ? try objectBytes(in: folder) : nil
        )
    }

    private func objectBytes(in folder: String) throws -> (raw: Int, framework: Int) {
        (
            try ResidentMemory.bytesPerObject(raw: true, in: folder, scale: scale),
            try ResidentMemory.bytesPerObject(raw: false, in: folder, scale: scale)
        )
    }

    private func makeFolder() throws -> String {
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }
}
