import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Saving")
struct SavingTests {
    @Test(arguments: StoreKind.allCases)
    func `flags show what the next save does (CS-83, 84)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            expect(city.isInserted && !city.isUpdated && !city.isDeleted)
            try context.save()
            expect(!city.isInserted && !city.isUpdated && !city.hasChanges)
            city.population = 3
            expect(!city.isInserted && city.isUpdated)
            try context.save()
            expect(!city.isUpdated)
            context.delete(city)
            expect(city.isDeleted)
            try context.save()
            expect(!city.isDeleted)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save stores its changes, and nothing else`(_ kind: StoreKind) throws {
        let options: [AnyHashable: Any] = kind == .memory ? [:] : [NSPersistentHistoryTrackingKey: true]
        let stack = try Stack(kind, model: GuideModel.make(), options: options)
        let ids = try stack.storeNumberedVenues(3) { _, venue, context in
            venue.photos = ["x", "y"].map { title in
                let photo = Photo(context: context)
                photo.title = "\(title) of \(venue.name ?? "")"
                return photo
            }
        }
        _ = try stack.storeCity("Porto")
        let before = try stack.state()
        let context = stack.context("editor")
        try context.performAndWait {
            let venues = try ids.map { try context.get($0, Venue.self) }
            venues[0].map = Data(repeating: 1, count: 200_000)
            venues[1].city = try context.all(City.self).first
            venues[1].photos.swapAt(0, 1)
            // This also deletes the photos.
            context.delete(venues[2])
            let tag = TestSupport.Tag(context: context)
            tag.title = "new"
            tag.venues = [venues[0]]
            try context.save()
        }
        // All properties of the deleted venue go with it.
        let differences = try stack.state().differences(from: before, ignoring: StoreState.history + ["Venue v2."])
        let map = try require(differences.first { $0.hasPrefix("+ Venue v0.map = 200000 bytes, ") })
        expectEqual(
            differences,
            [
                map, "+ City Porto.venues -> [Venue v1]", "+ Tag new", "+ Tag new.title = new",
                "+ Tag new.venues -> [Venue v0]", "+ Venue v0.tags -> [Tag new]", "+ Venue v1.city -> City Porto",
                "+ Venue v1.photos -> [Photo y of v1, Photo x of v1]",
                "- Venue v1.photos -> [Photo x of v1, Photo y of v1]", "- Photo x of v2", "- Photo y of v2",
                "- Photo x of v2.title = x of v2", "- Photo y of v2.title = y of v2",
                "- Photo x of v2.venue -> Venue v2", "- Photo y of v2.venue -> Venue v2", "- Venue v2",
            ].sorted()
        )
        guard kind != .memory else { return }
        let history = try stack.state().lines.filter { $0.hasPrefix("transaction 3") }
        expectEqual(
            history,
            [
                "transaction 3 in editor", "transaction 3: deletes Photo that is gone ",
                "transaction 3: deletes Photo that is gone ", "transaction 3: deletes Venue that is gone ",
                "transaction 3: inserts Tag new", "transaction 3: updates City Porto venues",
                "transaction 3: updates Venue v0 map, tags", "transaction 3: updates Venue v1 city, photos",
            ].sorted()
        )
    }

    /// The visible state of a context, which tests compare before and after a failed save.
    private struct Picture: Equatable {
        let inserted: Set<NSManagedObject>
        let updated: Set<NSManagedObject>
        let deleted: Set<NSManagedObject>
        let values: [String]

        init(_ context: NSManagedObjectContext) {
            inserted = context.insertedObjects
            updated = context.updatedObjects
            deleted = context.deletedObjects
            values = (inserted.union(updated)).union(deleted).map { object in
                let changed = object.changedValues().keys.sorted()
                let attributes = object.entity.attributesByName.keys.sorted().map { key in
                    "\(key)=\(object.value(forKey: key).map { "\($0)" } ?? "nil")"
                }
                return
                    "\(object.objectID) \(object.isInserted)\(object.isUpdated)\(object.isDeleted) \(changed) \(attributes)"
            }.sorted()
        }
    }

    /// Makes a context with one change of each kind, of which one fails to save.
    private func prepare(_ stack: Stack, _ context: NSManagedObjectContext) throws -> (
        new: Venue, temporary: NSManagedObjectID
    ) {
        let changedID = try stack.storeCity("changed")
        let doomedID = try stack.storeCity("doomed")
        let changed = try context.get(changedID, City.self)
        changed.population = 77
        context.delete(try context.get(doomedID, City.self))
        let new = Venue(context: context)
        new.name = "new"
        new.city = changed
        return (new, new.objectID)
    }

