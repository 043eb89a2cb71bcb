import Foundation

/// The seeds of a run of random tests: ten that never change, or those of the environment (`STRATA_SEEDS=100-199`).
package enum DifferentialSeeds {
    package static let all: [UInt64] = {
        guard let text = ProcessInfo.processInfo.environment["STRATA_SEEDS"] else { return Array(1...10) }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        guard let first = ends.first, let last = ends.last, first <= last else { return Array(1...10) }
        return Array(first...last)
    }()
}
