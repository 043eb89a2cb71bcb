import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

/// Work that grows with the square of the members would take many times as long for eight times as many.
@Suite("Batches over ordered relationships with many members", .serialized)
struct BatchGrowthTests {
    /// A venue with ordered photos that point at it; one batch inserts all of them.
    private func venue(with count: Int, _ stack: Stack) throws -> NSManagedObjectID {
        let venue = try stack.store(Venue.self) { venue, _ in venue.name = "owner" }
        try stack.execute(photos(0..<count, of: venue))
        return venue
    }

    private func photos(_ numbers: Range<Int>, of venue: NSManagedObjectID) -> NSBatchInsertRequest {
        NSBatchInsertRequest(entityName: "Photo", objects: numbers.map { ["title": "\($0)", "venue": venue] })
    }

    /// How many times as long the work takes with eight times as many members, in the best of some runs.
    private func growth(_ work: (Int) throws -> Duration) throws -> Double {
        let small = try (0..<3).map { _ in try work(500) }.min() ?? .zero
        let large = try (0..<2).map { _ in try work(4000) }.min() ?? .zero
        return large / small
    }

    @Test
    func `an insert of members takes time that grows with their number`() throws {
        let ratio = try growth { count in
            let stack = try Stack(.memory)
            return try processorTime { _ = try venue(with: count, stack) }
        }
        expect(ratio < 24, "8 times as many members took \(ratio) times as long")
    }

    @Test
    func `an update that moves members takes time that grows with their number`() throws {
        let ratio = try growth { count in
            let stack = try Stack(.memory)
            _ = try venue(with: count, stack)
            let other = try stack.store(Venue.self) { venue, _ in venue.name = "other" }
            let request = NSBatchUpdateRequest(entityName: "Photo")
            request.propertiesToUpdate = ["venue": other]
            return try processorTime { try stack.execute(request) }
        }
        expect(ratio < 24, "8 times as many members took \(ratio) times as long")
    }

    @Test
    func `a delete of members takes time that grows with their number`() throws {
        let ratio = try growth { count in
            let stack = try Stack(.memory)
            _ = try venue(with: count, stack)
            return try processorTime { try stack.execute(NSBatchDeleteRequest("Photo", "title != '0'")) }
        }
        expect(ratio < 24, "8 times as many members took \(ratio) times as long")
    }
}
