import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Rules for reads")
struct ReadRulesTests {
    init() { SeenReads.start() }

    @Test(arguments: StoreKind.allCases)
    func `a block over its budget fails, names its reads, and loses no change`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context("list")
        context.statementBudget = 2
        let text = message {
            try context.performAndWait { () throws in
                Tag(context: context).title = "kept"
                for venue in try context.fetch(twelveVenues()) { _ = venue.city?.name }
            }
        }
        expect(text.contains("\"list\" may read the stores 2 times (statementBudget)"))
        expect(text.contains("row of one object of City") && text.contains("1 × fetch of Venue where price < ?"))
        context.performAndWait { context.statementBudget = nil }
        try context.performAndWait { () throws in
            expectEqual(context.insertedObjects.count, 1)
            for venue in try context.fetch(twelveVenues()) { expect(venue.city?.name.hasPrefix("City") == true) }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch over the budget throws at once, and a save does not`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context()
        context.statementBudget = 1
        try context.performAndWait { () throws in
            let found = try context.fetch(twelveVenues())
            expectThrows(CocoaError.self) { try context.fetch(twelveVenues()) }
            context.delete(found[0])
            try context.save()
        }
        // Each block has its own budget.
        try context.performAndWait { () throws in try expectEqual(context.fetch(twelveVenues()).count, 11) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's reads count for the child`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = stack.context()
        child.statementBudget = 4
        let text = message {
            try child.performAndWait { () throws in
                for venue in try child.fetch(twelveVenues()) { _ = venue.city?.name }
            }
        }
        expect(text.contains("3 × row of one object of City"))
    }

    @Test(arguments: StoreKind.allCases)
    func `a block that must not read lazily fails with the object and the property`(kind: StoreKind) throws {
        let stack = try repeatedReadsGuide(kind)
        let context = stack.context("list")
        context.raisesOnFault = true
        let toOne = message {
            try context.performAndWait { () throws in
                let venue = try require(try context.fetch(twelveVenues()).first)
                expectEqual(venue.name, "Venue 0")
                _ = venue.city?.name
            }
        }
        expect(
            toOne.contains("may not read lazily (raisesOnFault), and property \"name\" of ") && toOne.contains("City")
        )
        let toMany = message {
            try context.performAndWait { () throws in
                _ = try require(try context.fetch(twelveVenues()).first).tags.count
            }
        }
        expect(toMany.contains("property \"tags\" of ") && toMany.contains("Venue"))
        try context.performAndWait { () throws in
            context.reset()
            for venue in try context.fetch(twelveVenues(prefetching: ["city", "tags"])) {
                expect(venue.city?.name.isEmpty == false && venue.tags.count == 1)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the rules are read back, and nil and false end them`(kind: StoreKind) throws {
        let context = try Stack(kind).context()
        expect(context.statementBudget == nil && !context.raisesOnFault)
        context.statementBudget = -1
        context.raisesOnFault = true
        expect(context.statementBudget == 0 && context.raisesOnFault)
        context.statementBudget = nil
        context.raisesOnFault = false
        expect(context.statementBudget == nil && !context.raisesOnFault)
    }
}
