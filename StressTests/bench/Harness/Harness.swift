import Foundation

/// Runs all sides in turn and compares them.
struct Harness {
    let options: BenchOptions
    let raw: any Side.Type
    /// The raw side with other settings; `nil` if it is not measured.
    let rawDefaults: (any Side.Type)?
    let framework: any Side.Type

    private var scale: Scale { options.scale }

    /// Measures every workload that the options name, and calls `report` with each comparison.
    func run(report: (Comparison) throws -> Void) throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        if options.only.contains(where: { !$0.startsEmpty }) {
            for side in sides(of: nil) { try side.fill(folder, scale: scale) }
        }
        for workload in options.only { try report(try compare(workload, in: folder)) }
    }

    /// The sides that do a workload, or any.
    private func sides(of workload: Workload?) -> [any Side.Type] {
        let hasDefaults = workload?.opensRawDatabase ?? true
        return [raw] + (hasDefaults ? [rawDefaults].compactMap { $0 } : []) + [framework]
    }

    private func compare(_ workload: Workload, in folder: String) throws -> Comparison {
        let sides = sides(of: workload)
        var times: [[Duration]] = sides.map { _ in [] }
        // The first round warms up the system's page cache and is not counted.
        for round in 0...options.runs {
            // The sides take turns to go first, so that none always profits from what another left in the caches.
            let order = sides.indices.map { ($0 + round) % sides.count }
            var checksums = sides.map { _ in 0 }
            for number in order {
                let sample = try sample(of: workload, on: sides[number], in: folder)
                checksums[number] = sample.checksum
                if round > 0 { times[number].append(sample.duration) }
            }
            guard Set(checksums).count == 1 else {
                throw BenchError("The sides of \(workload.name) did different work: \(checksums)")
            }
        }
        let peak = try ResidentMemory.peak(of: workload, in: folder, options)
        return Comparison(
            workload: workload,
            width: options.width,
            caches: workload.canBeRepeated || options.caches == .cold ? options.caches : .reopened,
            raw: times[0],
            rawDefaults: sides.count > 2 ? times[1] : [],
            framework: times[sides.count - 1],
            operations: scale.operations(of: workload),
            peakMemory: peak,
            objectBytes: workload == .readEverything ? try objectBytes(in: folder) : nil
        )
    }

    private func sample(of workload: Workload, on side: any Side.Type, in folder: String) throws -> Sample {
        guard options.caches == .cold else {
            return try side.run(workload, in: folder, scale: scale, isWarm: options.caches == .warm)
        }
        return try OneRun(inProcessOf: workload, on: side, in: folder, options).sample
    }

    private func objectBytes(in folder: String) throws -> (raw: Int, framework: Int) {
        (
            try ResidentMemory.bytesPerObject(raw: true, in: folder, options),
            try ResidentMemory.bytesPerObject(raw: false, in: folder, options)
        )
    }

    private func makeFolder() throws -> String {
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }
}
