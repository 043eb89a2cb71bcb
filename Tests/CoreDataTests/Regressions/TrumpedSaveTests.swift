import CoreData
import Expectations
import TestSupport
import Testing

/// A policy can decide for the store in everything that a context has changed about an object.
///
/// Such an object is not written. `stress interleave` has found this.
@Suite("Saves in which the store wins")
struct TrumpedSaveTests {
    @Test(arguments: StoreKind.allCases, [true, false])
    func `an object whose changes have all given way is not reported as saved`(
        _ kind: StoreKind,
        _ rollsBack: Bool
    ) throws {
        let stack = try Stack(kind)
        let maker = stack.context()
        let ids = try maker.performAndWait {
            let venues = ["lost", "kept"].map { name in
                let venue = Venue(context: maker)
                venue.name = name
                return venue
            }
            try maker.save()
            return venues.map(\.objectID)
        }
        let context = stack.context()
        context.mergePolicy = rollsBack ? NSMergePolicy.rollback : NSMergePolicy.mergeByPropertyStoreTrump
        let log = NotificationLog([NSManagedObjectContext.didSaveObjectsNotification], of: context)
        try context.performAndWait {
            let venues = try ids.map { try context.get($0, Venue.self) }
            for venue in venues { venue.name = "mine" }
            let other = stack.context()
            try other.performAndWait {
                try other.get(ids[0], Venue.self).name = "theirs"
                try other.save()
            }
            try context.save()
            expectEqual(venues.map(\.name), ["theirs", "mine"])
            expect(!context.hasChanges)
            let told = try require(log.entries.first)
            expectEqual(told.objects(NSUpdatedObjectsKey), [venues[1]])
        }
        expectEqual(log.entries.count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `an object of whose changes something is left is saved with it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let maker = stack.context()
        let id = try maker.performAndWait {
            let venue = Venue(context: maker)
            venue.name = "first"
            try maker.save()
            return venue.objectID
        }
        let context = stack.context()
        context.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
        let log = NotificationLog([NSManagedObjectContext.didSaveObjectsNotification], of: context)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.name = "mine"
            venue.price = 7
            let other = stack.context()
            try other.performAndWait {
                try other.get(id, Venue.self).name = "theirs"
                try other.save()
            }
            try context.save()
            expectEqual(venue.name, "theirs")
            try expectEqual(require(log.entries.first).objects(NSUpdatedObjectsKey), [venue])
        }
        let reader = stack.context()
        let price = try reader.performAndWait { try reader.get(id, Venue.self).price }
        expectEqual(price, 7)
    }
}
