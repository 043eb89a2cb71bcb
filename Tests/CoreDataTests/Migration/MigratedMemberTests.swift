import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

/// The numbers of members in relationships after a migration by objects.
@Suite("Numbers of members after a migration")
struct MigratedMemberTests {
    @Test func `m089 objects with too few or too many members fail the migration`() throws {
        let move = try LibraryMove { context in
            for (name, count) in [("none", 0), ("one", 1), ("two", 2), ("three", 3)] {
                let author = LibraryMove.make("Author", ["name": name], context)
                for _ in 0..<count { LibraryMove.make("Book", ["author": author, "title": name], context) }
            }
        }
        func errors(_ count: ClosedRange<Int>, isOptional: Bool) throws -> [Int] {
            let strict = LibraryVersions.second()
            let works = try require(strict.entitiesByName["Writer"]?.relationshipsByName["works"])
            (works.minCount, works.maxCount, works.isOptional) = (count.lowerBound, count.upperBound, isOptional)
            let manager = NSMigrationManager(sourceModel: LibraryVersions.first(), destinationModel: strict)
            let error = try #require(throws: CocoaError.self) {
                try manager.migrateStore(
                    from: move.source,
                    type: .sqlite,
                    mapping: LibraryVersions.mapping(),
                    to: move.destination,
                    type: .sqlite
                )
            }
            expect(move.leftovers.isEmpty)
            let all = error.code == .validationMultipleErrors ? error.detailedErrors : [error]
            return all.compactMap { ($0 as? CocoaError)?.code.rawValue }.sorted()
        }

        try expectEqual(errors(2...2, isOptional: false), [1580, 1580, 1590])
        try expectEqual(errors(2...2, isOptional: true), [1580, 1590])
        try expectEqual(errors(1...9, isOptional: false), [1580])
    }
}
