import CoreData
import Expectations
import TestSupport
import Testing

/// After a refresh of one object and a save, both sides of each relationship show what is stored.
///
/// The refresh discards the changes of the object, and the objects at the other ends keep theirs.
@Suite("Relationships of which a refresh has discarded one side")
struct RefreshedSidesTests {
    /// Two cities and a venue in the first of them, which has a tag, a photo and a licence.
    private struct Place {
        let (home, away): (City, City)
        let venue: Venue
        let (tag, photo, licence): (TestSupport.Tag, Photo, Licence)

        init(_ context: NSManagedObjectContext) throws {
            (home, away) = (City(context: context), City(context: context))
            (venue, tag, photo, licence) = (
                Venue(context: context), Tag(context: context), Photo(context: context), Licence(context: context)
            )
            (home.name, away.name, venue.name) = ("home", "away", "venue")
            venue.city = home
            venue.tags = [tag]
            venue.photos = [photo]
            venue.licence = licence
            try context.save()
            try context.parent?.saveAndWait()
        }
    }

    /// Runs a test in a root, and in a child whose changes are saved up to the store.
    private func inContexts(_ kind: StoreKind, _ body: (NSManagedObjectContext, Place) throws -> Void) throws {
        for isChild in [false, true] {
            let stack = try Stack(kind)
            let root = stack.context("root")
            let context = isChild ? root.child("child") : root
            try context.performAndWait {
                let place = try Place(context)
                try body(context, place)
                try expectAgreement(in: context, stack)
            }
        }
    }

