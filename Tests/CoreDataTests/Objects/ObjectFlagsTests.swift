import Expectations
import Testing

@testable import CoreDataEssentials

@Suite("Flags of objects")
struct ObjectFlagsTests {
    /// Two flags with one bit would change each other.
    @Test func `each has a bit of its own`() {
        let flags: [ObjectFlags] = [
            .fault, .checked, .detached, .ownsRow, .inserted, .updated, .deleted, .inaccessible, .eventInserted,
            .eventUpdated, .eventDeleted, .eventRefreshed, .deletePropagated, .listed, .eventListed, .awaking, .gone,
            .conflictDetection, .writable, .rowShared, .prefetched, .batchRow, .mergedFault, .awaitsBatch, .indexed,
        ]
        for flag in flags { expectEqual(flag.rawValue.nonzeroBitCount, 1) }
        expectEqual(Set(flags.map(\.rawValue)).count, flags.count)
    }
}
