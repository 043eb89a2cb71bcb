import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

@Suite("Objects whose insertion was taken back")
struct UndoneInsertionTests {
    /// A context with an undo manager.
    private func context(_ stack: Stack) -> NSManagedObjectContext {
        let context = stack.context()
        context.undoManager = UndoManager()
        return context
    }

    enum Way: CaseIterable {
        case undo
        case rollback
    }

    private func takeBack(in context: NSManagedObjectContext, by way: Way) {
        context.processPendingChanges()
        switch way {
        case .undo: context.undo()
        case .rollback: context.rollback()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `are those of the context that they are inserted into then`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (first, second) = (context(stack), stack.context())
        let kept = first.performAndWait {
            let city = City(context: first)
            city.name = "Porto"
            takeBack(in: first, by: .undo)
            expect(city.managedObjectContext == nil && !first.hasChanges && first.insertedObjects.isEmpty)
            return UncheckedSendable(city)
        }
        second.performAndWait {
            second.insert(kept.value)
            expect(second.hasChanges && second.insertedObjects == [kept.value])
        }
        try first.performAndWait {
            expect(!first.hasChanges && first.insertedObjects.isEmpty)
            // The object is another context's now, so there is nothing that could be done again.
            first.redo()
            expect(!first.hasChanges)
            try first.save()
        }
        try expectEqual(stack.count("City"), 0)
        try second.performAndWait {
            expect(second.hasChanges)
            try second.save()
            expect(!second.hasChanges && kept.value.name == "Porto")
        }
        try expectEqual(stack.count("City"), 1)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases, Way.allCases)
    func `are inserted again without the relationships that they had`(_ kind: StoreKind, _ way: Way) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("Porto")
        let tagID = try stack.store(Tag.self) { tag, _ in tag.title = "open" }
        let context = context(stack)
        let id = try context.performAndWait {
            let (city, tag) = (try context.get(cityID, City.self), try context.get(tagID, Tag.self))
            expect(city.venues.isEmpty && tag.venues.isEmpty)
            let venue = Venue(context: context)
            venue.name = "bar"
            venue.city = city
            venue.tags = [tag]
            takeBack(in: context, by: way)
            expect(city.venues.isEmpty && tag.venues.isEmpty)
            context.insert(venue)
            expect(venue.isInserted && venue.name == "bar")
            expect(venue.city == nil && city.venues.isEmpty && venue.tags.isEmpty && tag.venues.isEmpty)
            try context.save()
            return venue.objectID
        }
        try stack.read(id, Venue.self) { expect($0.name == "bar" && $0.city == nil && $0.tags.isEmpty) }
        try stack.read(cityID, City.self) { expect($0.venues.isEmpty) }
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases, Way.allCases)
    func `are not related to what has the same key in another store`(_ kind: StoreKind, _ way: Way) throws {
        let (stack, elsewhere) = (try Stack(kind), try Stack(kind))
        let (cityID, strangerID) = (try stack.storeCity("Porto"), try elsewhere.storeCity("stranger"))
        let (context, other) = (context(stack), elsewhere.context())
        let kept = try context.performAndWait {
            let venue = Venue(context: context)
            venue.city = try context.get(cityID, City.self)
            takeBack(in: context, by: way)
            return UncheckedSendable(venue)
        }
        try other.performAndWait {
            other.insert(kept.value)
            expectEqual(kept.value.city, nil)
            try other.save()
        }
        try elsewhere.read(strangerID, City.self) { expect($0.venues.isEmpty) }
        try expectEqual(elsewhere.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `come back with their relationships if the insertion is done again`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("Porto")
        let context = context(stack)
        let id = try context.performAndWait {
            let city = try context.get(cityID, City.self)
            let venue = Venue(context: context)
            venue.city = city
            takeBack(in: context, by: .undo)
            context.redo()
            expect(venue.isInserted && venue.city === city && city.venues == [venue])
            expect(context.insertedObjects == [venue])
            try context.save()
            return venue.objectID
        }
        try stack.read(id, Venue.self) { expectEqual($0.city?.objectID, cityID) }
        try expectEqual(stack.problems(), [])
    }
}
