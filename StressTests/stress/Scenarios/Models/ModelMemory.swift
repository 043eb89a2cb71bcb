import Foundation

/// The memory of a run, which must level off: objects that keep each other alive would show in a long run.
enum ModelMemory {
    /// Takes samples until the end, in KiB.
    static func watch(_ worker: Worker) -> [Int] {
        var samples: [Int] = []
        // A run of hours takes no more samples than one of minutes.
        let seconds = (worker.run.end - worker.run.start) / .seconds(1)
        let interval = UInt32(max(0.05, seconds / 3_000) * 1e6)
        while !worker.isOver {
            worker.beat("taking a sample")
            samples.append(SoakSample(worker.run).residentKiB)
            usleep(interval)
        }
        return samples
    }

    /// Compares the second third of the time with the last third; the first third is for warming up.
    static func judge(_ run: Run, _ samples: [Int]) {
        let third = samples.count / 3
        guard third >= 3 else { return run.find("only \(samples.count) samples of the memory were taken") }
        func middle(_ part: ArraySlice<Int>) -> Int { part.sorted()[part.count / 2] }
        let growth = middle(samples.suffix(third)) - middle(samples.dropFirst(third).prefix(third))
        let seconds = (run.end - run.start) / .seconds(1)
        if growth > (seconds > 120 ? 6_144 : 24_576) {
            run.find("resident memory, KiB: \(growth) more in the last third than before")
        }
        run.count("rss-growth-kib", growth)
        run.count("rss-kib", samples.last ?? 0)
    }
}
