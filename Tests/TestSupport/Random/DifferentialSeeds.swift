import Foundation

/// The seeds of a run of random tests: three that never change, or those of the environment (`STRATA_SEEDS=1-10`).
package enum DifferentialSeeds {
    package static let all: [UInt64] = {
        guard let text = ProcessInfo.processInfo.environment["STRATA_SEEDS"] else { return Array(1...3) }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        guard let first = ends.first, let last = ends.last, first <= last else { return Array(1...3) }
        return Array(first...last)
    }()
}
