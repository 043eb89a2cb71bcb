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

    // MARK: - Moved here and elsewhere

    /// How a context finds out that what it has changed was changed elsewhere too.
    enum Discovery: CaseIterable {
        case merge
        case refresh
        case objectTrump
        case overwrite

        var policy: Policy {
            switch self {
            case .merge, .refresh: .error
            case .objectTrump: .objectTrump
            case .overwrite: .overwrite
            }
        }
    }

    /// `isRead` says whether the context has read the object before that others set.
    @Test(arguments: StoreKind.allCases, Discovery.allCases)
    func `a licence that is moved here and elsewhere is that of one venue`(
        _ kind: StoreKind,
        _ discovery: Discovery
    ) throws {
        for isRead in [true, false] {
            let stack = try Stack(kind)
            let (venueID, otherID, licenceID) = try store(stack)
            let thirdID = try stack.store(Venue.self) { venue, _ in venue.name = "third" }
            let context = stack.context(discovery.policy)
            context.automaticallyMergesChangesFromParent = discovery == .merge
            context.undoManager = UndoManager()
            let kept = try context.performAndWait {
                let licence = try context.get(licenceID, Licence.self)
                if isRead { expectEqual(try context.get(thirdID, Venue.self).licence, nil) }
                licence.venue = try context.get(otherID, Venue.self)
                return UncheckedSendable(licence)
            }
            try give(licenceID, to: thirdID, stack)
            try context.performAndWait {
                let licence = kept.value
                if discovery == .refresh { context.refreshAllObjects() }
                if discovery == .merge || discovery == .refresh {
                    let third = try context.get(thirdID, Venue.self)
                    expect(licence.venue?.objectID == otherID && third.licence == nil)
                }
                try context.save()
                expect(!context.hasChanges)
                try expectAgreement(in: context)
                // A change that was made elsewhere is no step, and no step reverts it.
                context.undo()
                expectEqual(licence.venue?.objectID, venueID)
                expectEqual(context.undoManager?.canUndo, false)
                context.redo()
                try context.save()
            }
            try expectAgreement(stack)
            try stack.read(licenceID, Licence.self) { expectEqual($0.venue?.objectID, otherID) }
            // A venue without the licence does not take it along.
            try stack.delete(thirdID)
            try expectEqual(stack.count("Licence"), 1)
        }
    }

    @Test(arguments: StoreKind.allCases, Discovery.allCases)
    func `a venue that gets a licence here and another one elsewhere has one`(
        _ kind: StoreKind,
        _ discovery: Discovery
    ) throws {
        for isRead in [true, false] {
            let stack = try Stack(kind)
            let (_, otherID, licenceID) = try store(stack)
            let rivalID = try stack.store(Licence.self) { licence, _ in licence.number = "rival" }
            let context = stack.context(discovery.policy)
            context.automaticallyMergesChangesFromParent = discovery == .merge
            let kept = try context.performAndWait {
                let other = try context.get(otherID, Venue.self)
                if isRead { expectEqual(try context.get(rivalID, Licence.self).venue, nil) }
                other.licence = try context.get(licenceID, Licence.self)
                return UncheckedSendable(other)
            }
            try give(rivalID, to: otherID, stack)
            try context.performAndWait {
                let other = kept.value
                if discovery == .refresh { context.refreshAllObjects() }
                try context.save()
                expectEqual(other.licence?.objectID, licenceID)
                try expectAgreement(in: context)
            }
            try expectAgreement(stack)
            try stack.read(rivalID, Licence.self) { expectEqual($0.venue, nil) }
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a licence that was moved elsewhere alone is that of one venue, though another change overwrites that`(
        _ kind: StoreKind,
        _ isRead: Bool
    ) throws {
        let stack = try Stack(kind)
        let (venueID, otherID, licenceID) = try store(stack)
        let context = stack.context(.overwrite)
        try context.performAndWait {
            let licence = try context.get(licenceID, Licence.self)
            if isRead {
                for id in [venueID, otherID] { _ = try context.get(id, Venue.self).licence }
            }
            licence.number = "mine"
            try give(licenceID, to: otherID, stack)
            try context.save()
            expectEqual(licence.venue?.objectID, venueID)
            try expectAgreement(in: context)
        }
        try expectAgreement(stack)
        try stack.read(licenceID, Licence.self) { expectEqual($0.venue?.objectID, venueID) }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a licence that a child and others have moved is that of one venue`(_ kind: StoreKind, _ isRead: Bool) throws {
        let stack = try Stack(kind)
        let (_, otherID, licenceID) = try store(stack)
        let thirdID = try stack.store(Venue.self) { venue, _ in venue.name = "third" }
        let (parent, child) = stack.pair()
        parent.automaticallyMergesChangesFromParent = true
        child.automaticallyMergesChangesFromParent = true
        let kept = try child.performAndWait {
            let licence = try child.get(licenceID, Licence.self)
            if isRead { expectEqual(try child.get(thirdID, Venue.self).licence, nil) }
            licence.venue = try child.get(otherID, Venue.self)
            return UncheckedSendable(licence)
        }
        try give(licenceID, to: thirdID, stack)
        // The parent merges what was saved, and then the child does.
        parent.performAndWait {}
        try child.performAndWait {
            expectEqual(kept.value.venue?.objectID, otherID)
            try child.save()
            try expectAgreement(in: child)
        }
        try parent.performAndWait {
            try expectAgreement(in: parent)
            try parent.save()
        }
        try expectAgreement(stack)
        try stack.read(licenceID, Licence.self) { expectEqual($0.venue?.objectID, otherID) }
        try stack.delete(thirdID)
        try expectEqual(stack.count("Licence"), 1)
    }

    /// Checks that the two sides of all relationships agree in the store and for a new context.
    private func expectAgreement(_ stack: Stack) throws {
        try expectEqual(stack.problems(), [])
        let context = stack.context()
        try context.performAndWait { try expectAgreement(in: context) }
    }

    private func expectAgreement(in context: NSManagedObjectContext) throws {
        for venue in try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")) {
            if let licence = venue.licence { expect(licence.venue === venue) }
        }
        for licence in try context.fetch(NSFetchRequest<Licence>(entityName: "Licence")) {
            if let venue = licence.venue { expect(venue.licence === licence) }
        }
    }
}