    /// Saves, and compares what all objects show with what is stored.
    private func expectAgreement(in context: NSManagedObjectContext, _ stack: Stack) throws {
        try context.save()
        try context.parent?.saveAndWait()
        try expectEqual(context.relatedObjects(), stack.relatedObjects())
        try expectEqual(stack.problems(), [])
        for count in 0..<3 {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "venues.@count == %d", count)
            let expected = try context.all(City.self).filter { $0.venues.count == count }
            expectEqual(Set(try context.fetch(request)), Set(expected))
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a member that was refreshed stays where the store has it`(_ kind: StoreKind, isRead: Bool) throws {
        try inContexts(kind) { context, place in
            if isRead { expect(place.home.venues.count == 1 && place.away.venues.isEmpty) }
            place.venue.city = place.away
            if isRead { expect(place.away.venues.count == 1) }
            context.refresh(place.venue, mergeChanges: false)
            expect(!place.venue.hasChanges && place.venue.city === place.home)
            try context.save()
            expect(place.home.venues == [place.venue] && place.away.venues.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `an owner that was refreshed has the members that name it`(_ kind: StoreKind, isRead: Bool) throws {
        try inContexts(kind) { context, place in
            if isRead { expect(place.home.venues.count == 1 && place.away.venues.isEmpty) }
            place.venue.city = place.away
            context.refresh(place.away, mergeChanges: false)
            context.refresh(place.home, mergeChanges: false)
            expect(!place.away.hasChanges && place.venue.city === place.away)
            if isRead { expect(place.home.venues.count == 1 && place.away.venues.isEmpty) }
            try context.save()
            expect(place.home.venues.isEmpty && place.away.venues == [place.venue])
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a member returns to its place in an ordered relationship`(_ kind: StoreKind, isRead: Bool) throws {
        try inContexts(kind) { context, place in
            let (last, other) = (Photo(context: context), Venue(context: context))
            place.venue.photos.append(last)
            try context.save()
            if isRead { expect(place.venue.photos.count == 2 && other.photos.isEmpty) }
            place.photo.venue = other
            context.refresh(place.photo, mergeChanges: false)
            try context.save()
            expect(place.venue.photos == [place.photo, last] && other.photos.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `the other side of a many-to-many relationship keeps its change`(_ kind: StoreKind, ofTag: Bool) throws {
        try inContexts(kind) { context, place in
            let added = Tag(context: context)
            try context.save()
            place.venue.tags = [added]
            for object in ofTag ? [added, place.tag] : [place.venue] { context.refresh(object, mergeChanges: false) }
            if ofTag {
                expect(added.venues.isEmpty && place.tag.venues == [place.venue] && place.venue.tags == [added])
            } else {
                expect(added.venues == [place.venue] && place.tag.venues.isEmpty && place.venue.tags == [place.tag])
            }
            try context.save()
            expect(added.venues == [place.venue] && place.tag.venues.isEmpty && place.venue.tags == [added])
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `the other side of a one-to-one relationship keeps its change`(_ kind: StoreKind, ofLicence: Bool) throws {
        try inContexts(kind) { context, place in
            let other = Venue(context: context)
            try context.save()
            other.licence = place.licence
            for object in ofLicence ? [place.licence] : [other, place.venue] {
                context.refresh(object, mergeChanges: false)
            }
            expect(ofLicence ? place.licence.venue === place.venue : place.licence.venue === other)
            try context.save()
            expect(place.licence.venue === other && other.licence === place.licence && place.venue.licence == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a later change decides`(_ kind: StoreKind) throws {
        try inContexts(kind) { context, place in
            let (third, other) = (Venue(context: context), Venue(context: context))
            try context.save()
            other.licence = place.licence
            place.venue.city = place.away
            for object in [place.licence, place.venue] { context.refresh(object, mergeChanges: false) }
            place.licence.venue = third
            place.venue.city = nil
            try context.save()
            expect(third.licence === place.licence && other.licence == nil && place.venue.licence == nil)
            expect(place.home.venues.isEmpty && place.away.venues.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a new object that was refreshed leaves its relationships`(_ kind: StoreKind, hasPermanentID: Bool) throws {
        try inContexts(kind) { context, place in
            let (venue, licence) = (Venue(context: context), Licence(context: context))
            venue.city = place.home
            venue.tags = [place.tag]
            licence.venue = venue
            if hasPermanentID { try context.obtainPermanentIDs(for: [venue]) }
            context.refresh(venue, mergeChanges: false)
            try context.save()
            expect(place.home.venues == [place.venue] && place.tag.venues == [place.venue] && licence.venue == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object whose deletion is unsaved leaves relationships of refreshed objects`(_ kind: StoreKind) throws {
        try inContexts(kind) { context, place in
            let left = Venue(context: context)
            left.city = place.home
            try context.save()
            context.delete(place.venue)
            context.delete(place.away)
            left.city = nil
            context.processPendingChanges()
            context.refresh(place.home, mergeChanges: false)
            expect(place.home.venues.count == 2)
            try context.save()
            expect(place.home.venues.isEmpty)
        }
        try inContexts(kind) { context, place in
            context.delete(place.home)
            context.processPendingChanges()
            context.refresh(place.venue, mergeChanges: false)
            try context.save()
            expect(place.venue.city == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a deletion that is taken back leaves both sides as they were`(_ kind: StoreKind) throws {
        for ofCity in [false, true] {
            try inContexts(kind) { context, place in
                let user = User(context: context)
                user.email = "a@example.org"
                user.favourites = [Venue(context: context), place.venue, Venue(context: context)]
                let order = user.favourites
                try context.save()
                let object = ofCity ? place.home : place.venue
                context.delete(object)
                context.processPendingChanges()
                expect(ofCity ? place.venue.city == nil : place.home.venues.isEmpty && place.tag.venues.isEmpty)
                context.insert(object)
                expect(place.venue.city === place.home && place.home.venues == [place.venue])
                expect(place.tag.venues == [place.venue] && user.favourites == order)
                expect(place.venue.photos == (ofCity ? [place.photo] : []) && place.photo.isDeleted != ofCity)
                try context.save()
                expect(place.venue.city === place.home && place.home.venues == [place.venue])
                expect(place.tag.venues == [place.venue] && user.favourites == order)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what was related to others meanwhile does not come back with a deleted object`(_ kind: StoreKind) throws {
        try inContexts(kind) { context, place in
            context.delete(place.home)
            context.processPendingChanges()
            place.venue.city = place.away
            context.insert(place.home)
            expect(place.home.venues.isEmpty && place.away.venues == [place.venue])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that fails leaves both sides in agreement, and so does undo`(_ kind: StoreKind) throws {
        try inContexts(kind) { context, place in
            context.undoManager = UndoManager()
            place.venue.city = place.away
            place.venue.tags = []
            context.processPendingChanges()
            context.refresh(place.venue, mergeChanges: false)
            let user = User(context: context)
            expectThrows(CocoaError.self) { try context.save() }
            expect(place.away.venues.isEmpty && place.venue.tags.isEmpty && place.tag.venues.isEmpty)
            user.email = "a@example.org"
            try context.save()
            // The address, the new user, and the first change.
            for _ in 0..<3 { context.undo() }
            expect(place.venue.city === place.home && place.home.venues == [place.venue])
            expect(place.venue.tags == [place.tag] && place.tag.venues == [place.venue])
        }
    }

    /// From 64 noted sides on, those are dropped that do not matter any more.
    @Test(arguments: StoreKind.allCases)
    func `any number of refreshed members agree with owners that keep their changes`(_ kind: StoreKind) throws {
        try inContexts(kind) { context, place in
            let venues = (0..<150).map { _ in Venue(context: context) }
            for venue in venues { venue.city = place.home }
            try context.save()
            expect(place.away.venues.isEmpty && place.home.venues.count == 151)
            for venue in venues {
                venue.city = place.away
                context.refresh(venue, mergeChanges: false)
            }
            expect(place.away.venues.count == 150 && place.home.venues == [place.venue])
            try context.save()
            expect(place.away.venues.isEmpty && place.home.venues == Set(venues + [place.venue]))
        }
    }

    /// A later refresh of the same side adds its discarded changes to those of an earlier one.
    @Test(arguments: StoreKind.allCases)
    func `each refresh of an object counts until the save`(_ kind: StoreKind) throws {
        try inContexts(kind) { context, place in
            let third = City(context: context)
            third.name = "third"
            let tag = Tag(context: context)
            try context.save()
            for city in [place.away, third, place.away] {
                expect(city.venues.isEmpty || city === place.away)
                place.venue.city = city
                place.venue.tags = city === third ? [tag] : []
                context.refresh(place.venue, mergeChanges: false)
            }
            try context.save()
            expect(place.away.venues.isEmpty && third.venues.isEmpty && place.home.venues == [place.venue])
            expectEqual(tag.venues.contains(place.venue), place.venue.tags.contains(tag))
        }
    }

    /// Its end has changes of the inverse, which the save of the object must not take for its own.
    @Test(arguments: StoreKind.allCases)
    func `a new object that was refreshed and inserted again has the relationships of the others`(_ kind: StoreKind)
        throws
    {
        try inContexts(kind) { context, place in
            let (venue, tag) = (Venue(context: context), Tag(context: context))
            (venue.name, venue.city, venue.tags) = ("new", place.home, [tag])
            context.refresh(venue, mergeChanges: false)
            context.insert(venue)
            try context.save()
            expectEqual(venue.city?.venues.contains(venue) ?? true, true)
            expectEqual(place.home.venues.contains(venue), venue.city === place.home)
            expectEqual(tag.venues.contains(venue), venue.tags.contains(tag))
        }
    }

    @Test(arguments: StoreKind.allCases, DifferentialSeeds.all)
    func `after each save all objects show what is stored`(_ kind: StoreKind, _ seed: UInt64) throws {
        let stack = try Stack(kind)
        var run = RefreshedSidesRun(stack, seed: seed)
        try run.begin()
        for _ in 0..<30 { try run.step() }
    }
}
