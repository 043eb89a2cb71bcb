import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

/// IDs that a program has captured before a save: they do not change, and lead to the object.
@Suite("IDs captured before a save")
struct CapturedIDTests {
    /// The ways in which an object gets its permanent ID.
    enum Way: CaseIterable {
        case save, obtaining

        func run(_ objects: [NSManagedObject], in context: NSManagedObjectContext) throws {
            switch self {
            case .save: try context.save()
            case .obtaining: try context.obtainPermanentIDs(for: objects)
            }
        }
    }

    @Test(arguments: StoreKind.allCases, Way.allCases)
    func `an object gets another ID, and what was filed under the old one stays there`(_ kind: StoreKind, _ way: Way)
        throws
    {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let captured = city.objectID
            let (hash, uri, text) = (captured.hash, captured.uriRepresentation(), captured.description)
            var names = [captured: "Porto"]
            try way.run([city], in: context)
            let permanent = city.objectID
            expect(!permanent.isTemporaryID && permanent.persistentStore != nil && permanent === city.objectID)
            expect(captured.isTemporaryID && captured.persistentStore == nil)
            expect(captured != permanent && permanent != captured)
            expect(captured.hash == hash && captured.uriRepresentation() == uri && captured.description == text)
            expect(names[captured] == "Porto" && names[permanent] == nil)
            // After an object was saved, programs do the same: they file it under the new ID, and remove it under the
            // old one.
            names[permanent] = names.removeValue(forKey: captured)
            expect(names == [permanent: "Porto"])
        }
    }

    @Test(arguments: StoreKind.allCases, Way.allCases)
    func `a captured ID leads to the object in its own context`(_ kind: StoreKind, _ way: Way) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let venue = Venue(context: context)
            venue.name = "Casa"
            venue.city = city
            let captured = city.objectID
            let uri = captured.uriRepresentation()
            try way.run([city, venue], in: context)
            expect(context.object(with: captured) === city && context.registeredObject(for: captured) === city)
            try expect(context.existingObject(with: captured) === city)
            let found = try require(stack.coordinator.managedObjectID(forURIRepresentation: uri))
            expect(found == captured && context.object(with: found) === city)
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            for predicate in [
                NSPredicate(format: "city == %@", captured), NSPredicate(format: "city IN %@", [captured]),
            ] {
                request.predicate = predicate
                expect(predicate.evaluate(with: venue))
                try expectEqual(context.fetch(request), [venue])
            }
            expectEqual(city.objectIDs(forRelationshipNamed: "venues"), [venue.objectID])
            try context.save()
            try expectEqual(context.fetch(request), [venue])
            let cities = NSFetchRequest<City>(entityName: "City")
            cities.predicate = NSPredicate(format: "SELF == %@", captured)
            try expectEqual(context.fetch(cities), [city])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a captured ID leads to the row in other contexts, before and after it is saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (context, other) = (stack.context(), stack.context())
        let (city, captured) = context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            return (city, city.objectID)
        }
        let early = other.performAndWait { other.object(with: captured) }
        try context.performAndWait { try context.save() }
        let permanent = context.performAndWait { city.objectID }
        try other.performAndWait {
            expect(other.object(with: captured) === early && other.object(with: permanent) === early)
            try expect(other.existingObject(with: captured) === early)
            expect(early.objectID === permanent)
            expectEqual((early as? City)?.name, "Porto")
        }
        // This context has never had the object.
        try stack.context().look(captured, City.self) { found in
            expect(found.name == "Porto" && found.objectID === permanent)
        }
    }

    /// The ways in which a program gives up a new object.
    enum End: CaseIterable {
        case rollback, deletion, deletionAndSave, reset, context
    }

    @Test(arguments: StoreKind.allCases, End.allCases)
    func `the process keeps no ID of a new object that is given up, though its URI was asked for`(
        _ kind: StoreKind,
        _ end: End
    ) throws {
        let stack = try Stack(kind)
        weak var id: NSManagedObjectID?
        let uris = try { () throws -> [URL] in
            let context = stack.context()
            return try context.performAndWait { () throws -> [URL] in
                let (city, kept) = (City(context: context), City(context: context))
                (city.name, kept.name) = ("Porto", "Braga")
                id = city.objectID
                let uris = [city, kept].map { $0.objectID.uriRepresentation() }
                switch end {
                case .rollback: context.rollback()
                case .deletion: context.delete(city)
                case .deletionAndSave:
                    context.delete(city)
                    try context.save()
                    // That of an object which was saved leads on.
                    expect(stack.coordinator.managedObjectID(forURIRepresentation: uris[1])?.latest == kept.objectID)
                case .reset: context.reset()
                case .context: break
                }
                return uris
            }
        }()
        // Tables of IDs look for released ones when they have grown.
        let other = stack.context()
        for _ in 0..<50 where id != nil {
            other.performAndWait {
                for _ in 0..<5_000 { _ = City(context: other).objectID }
                other.rollback()
            }
        }
        expect(id == nil)
        expect(stack.coordinator.managedObjectID(forURIRepresentation: uris[0]) == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `changes reported by captured IDs are merged`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (writer, reader) = (stack.context(), stack.context())
        let (city, captured) = try writer.performAndWait {
            let city = City(context: writer)
            city.name = "Porto"
            let captured = city.objectID
            try writer.save()
            return (city, captured)
        }
        let seen = try reader.performAndWait {
            let seen = try require(try reader.existingObject(with: captured) as? City)
            expectEqual(seen.name, "Porto")
            return seen
        }
        try writer.performAndWait {
            city.name = "Braga"
            try writer.save()
        }
        let uri = captured.uriRepresentation()
        for told in [captured, uri] as [Any] {
            NSManagedObjectContext.mergeChanges(
                fromRemoteContextSave: [NSUpdatedObjectIDsKey: [told]],
                into: [reader]
            )
        }
        reader.performAndWait { expectEqual(seen.name, "Braga") }
        try writer.performAndWait {
            writer.delete(city)
            try writer.save()
        }
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSDeletedObjectIDsKey: [captured]],
            into: [reader]
        )
        reader.performAndWait { expect(seen.isDeleted || seen.managedObjectContext == nil) }
    }

    @Test(arguments: StoreKind.allCases)
    func `requests that work without objects understand captured IDs`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let captured = city.objectID
            expectThrows(CocoaError.self) { try context.execute(NSBatchDeleteRequest(objectIDs: [captured])) }
            try context.save()
            try context.execute(NSBatchDeleteRequest(objectIDs: [captured]))
            try expectEqual(context.count(for: NSFetchRequest<City>(entityName: "City")), 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `notifications of a save list permanent IDs`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        let told = Locked<[NSManagedObjectID]>([])
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didSaveObjectIDsNotification,
            object: context,
            queue: nil
        ) { notification in
            let key = NSManagedObjectContext.NotificationKey.insertedObjectIDs.rawValue
            let ids = notification.userInfo?[key] as? Set<NSManagedObjectID> ?? []
            told.withLock { $0.append(contentsOf: ids) }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let captured = city.objectID
            try context.save()
            expect(told.withLock { $0 } == [city.objectID] && !told.withLock { $0.contains(captured) })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an insertion that is undone and made again after a save has yet another ID`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let undo = UndoManager()
            context.undoManager = undo
            let city = City(context: context)
            city.name = "Porto"
            let captured = city.objectID
            context.processPendingChanges()
            try context.save()
            let permanent = city.objectID
            undo.undo()
            try context.save()
            try expectEqual(context.count(for: NSFetchRequest<City>(entityName: "City")), 0)
            undo.redo()
            try context.save()
            let again = city.objectID
            expect(!again.isTemporaryID && again != permanent && again != captured)
            expect(captured.isTemporaryID && !permanent.isTemporaryID)
            try stack.context().look(again, City.self) { expectEqual($0.name, "Porto") }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object has no ID beyond the one that is held`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            weak var captured: NSManagedObjectID?
            do {
                let id = city.objectID
                captured = id
                expect(captured != nil)
            }
            try context.save()
            _ = city.objectID
            // Neither the permanent ID nor a table holds the temporary ID.
            expect(captured == nil)
        }
    }
}
