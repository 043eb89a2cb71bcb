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

    @Test(arguments: StoreKind.allCases)
    func `a changed fault whose row is gone is in no answer for a child`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let root = stack.context("root")
        let child = root.child("child")
        let leaf = child.child("leaf")
        child.performAndWait {
            // The city has a changed relationship, but its row is not read.
            Venue(context: child).city = child.object(with: id) as? City
        }
        try stack.delete(id)
        try leaf.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            for predicate in [nil, NSPredicate(format: "NOT ANY venues.name == 'a'")] {
                request.predicate = predicate
                try expectEqual(leaf.fetch(request), [])
                try expectEqual(leaf.count(for: request), 0)
                let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
                ids.predicate = predicate
                ids.resultType = .managedObjectIDResultType
                try expectEqual(leaf.fetch(ids), [])
            }
        }
    }
}
