import Foundation

/// Compares SwiftData's models with managed objects, in turns.
struct ModelBench {
    let options: BenchOptions

    /// The figures of one line of the result.
    struct Figure {
        let name: String
        let summary: String
        /// The unit of the numbers.
        let unit: String
        let models: Double
        /// The same with managed objects; `nil` if there is no such work.
        let objects: Double?
        /// The goal, and what was reached.
        let goal: (limit: Double, reached: Double)?

        var line: String {
            let objects = objects.map { ", managed objects \(digits($0)), ratio \(digits(models / $0))" } ?? ""
            let goal =
                goal.map { limit, reached in
                    ", goal ≤ \(digits(limit))\(reached > limit ? " missed (is \(digits(reached)))" : "")"
                } ?? ""
            return "\(name)  \(summary): \(digits(models)) \(unit)\(objects)\(goal)"
        }

        var json: String {
            let objects = objects.map { ", \"coredata\": \(digits($0))" } ?? ""
            let names = "\"name\": \"\(name)\", \"summary\": \"\(summary)\", \"unit\": \"\(unit)\""
            return "{\(names), \"models\": \(digits(models))\(objects)}"
        }
    }

    private var scale: Scale { options.scale }

    /// Measures every workload that the options name, and calls `report` with each figure.
    func run(report: (Figure) throws -> Void) throws {
        let folder = options.folder + "/strata-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        if options.models.contains(where: { $0 != .observation }) {
            try ModelSide.fill(folder, scale: scale)
            try FrameworkSide.fill(folder, scale: scale)
        }
        for workload in options.models {
            for figure in try figures(of: workload, in: folder) { try report(figure) }
        }
    }

    private func figures(of workload: ModelWorkload, in folder: String) throws -> [Figure] {
        switch workload {
        case .read: [try each(workload, in: folder, beside: .readProperties)]
        case .write: [try each(workload, in: folder, beside: .writeProperties)]
        case .fetch: [try fetch(in: folder)]
        case .memory: try [true, false].map { try weigh(in: folder, isRead: $0) }
        case .observation: [observation(isWriting: false), observation(isWriting: true)]
        }
    }

    /// The nanoseconds of an access.
    private func each(_ workload: ModelWorkload, in folder: String, beside other: Workload) throws -> Figure {
        let (models, objects) = try inTurns {
            workload == .read
                ? try ModelSide.read(in: folder, scale: scale) : try ModelSide.write(in: folder, scale: scale)
        } objects: {
            try FrameworkSide.run(other, in: folder, scale: scale, isWarm: false)
        }
        let unit = 1_000_000 / Double(scale.operations(of: other) ?? 1)
        return Figure(
            name: workload.name,
            summary: workload.summary,
            unit: "ns each",
            models: models * unit,
            objects: objects * unit,
            goal: workload.goal.map { ($0, models * unit) }
        )
    }

    private func fetch(in folder: String) throws -> Figure {
        let workload = ModelWorkload.fetch
        let (models, objects) = try inTurns {
            try ModelSide.readEverything(in: folder)
        } objects: {
            try FrameworkSide.run(.readEverything, in: folder, scale: scale, isWarm: false)
        }
        return Figure(
            name: workload.name,
            summary: workload.summary,
            unit: "ms",
            models: models,
            objects: objects,
            goal: workload.goal.map { ($0, models / objects) }
        )
    }

    private func weigh(in folder: String, isRead: Bool) throws -> Figure {
        let workload = ModelWorkload.memory
        func bytes(_ arguments: [String]) throws -> Double {
            let all = arguments + ["--rows", "\(options.rows)", "--folder", folder]
            return Double(try ResidentMemory.numbersOfChild(all).first ?? 0)
        }
        let models = try bytes(["--weigh", isRead ? "models" : "unread-models"])
        let objects = try bytes(["--weigh", "coredata"])
        return Figure(
            name: workload.name,
            summary: isRead ? "bytes of a model that was read" : "bytes of a model that was fetched",
            unit: "bytes",
            models: models,
            objects: objects,
            goal: workload.goal.map { ($0, models / objects) }
        )
    }

    private func observation(isWriting: Bool) -> Figure {
        var times: [Duration] = []
        for _ in 0..<options.runs {
            let sample = isWriting ? ModelSide.writeObservable(scale: scale) : ModelSide.readObservable(scale: scale)
            times.append(sample.duration)
        }
        let unit = 1_000_000 / Double(scale.operations(of: isWriting ? .writeProperties : .readProperties) ?? 1)
        return Figure(
            name: ModelWorkload.observation.name,
            summary: "\(isWriting ? "write" : "read") properties of @Observable objects that no store has",
            unit: "ns each",
            models: Comparison.median(times) * unit,
            objects: nil,
            goal: nil
        )
    }

    /// The medians of both sides, in milliseconds.
    private func inTurns(models: () throws -> Sample, objects: () throws -> Sample) rethrows
        -> (models: Double, objects: Double)
    {
        var times: (models: [Duration], objects: [Duration]) = ([], [])
        // The first round warms up the system's page cache and is not counted.
        for round in 0...options.runs {
            let (one, other) = round % 2 == 0 ? (try models(), nil as Sample?) : (nil, try objects())
            let (model, object) = (try one ?? models(), try other ?? objects())
            guard model.checksum == object.checksum else {
                fatalError("bench: models and managed objects did different work: \(model) and \(object)")
            }
            guard round > 0 else { continue }
            times.models.append(model.duration)
            times.objects.append(object.duration)
        }
        return (Comparison.median(times.models), Comparison.median(times.objects))
    }
}

/// Three significant digits, or a whole number where that is enough.
private func digits(_ value: Double) -> String {
    String(format: value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}
