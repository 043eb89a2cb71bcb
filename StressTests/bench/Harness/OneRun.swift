import Foundation

/// One run of a workload on one side, in a separate process.
struct OneRun {
    /// The sides by their names on the command line.
    static var sides: [(name: String, side: any Side.Type)] {
        [("raw", RawSide.self), ("raw-defaults", RawDefaultsSide.self), ("coredata", FrameworkSide.self)]
    }

    let sample: Sample
    /// The most memory that the process has had, in bytes; 0 where there is no `/proc`.
    let peakMemory: Int

    /// Does the work in this process.
    init(_ workload: Workload, on side: any Side.Type, in folder: String, scale: Scale, isWarm: Bool) throws {
        sample = try side.run(workload, in: folder, scale: scale, isWarm: isWarm)
        peakMemory = ResidentMemory.peak ?? 0
    }

    /// Does work with SwiftData's models in this process, and makes their database if it is missing.
    init(_ workload: ModelWorkload, in folder: String, scale: Scale) throws {
        if !ModelSide.hasDatabase(in: folder) { try ModelSide.fill(folder, scale: scale) }
        sample =
            switch workload {
            case .read: try ModelSide.read(in: folder, scale: scale)
            case .write: try ModelSide.write(in: folder, scale: scale)
            default: try ModelSide.readEverything(in: folder)
            }
        peakMemory = ResidentMemory.peak ?? 0
    }

    /// Lets another process do the work.
    init(inProcessOf workload: Workload, on side: any Side.Type, in folder: String, _ options: BenchOptions) throws {
        guard let name = Self.sides.first(where: { $0.side == side })?.name else {
            throw BenchError("\(side) has no name")
        }
        var arguments = ["--once", workload.name, "--side", name, "--rows", "\(options.rows)", "--folder", folder]
        if let bytes = options.rowCacheBytes { arguments += ["--row-cache", "\(bytes)"] }
        if options.isInstrumented { arguments.append("--instrument") }
        if options.width != .narrow { arguments += ["--width", options.width.rawValue] }
        let numbers = try ResidentMemory.numbersOfChild(arguments)
        guard numbers.count == 3 else { throw BenchError("\(arguments.joined(separator: " ")) printed \(numbers)") }
        sample = Sample(duration: .nanoseconds(Int64(numbers[0])), checksum: numbers[1])
        peakMemory = numbers[2]
    }

    /// The output of the process: the nanoseconds, the checksum and the peak of its memory.
    var line: String { "\(Int(sample.duration / .nanoseconds(1))) \(sample.checksum) \(peakMemory)" }
}