    @Test(arguments: StoreKind.allCases)
    func `a validation error leaves the context as it was, and the save succeeds when the cause is gone (CS-81, 86)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let (new, id) = try prepare(stack, context)
            let user = User(context: context)
            context.processPendingChanges()
            let before = Picture(context)
            let log = NotificationLog(.ofContexts, of: context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .validationMissingMandatoryProperty)
            expectEqual(error?.userInfo[NSValidationKeyErrorKey] as? String, "email")
            expectEqual(log.names, [.NSManagedObjectContextWillSave])
            expectEqual(Picture(context), before)
            expect(id.isTemporaryID)
            user.email = "a@b"
            try context.save()
            expect(!id.latest.isTemporaryID)
            expectEqual(new.city?.population, 77)
            expect(!context.hasChanges)
        }
        try expectEqual(stack.count("City"), 1)
        try expectEqual(stack.count("User"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `several validation errors are one error with details (CS-87)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        context.performAndWait {
            _ = User(context: context)
            _ = User(context: context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .validationMultipleErrors)
            expectEqual((error?.userInfo[NSDetailedErrorsKey] as? [NSError])?.count, 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a constraint error leaves the context as it was, and the save succeeds when the cause is gone (CS-81, 113)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        _ = try stack.store(User.self) { user, _ in user.email = "a@b" }
        let context = stack.context()
        try context.performAndWait {
            let (_, id) = try prepare(stack, context)
            let user = User(context: context)
            user.email = "a@b"
            context.processPendingChanges()
            let before = Picture(context)
            let stored = try stack.state()
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectConstraintMerge)
            expectEqual(Picture(context), before)
            try expectEqual(stack.state(), stored)
            expect(id.isTemporaryID)
            user.email = "c@d"
            try context.save()
            expect(!id.latest.isTemporaryID)
        }
        try expectEqual(stack.count("User"), 2)
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a conflict leaves the context as it was, and the save succeeds after a refresh (CS-81, 100)`(
        _ kind: StoreKind
    )
        throws
    {
        let stack = try Stack(kind)
        let other = try stack.storeCity("contested")
        let context = stack.context()
        try context.performAndWait {
            let (_, id) = try prepare(stack, context)
            let city = try context.get(other, City.self)
            city.population = 5
            try stack.change(other, City.self) { city, _ in city.population = 6 }
            context.processPendingChanges()
            let before = Picture(context)
            let stored = try stack.state()
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectMerge)
            expectEqual(Picture(context), before)
            try expectEqual(stack.state(), stored)
            expect(id.isTemporaryID)
            context.refresh(city, mergeChanges: true)
            try context.save()
        }
        try expectEqual(stack.read(other, City.self) { $0.population }, 5)
        try expectEqual(stack.count("City"), 2)
    }

    @Test
    func `an error of the store leaves the context as it was, and the save succeeds when the cause is gone (CS-81)`()
        throws
    {
        let stack = try Stack(.memory)
        let context = stack.context()
        let store = try require(stack.coordinator.persistentStores.first)
        try context.performAndWait {
            let (_, id) = try prepare(stack, context)
            context.processPendingChanges()
            let before = Picture(context)
            store.isReadOnly = true
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .fileWriteNoPermission)
            expectEqual(Picture(context), before)
            expect(id.isTemporaryID)
            store.isReadOnly = false
            try context.save()
            expect(!id.latest.isTemporaryID)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a policy that throws half-way leaves the context as it was`(_ kind: StoreKind) throws {
        /// Changes the objects in its conflicts, and then gives up.
        final class Meddling: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            struct GaveUp: Error {}

            override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
                for conflict in list {
                    conflict.sourceObject.setValue("meddled", forKey: "name")
                    let context = try require(conflict.sourceObject.managedObjectContext)
                    for case let city as City in context.updatedObjects { city.population = -1 }
                    for case let venue as Venue in context.insertedObjects { venue.city = nil }
                }
                try super.resolve(optimisticLockingConflicts: list)
                throw GaveUp()
            }
        }
        let stack = try Stack(kind)
        let other = try stack.storeCity("contested")
        let context = stack.context()
        try context.performAndWait {
            let (new, _) = try prepare(stack, context)
            let city = try context.get(other, City.self)
            city.population = 5
            try stack.change(other, City.self) { city, _ in city.population = 6 }
            context.processPendingChanges()
            let before = Picture(context)
            let venuesBefore = new.city?.venues
            context.mergePolicy = Meddling(merge: .mergeByPropertyStoreTrumpMergePolicyType)
            expectThrows(Meddling.GaveUp.self) { try context.save() }
            expectEqual(Picture(context), before)
            expectEqual(new.city?.name, "changed")
            expectEqual(new.city?.venues, venuesBefore)
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try context.save()
        }
        try expectEqual(stack.read(other, City.self) { $0.population }, 5)
    }

    // MARK: - Hooks

    @Test(arguments: StoreKind.allCases)
    func `willSave repeats until nothing changes, and didSave is sent once (CS-79, 80)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: HookedNote.model)
        let context = stack.context()
        try context.performAndWait {
            let note = HookedNote(context: context)
            note.text = "a"
            note.rounds = 2
            try context.save()
            expectEqual(note.calls, ["willSave", "willSave", "willSave", "didSave"])
            expectEqual(note.text, "a..")
            note.calls = []
            context.delete(note)
            try context.save()
            expectEqual(note.calls, ["willSave", "didSave"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a willSave that always changes something is an error, and the context is as before (CS-80)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind, model: HookedNote.model)
        let context = stack.context()
        try context.performAndWait {
            let note = HookedNote(context: context)
            note.rounds = .max
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expect(note.isInserted)
            note.rounds = 0
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `deletes made in willSave are propagated and saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            let photo = Photo(context: context)
            venue.photos = [photo]
            try context.save()
            let token = whenPosted(.NSManagedObjectContextWillSave, by: context) {
                if !venue.isDeleted { context.delete(venue) }
            }
            City(context: context).name = "Porto"
            try context.save()
            token.remove()
            try context.save()
        }
        try expectEqual(stack.count("Venue"), 0)
        try expectEqual(stack.count("Photo"), 0)
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a did-save handler may save again`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let token = whenPosted(.NSManagedObjectContextDidSave, by: context) {
                guard city.population == 0 else { return }
                city.population = 9
                #expect(throws: Never.self) { try context.save() }
            }
            try context.save()
            token.remove()
            expect(!context.hasChanges)
        }
        try expectEqual(stack.read(try require(try ids(stack).first), City.self) { $0.population }, 9)
    }

    @Test(arguments: StoreKind.allCases)
    func `an objects-did-change handler may delete and save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            let photo = Photo(context: context)
            venue.photos = [photo]
            try context.save()
            let token = whenPosted(.NSManagedObjectContextObjectsDidChange, by: context) {
                guard !venue.isDeleted, venue.managedObjectContext != nil else { return }
                context.delete(venue)
                #expect(throws: Never.self) { try context.save() }
            }
            venue.name = "doomed"
            context.processPendingChanges()
            token.remove()
        }
        try expectEqual(stack.count("Venue"), 0)
        try expectEqual(stack.count("Photo"), 0)
    }

    private func ids(_ stack: Stack) throws -> [NSManagedObjectID] {
        let context = stack.context()
        return try context.performAndWait {
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            request.resultType = .managedObjectIDResultType
            return try context.fetch(request)
        }
    }

    // MARK: - Delete rules

    @Test(arguments: StoreKind.allCases)
    func `cascade, nullify and deny (CS-90, 91)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = [Photo(context: context), Photo(context: context)]
            venue.licence = Licence(context: context)
            venue.tags = [Tag(context: context)]
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
            let boss = User(context: context)
            boss.email = "boss"
            let report = User(context: context)
            report.email = "report"
            report.boss = boss
        }
        try stack.delete(id)
        try expectEqual(stack.count("Photo"), 0)
        try expectEqual(stack.count("Licence"), 0)
        try expectEqual(stack.count("Tag"), 1)
        let context = stack.context()
        try context.performAndWait {
            try expectEqual(context.all(City.self).first?.venues.isEmpty, true)
            try expectEqual(context.all(Tag.self).first?.venues.isEmpty, true)
            let users = try context.all(User.self)
            let boss = try require(users.first { $0.email == "boss" })
            context.delete(boss)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .validationRelationshipDeniedDelete)
            for user in users { context.delete(user) }
            try context.save()
        }
        try expectEqual(stack.count("User"), 0)
    }

    @Test(arguments: [true, false])
    func `delete rules are applied at the end of the event, or at the save (CS-92)`(_ atEnd: Bool) throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            context.propagatesDeletesAtEndOfEvent = atEnd
            let venue = Venue(context: context)
            let photo = Photo(context: context)
            venue.photos = [photo]
            try context.save()
            context.delete(venue)
            expect(!photo.isDeleted)
            context.processPendingChanges()
            expectEqual(photo.isDeleted, atEnd)
            try context.save()
        }
        try expectEqual(stack.count("Photo"), 0)
    }

    // MARK: - Relationships that were not loaded

    @Test(arguments: StoreKind.allCases)
    func `adding to a relationship of a fault is saved, and leaves a clean object`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity()
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(cityID, City.self)
            try context.get(venueID, Venue.self).city = city
            try context.save()
            expect(!city.isUpdated && !city.hasChanges)
            expect(!context.hasChanges)
            expectEqual(city.venues.map(\.name), ["bar"])
        }
        try expectEqual(stack.read(cityID, City.self) { $0.venues.count }, 1)
    }
}

/// A note that counts its hooks.
final class HookedNote: NSManagedObject {
    @Managed var text: String?
    var rounds = 0
    var calls: [String] = []

    override func willSave() {
        super.willSave()
        calls.append("willSave")
        guard rounds > 0, !isDeleted else { return }
        rounds -= 1
        text = (text ?? "") + "."
    }

    override func didSave() {
        super.didSave()
        calls.append("didSave")
    }

    static var model: NSManagedObjectModel {
        let note = GuideModel.entity("Note", HookedNote.self)
        note.properties = [GuideModel.attribute("text", .string)]
        let model = NSManagedObjectModel()
        model.entities = [note]
        return model
    }
}
