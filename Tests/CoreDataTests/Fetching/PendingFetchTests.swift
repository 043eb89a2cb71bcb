import CoreData
import Expectations
import TestSupport
import Testing

/// Fetches beside unsaved changes.
@Suite("Fetches beside unsaved changes")
struct PendingFetchTests {
    @Test(arguments: StoreKind.allCases, DifferentialSeeds.all)
    func `searches find what each object's values say, after any changes`(_ kind: StoreKind, _ seed: UInt64) throws {
        var run = PendingFetchRun(try Stack(kind), seed: seed)
        try run.begin()
        for _ in 0..<8 {
            for _ in 0..<10 { try run.step() }
            try run.changeElsewhere()
        }
    }
}
