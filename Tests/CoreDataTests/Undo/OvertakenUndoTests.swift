import CoreData
import Expectations
import TestSupport
import Testing

/// A step of undo may have set relationships that others have changed since.
///
/// Then both of their sides go back, or neither.
@Suite("Undo of relationships that others have changed since")
struct OvertakenUndoTests {
    /// A context with an undo manager that merges what others save.
    private func context(_ stack: Stack) -> NSManagedObjectContext {
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        context.undoManager = UndoManager()
        return context
    }

    private func expectAgreement(_ stack: Stack) throws {
        try expectEqual(stack.problems(), [])
        try stack.inContext { context in try expectAgreement(in: context) }
    }

    private func expectAgreement(in context: NSManagedObjectContext) throws {
        for licence in try context.all(Licence.self) {
            if let venue = licence.venue { expect(venue.licence === licence) }
        }
        for venue in try context.all(Venue.self) {
            if let licence = venue.licence { expect(licence.venue === venue) }
            if let city = venue.city { expect(city.venues.contains(venue)) }
        }
        for city in try context.all(City.self) { expect(city.venues.allSatisfy { $0.city === city }) }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a licence that others have moved since goes back on both sides`(_ kind: StoreKind, _ isSaved: Bool) throws {
        let stack = try Stack(kind)
        let ids = try (0..<3).map { number in try stack.store(Venue.self) { venue, _ in venue.name = "\(number)" } }
        let licenceID = try stack.store(Licence.self) { licence, context in
            licence.venue = context.object(with: ids[0]) as? Venue
        }
        let context = context(stack)
        let kept = try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            licence.venue = try context.get(ids[1], Venue.self)
            if isSaved { try context.save() } else { context.processPendingChanges() }
            return UncheckedSendable(licence)
        }
        try stack.change(licenceID, Licence.self) { licence, context in
            licence.venue = context.object(with: ids[2]) as? Venue
        }
        try context.performAndWait {
            let licence = kept.value
            expectEqual(licence.venue?.objectID, ids[isSaved ? 2 : 1])
            context.undo()
            expectEqual(licence.venue?.objectID, ids[0])
            try expectAgreement(in: context)
            try context.save()
        }
        try expectAgreement(stack)
        try stack.read(licenceID, Licence.self) { expectEqual($0.venue?.objectID, ids[0]) }
        try context.performAndWait {
            context.redo()
            expectEqual(kept.value.venue?.objectID, ids[1])
            try expectAgreement(in: context)
            try context.save()
        }
        try expectAgreement(stack)
    }

    @Test(arguments: StoreKind.allCases)
    func `a venue whose former licence others have replaced since gives that up`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try (0..<2).map { number in try stack.store(Venue.self) { venue, _ in venue.name = "\(number)" } }
        let licenceID = try stack.store(Licence.self) { licence, context in
            licence.venue = context.object(with: ids[0]) as? Venue
        }
        let context = context(stack)
        let kept = try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            licence.venue = try context.get(ids[1], Venue.self)
            try context.save()
            return UncheckedSendable(licence)
        }
        try stack.change(ids[0], Venue.self) { venue, context in venue.licence = Licence(context: context) }
        try context.performAndWait {
            context.undo()
            expectEqual(kept.value.venue?.objectID, ids[0])
            try expectAgreement(in: context)
            try context.save()
        }
        try expectAgreement(stack)
    }

    @Test(arguments: StoreKind.allCases)
    func `a city that others have replaced since loses the venue that goes back`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try ["from", "to", "theirs"].map { try stack.storeCity($0) }
        let venueID = try stack.store(Venue.self) { venue, context in venue.city = context.object(with: ids[0]) as? City
        }
        let context = context(stack)
        let kept = try context.performAndWait {
            let venue = try context.get(venueID, Venue.self)
            venue.city = try context.get(ids[1], City.self)
            try context.save()
            return UncheckedSendable(venue)
        }
        try stack.change(venueID, Venue.self) { venue, context in venue.city = context.object(with: ids[2]) as? City }
        try context.performAndWait {
            let (venue, theirs) = (kept.value, try context.get(ids[2], City.self))
            expectEqual(theirs.venues, [venue])
            context.undo()
            expect(venue.city?.objectID == ids[0] && theirs.venues.isEmpty)
            try expectAgreement(in: context)
            try context.save()
        }
        try expectAgreement(stack)
        try stack.read(venueID, Venue.self) { expectEqual($0.city?.objectID, ids[0]) }
    }

    @Test(arguments: StoreKind.allCases)
    func `what was set here and then elsewhere stays as others have set it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cityID, theirCityID) = (try stack.storeCity("mine"), try stack.storeCity("theirs"))
        let ids = try (0..<2).map { number in try stack.store(Venue.self) { venue, _ in venue.name = "\(number)" } }
        let licenceID = try stack.store(Licence.self) { licence, _ in licence.number = "1" }
        let context = context(stack)
        let kept = try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            let venue = try context.get(ids[0], Venue.self)
            licence.venue = venue
            venue.city = try context.get(cityID, City.self)
            try context.save()
            return UncheckedSendable((licence, venue))
        }
        try stack.change(licenceID, Licence.self) { licence, context in
            licence.venue?.city = context.object(with: theirCityID) as? City
            licence.venue = context.object(with: ids[1]) as? Venue
        }
        try context.performAndWait {
            let (licence, venue) = kept.value
            context.undo()
            expect(licence.venue?.objectID == ids[1] && venue.city?.objectID == theirCityID)
            try expectAgreement(in: context)
            try context.save()
        }
        try expectAgreement(stack)
        try stack.read(licenceID, Licence.self) { expectEqual($0.venue?.objectID, ids[1]) }
        try stack.read(ids[0], Venue.self) { expectEqual($0.city?.objectID, theirCityID) }
    }
}
