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

    /// Expects that the work takes no more than three times as long as its growth explains, with eight times as many members.
    private func expectGrowth(_ work: (Int) throws -> Duration) rethrows {
        try TestSupport.expectGrowth(below: 24, from: { try work(500) }, to: { try work(4000) })
    }

    @Test
    func `an insert of members takes time that grows with their number`() throws {
        try expectGrowth { count in
            let stack = try Stack(.memory)
            return try processorTime { _ = try venue(with: count, stack) }
        }
    }

    @Test
    func `an update that moves members takes time that grows with their number`() throws {
        try expectGrowth { count in
            let stack = try Stack(.memory)
            _ = try venue(with: count, stack)
            let other = try stack.store(Venue.self) { venue, _ in venue.name = "other" }
            let request = NSBatchUpdateRequest(entityName: "Photo")
            request.propertiesToUpdate = ["venue": other]
            return try processorTime { try stack.execute(request) }
        }
    }

    @Test
    func `a delete of members takes time that grows with their number`() throws {
        try expectGrowth { count in
            let stack = try Stack(.memory)
            _ = try venue(with: count, stack)
            return try processorTime { try stack.execute(NSBatchDeleteRequest("Photo", "title != '0'")) }
        }
    }
}
