import CoreData
import Expectations
import TestSupport
import Testing

/// A store keeps both sides of a one-to-one relationship, so a save must not change one side with an old view of the
/// other.
@Suite("One-to-one relationships whose sides were read at different times")
struct OneToOneTests {
    /// Stores a venue with a licence and one without.
    private func store(_ stack: Stack) throws -> (venue: NSManagedObjectID, other: NSManagedObjectID, NSManagedObjectID)
    {
        let context = stack.context()
        return try context.performAndWait {
            let venue = Venue(context: context)
            let other = Venue(context: context)
            let licence = Licence(context: context)
            venue.licence = licence
            try context.save()
            return (venue.objectID, other.objectID, licence.objectID)
        }
    }

    private func give(_ licence: NSManagedObjectID, to venue: NSManagedObjectID?, _ stack: Stack) throws {
        let context = stack.context()
        try context.performAndWait {
            try context.get(licence, Licence.self).venue = try venue.map { try context.get($0, Venue.self) }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `setting one side is a conflict if the other side, which showed it already, is another's`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (venueID, otherID, licenceID) = try store(stack)
        let context = stack.context()
        try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            expectEqual(licence.venue?.objectID, venueID)
            try give(licenceID, to: otherID, stack)
            // The venue is read only now, and shows that its licence is gone.
            let venue = try context.get(venueID, Venue.self)
            expectEqual(venue.licence, nil)
            venue.licence = licence
            let conflicts = try context.versionConflictsOfSave()
            expect(conflicts.contains { $0.sourceObject === licence })
        }
        try expectAgreement(stack)
    }

    @Test(arguments: StoreKind.allCases)
    func `clearing one side is a conflict if the other side was read before it was set`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (venueID, _, licenceID) = try store(stack)
        try give(licenceID, to: nil, stack)
        let context = stack.context()
        try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            expectEqual(licence.venue, nil)
            try give(licenceID, to: venueID, stack)
            let venue = try context.get(venueID, Venue.self)
            expect(venue.licence === licence)
            venue.licence = nil
            let conflicts = try context.versionConflictsOfSave()
            expect(conflicts.contains { $0.sourceObject === licence })
        }
        try expectAgreement(stack)
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `whichever side wins, both sides agree afterwards`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind)
        let (venueID, otherID, licenceID) = try store(stack)
        let context = stack.context(policy)
        try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            expectEqual(licence.venue?.objectID, venueID)
            try give(licenceID, to: otherID, stack)
            try context.get(venueID, Venue.self).licence = licence
            try context.save()
        }
        try expectAgreement(stack)
    }

    @Test(arguments: StoreKind.allCases)
    func `what one context has read at one time can be set and saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (venueID, otherID, licenceID) = try store(stack)
        let context = stack.context()
        try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            try context.get(otherID, Venue.self).licence = licence
            try context.save()
            try context.get(venueID, Venue.self).licence = licence
            licence.venue = nil
            try context.save()
        }
        try expectAgreement(stack)
    }

    private func expectAgreement(_ stack: Stack) throws {
        let context = stack.context()
        try context.performAndWait {
            for venue in try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")) {
                if let licence = venue.licence { expect(licence.venue === venue) }
            }
            for licence in try context.fetch(NSFetchRequest<Licence>(entityName: "Licence")) {
                if let venue = licence.venue { expect(venue.licence === licence) }
            }
        }
    }
}
