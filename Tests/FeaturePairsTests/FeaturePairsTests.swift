import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

/// Programs over all features of a context and its store, compared with one plain reference.
@Suite("Pairs of features")
struct FeaturePairsTests {
    /// The seeds of the run, and one that is drawn; the failures print the steps.
    private static let seeds = DifferentialSeeds.all + [0]

    /// The steps of one seed; `STRATA_WALK_STEPS` makes them more.
    private static let steps =
        ProcessInfo.processInfo.environment["STRATA_WALK_STEPS"].flatMap(Int.init)
        ?? (StoreKind.isPostgreSQL ? 80 : 200)

    @Test(arguments: StoreKind.allCases, seeds)
    func `after each operation, each other one does what it does alone`(_ kind: StoreKind, _ seed: UInt64) async {
        let drawn = seed == 0 ? UInt64.random(in: 1_000_000...9_999_999) : seed
        // Some operations wait for tasks, so they must not take the thread of one.
        let (failures, coverage) = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: Self.walk(kind, drawn)) }
        }
        for failure in failures { expect(false, "seed \(drawn), \(failure)") }
        FeatureReport.add(coverage)
    }

    private static func walk(_ kind: StoreKind, _ seed: UInt64) -> ([String], FeatureCoverage) {
        var (coverage, failures) = (FeatureCoverage(), [String]())
        var walk = FeatureWalk(kind, seed: seed)
        while coverage.steps(kind) < steps - 30, failures.count < 3 {
            do {
                if let failure = try walk.go(30, &coverage) { failures.append("\(failure)") }
            } catch { failures.append("a walk does not begin: \(error)") }
        }
        return (failures, coverage)
    }
}

/// Collects what all walks have covered; `STRATA_WALK_STEPS` prints it.
enum FeatureReport {
    private static let sum = Locked(FeatureCoverage())

    static func add(_ coverage: FeatureCoverage) {
        let text = sum.withLock { sum in
            sum.add(coverage)
            return sum.description
        }
        guard ProcessInfo.processInfo.environment["STRATA_WALK_STEPS"] != nil else { return }
        print(text)
    }
}
