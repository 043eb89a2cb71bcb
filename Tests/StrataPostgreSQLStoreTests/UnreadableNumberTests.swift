import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import TestSupport
import Testing

@Suite("Numbers in a PostgreSQL store that no Decimal can hold", .enabled(if: Server.isThere))
struct UnreadableNumberTests {
    @Test(arguments: ["'NaN'", "1e200", "12345678901234567890123456789012345678901234567890"])
    func `are an error of a fetch, and found by verify`(_ number: String) throws {
        let model = GuideModel.make()
        let stack = try Stack(.postgreSQL, model: model)
        let ids = try ["good", "bad"].map { name in
            try stack.store(Venue.self) { venue, _ in
                venue.name = name
                venue.rating = 4.5
            }
        }
        try expectEqual(PostgreSQLStore.problems(at: stack.storeURL, model), [])
        try stack.sql("", postgreSQL: "UPDATE venue SET rating = \(number) WHERE name = 'bad'")
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        let coordinator = try stack.secondCoordinator()
        defer { for store in coordinator.persistentStores { try? coordinator.remove(store) } }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.code, .fileReadCorruptFile)
            let text = error?.localizedDescription ?? ""
            expect(text.contains("\"rating\" of row") && !text.contains("1234567890"), "\(text)")
            let bad = try require(coordinator.managedObjectID(forURIRepresentation: ids[1].uriRepresentation()))
            let single = expectThrows(CocoaError.self) { try context.existingObject(with: bad) }
            expectEqual(single?.code, .fileReadCorruptFile)
            // The connection still serves requests for other rows.
            request.predicate = NSPredicate(format: "name == 'good'")
            try expectEqual(context.fetch(request).map(\.rating), [4.5])
        }
        let problems = try PostgreSQLStore.problems(at: stack.storeURL, model)
        expectEqual(problems, ["1 rows of venue have at rating what no Decimal can hold"])
    }
}
