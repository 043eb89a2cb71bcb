import CoreData
import Expectations
import TestSupport
import Testing

/// Objects that are made without a context can be related, and are inserted together.
@Suite("Objects without a context")
struct ObjectsWithoutContextTests {
    /// An object of the guide model without a context.
    private func make<Object: NSManagedObject>(_ stack: Stack, _ type: Object.Type = Object.self) -> Object {
        let entity = stack.coordinator.managedObjectModel.entities.first { $0.name == "\(type)" }
        return Object(entity: entity ?? NSEntityDescription(), insertInto: nil)
    }

    /// A venue with a relationship of each kind.
    private func venue(_ stack: Stack) -> Venue {
        let (venue, city, licence) = (make(stack, Venue.self), make(stack, City.self), make(stack, Licence.self))
        (venue.name, city.name, licence.number) = ("venue", "city", "1")
        venue.city = city
        licence.venue = venue
        for title in ["a", "b", "c"] {
            let (photo, tag, user) = (make(stack, Photo.self), make(stack, Tag.self), make(stack, User.self))
            (photo.title, tag.title, user.email) = (title, title, title)
            venue.mutableOrderedSetValue(forKey: "photos").insert(photo, at: 0)
            tag.venues = [venue]
            user.mutableOrderedSetValue(forKey: "favourites").add(venue)
        }
        return venue
    }

    private func described(_ venue: Venue) -> String {
        let tags = venue.tags.map { $0.title ?? "" }.sorted()
        let fans = venue.fans.map(\.email).sorted()
        let photos = venue.photos.map { $0.title ?? "" }
        return "\(venue.city?.name ?? "-") \(venue.licence?.number ?? "-") \(tags) \(fans) \(photos)"
    }

    private let whole = #"city 1 ["a", "b", "c"] ["a", "b", "c"] ["c", "b", "a"]"#

