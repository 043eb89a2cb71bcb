import CoreData
import Expectations
import TestSupport
import Testing

@Suite("What a print shows")
struct DescriptionTests {
    @Test(arguments: StoreKind.allCases)
    func `an object shows its values in a stable order, and relationships without loading them`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.name = "Sol"
            venue.city = City(context: context)
            venue.city?.name = "Porto"
            venue.tags = [Tag(context: context), Tag(context: context)]
        }
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.description, "<Venue: Venue> (id: \(id); data: <fault>)")
            expect(venue.isFault)
            _ = venue.name
            let lines = venue.description.split(separator: "\n").dropFirst().dropLast()
            let names = lines.compactMap { $0.split(separator: " ").first.map(String.init) }
            expect(names == names.sorted() && names.count > 15)
            expect(lines.contains { $0.hasSuffix("name = Sol") })
            expect(lines.contains { $0.contains("city = <x-coredata://") })
            expect(lines.contains { $0.hasSuffix("tags = <relationship fault>") })
            expect(venue.hasFault(forRelationshipNamed: "tags"))
            let tags = venue.tags
            expect(tags.allSatisfy { venue.description.contains("\($0.objectID)") })
            venue.name = String(repeating: "x", count: 1_000)
            expect(venue.description.contains("; updated;") && venue.description.count < 3_000)
            expect(Venue(context: context).description.contains("; inserted;"))
            expect(Venue(context: context).description.contains("tags = empty"))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a context shows its name, its stores or parent, and what it has to save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context("import")
        let child = context.child("form")
        try context.performAndWait {
            try context.get(id, City.self).population = 3
            _ = City(context: context)
            let text = context.description
            expect(
                text.contains("private-queue context \"import\"") && text.contains("1 inserted, 1 updated, 0 deleted")
            )
            expect(text.contains("2 registered"))
        }
        let outside = context.description
        expect(outside.contains(stack.coordinator.persistentStores[0].identifier) && !outside.contains("inserted"))
        expect(child.description.contains("\"form\"; child of private-queue context \"import\""))
        expect(NSManagedObjectContext(.mainQueue).description.contains("no coordinator"))
    }

    @Test(arguments: StoreKind.allCases)
    func `a store and a coordinator show where the data is`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let store = stack.coordinator.persistentStores[0]
        stack.coordinator.name = "guide"
        let text = store.description
        expect(text.contains(store.type) && text.contains(store.identifier) && !text.contains("read-only"))
        if kind == .sqlite { expect(text.contains(stack.storeURL.absoluteString)) }
        expect(stack.coordinator.description.contains("\"guide\"; \(text)"))
        store.isReadOnly = true
        expect(store.description.contains("read-only"))
        try stack.coordinator.remove(store)
        expect(store.description.contains("not in use"))
        expect(stack.coordinator.description.contains("no stores"))
    }

    @Test(arguments: [Double.nan, .infinity, -1e300])
    func `an object with a date that no calendar reaches can be printed`(_ seconds: Double) throws {
        let context = try Stack(.memory).context()
        context.performAndWait {
            let venue = Venue(context: context)
            venue.createdAt = Date(timeIntervalSinceReferenceDate: seconds)
            expect(venue.description.contains("createdAt = \(seconds) seconds since the reference date"))
            context.rollback()
        }
    }
}