    @Test(arguments: StoreKind.allCases)
    func `relationships of all kinds have both sides`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let venue = venue(stack)
        expectEqual(described(venue), whole)
        expect(venue.city?.venues == [venue] && venue.licence?.venue === venue)
        expect(venue.photos.allSatisfy { $0.venue === venue } && venue.tags.allSatisfy { $0.venues == [venue] })
        expect(venue.fans.allSatisfy { $0.favourites == [venue] && $0.managedObjectContext == nil })
        expect(venue.value(forKeyPath: "city.name") as? String == "city")
        expect((venue.value(forKey: "photos") as? NSOrderedSet)?.count == 3)
        expectEqual(venue.objectIDs(forRelationshipNamed: "photos"), venue.photos.map(\.objectID))
        expect(venue.objectID.isTemporaryID && !venue.hasFault(forRelationshipNamed: "city"))
        expect(
            NSPredicate(format: "city.name == 'city' AND photos.@count == 3 AND ANY tags.title == 'b'").evaluate(
                with: venue
            )
        )
        let other = make(stack, Venue.self)
        other.licence = venue.licence
        expect(venue.licence == nil && other.licence?.venue === other)
        venue.photos.removeFirst()
        expectEqual(venue.photos.map(\.title), ["b", "a"])
        venue.city?.venues = []
        expect(venue.city == nil)
        let tag = venue.tags.first
        tag?.mutableSetValue(forKey: "venues").removeAllObjects()
        expect(venue.tags.count == 2 && tag?.mutableSetValue(forKey: "venues").contains(venue) == false)
    }

    @Test(arguments: StoreKind.allCases)
    func `inserting one inserts all, and a save stores them`(_ kind: StoreKind) throws {
        for isChild in [false, true] {
            let stack = try Stack(kind)
            let root = stack.context("root")
            let context = isChild ? root.child("child") : root
            let id = try context.performAndWait {
                let venue = venue(stack)
                let id = venue.objectID
                let photo = venue.photos[1]
                context.insert(photo)
                expect(venue.managedObjectContext === context && venue.isInserted && venue.objectID == id)
                expectEqual(context.insertedObjects.count, 12)
                expect(venue.city?.managedObjectContext === context)
                expectEqual(venue.photos[1], photo)
                try context.save()
                try context.parent?.saveAndWait()
                return venue.objectID
            }
            try expectEqual(stack.read(id, Venue.self, described), whole)
            try expectEqual(stack.problems(), [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `relating an object to one of a context inserts it, by whichever side`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "city"
            try context.save()
            let (first, second, third, fourth) = (
                make(stack, Venue.self), make(stack, Venue.self), make(stack, Venue.self), make(stack, Venue.self)
            )
            let photo = make(stack, Photo.self)
            first.photos = [photo]
            first.city = city
            city.venues.insert(second)
            city.mutableSetValue(forKey: "venues").add(third)
            fourth.setValue(city, forKey: "city")
            expect([first, second, third, fourth].allSatisfy { $0.isInserted && $0.managedObjectContext === context })
            expect(photo.isInserted && photo.venue === first)
            expectEqual(city.venues, [first, second, third, fourth])
            try context.save()
        }
        try expectEqual(stack.count("Venue"), 4)
        try expectEqual(stack.count("Photo"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `undo, redo and roll-back take all of them`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            context.undoManager = UndoManager()
            let venue = venue(stack)
            context.insert(venue)
            context.processPendingChanges()
            context.undo()
            expect(context.insertedObjects.isEmpty && venue.managedObjectContext == nil && venue.city == nil)
            context.redo()
            expectEqual(described(venue), whole)
            context.undo()
            // Now it is an object without a context like any other.
            let city = make(stack, City.self)
            city.name = "city"
            venue.city = city
            expect(venue.city === city && venue.photos.isEmpty)
            context.insert(city)
            expect(venue.isInserted)
            try context.save()
            expect(venue.city === city)
            let late = make(stack, Photo.self)
            late.venue = venue
            context.rollback()
            expect(late.managedObjectContext == nil && venue.photos.isEmpty)
        }
        try expectEqual(stack.count("Venue"), 1)
    }

    @Test func `a relationship of an entity to itself is inserted from either end`() throws {
        let stack = try Stack.objects(.memory)
        try stack.inContext { context throws in
            let entities = stack.coordinator.managedObjectModel.entitiesByName
            let (mother, child) = (
                Person(entity: try #require(entities["Person"]), insertInto: nil),
                Person(entity: try #require(entities["Person"]), insertInto: nil)
            )
            mother.name = "mother"
            child.mother = mother
            expectEqual(mother.children, [child])
            context.insert(child)
            expect(mother.isInserted && mother.children == [child])
        }
    }

    @Test func `objects are released when nothing relates them any more`() throws {
        let stack = try Stack(.memory)
        weak var city: City?
        weak var lonely: Venue?
        do {
            let (venue, other) = (make(stack, Venue.self), make(stack, Venue.self))
            do {
                let made = make(stack, City.self)
                city = made
                venue.city = made
                made.venues.insert(other)
            }
            expect(city != nil, "a relationship holds its destination")
            other.city = nil
            venue.city = nil
            lonely = venue
        }
        expect(city == nil && lonely == nil)
    }

    @Test func `an object is held as long as any relationship names it`() throws {
        let (owner, item) = (StoreModels.entity("Owner"), StoreModels.entity("Item"))
        item.properties = [
            StoreModels.toOne("first", owner), StoreModels.toOne("second", owner), StoreModels.toMany("all", owner),
        ]
        let stack = try Stack(.memory, model: StoreModels.model(owner, item))
        let ends = ["first", "second", "all"]
        // Each relationship is the last one in turn, and the others lead elsewhere or nowhere.
        for last in ends {
            for leadsElsewhere in [false, true] {
                weak var held: NSManagedObject?
                let holder = NSManagedObject(entity: item, insertInto: nil)
                do {
                    let made = NSManagedObject(entity: owner, insertInto: nil)
                    held = made
                    for end in ends { holder.setValue(end == "all" ? NSSet(object: made) : made, forKey: end) }
                }
                func leave(_ end: String) {
                    let other = leadsElsewhere ? NSManagedObject(entity: owner, insertInto: nil) : nil
                    guard end == "all" else { return holder.setValue(other, forKey: end) }
                    holder.setValue(NSSet(array: other.map { [$0] } ?? []), forKey: end)
                }
                for end in ends where end != last { leave(end) }
                expect(held != nil, "\(last), \(leadsElsewhere)")
                leave(last)
                expect(held == nil, "\(last), \(leadsElsewhere)")
                withExtendedLifetime((holder, stack)) {}
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a relationship without an inverse holds an object that was saved before`(_ kind: StoreKind) throws {
        let (owners, items) = (StoreModels.entity("Owner"), StoreModels.entity("Item"))
        items.properties = [StoreModels.toOne("owner", owners), StoreModels.toMany("former", owners)]
        let stack = try Stack(kind, model: StoreModels.model(owners, items))
        let context = stack.context()
        let id = try context.performAndWait {
            let (owner, gone) = (
                NSManagedObject(entity: owners, insertInto: nil), NSManagedObject(entity: owners, insertInto: nil)
            )
            let item = NSManagedObject(entity: items, insertInto: nil)
            item.setValue(owner, forKey: "owner")
            item.setValue(Set([owner, gone]), forKey: "former")
            context.insert(owner)
            context.insert(gone)
            expect(item.managedObjectContext == nil)
            try context.save()
            context.delete(gone)
            try context.save()
            context.insert(item)
            expect(item.value(forKey: "owner") as? NSManagedObject === owner)
            try context.save()
            return item.objectID
        }
        try stack.read(id, NSManagedObject.self) { item in
            expect(item.value(forKey: "owner") != nil)
            expectEqual(item.objectIDs(forRelationshipNamed: "former").count, 1)
        }
    }
}
