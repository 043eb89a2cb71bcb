import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Hooks of objects")
struct HookTests {
    private func storeHooked(_ name: String, _ stack: Stack) throws -> NSManagedObjectID {
        try stack.inContext { context in
            let object = Hooked(context: context)
            object.name = name
            try context.save()
            return object.objectID
        }
    }

    // CS-85
    @Test(arguments: StoreKind.allCases)
    func `defaults are in place before awakeFromInsert, which runs once and belongs to the insertion (CS-85)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let object = Hooked(context: context)
            expectEqual(object.log, ["insert 7"])
            expectEqual(object.stamp, "born")
            context.insert(object)
            context.processPendingChanges()
            try context.save()
            expectEqual(object.count(of: "insert 7"), 1)
            expect(object.changedValues().isEmpty)
        }
        try stack.inContext { context throws in try expectEqual(context.all(Hooked.self).first?.stamp, "born") }
    }

    @Test
    func `an object made outside of a context awakes when it is inserted`() throws {
        let stack = try Stack.objects(.memory)
        try stack.inContext { context in
            let entity = try require(NSEntityDescription.entity(forEntityName: "Hooked", in: context))
            let object = Hooked(entity: entity, insertInto: nil)
            object.name = "early"
            expectEqual(object.count, 7)
            expect(object.log.isEmpty)
            expectEqual(object.managedObjectContext, nil)
            let id = object.objectID
            expect(id.isTemporaryID)
            context.insert(object)
            expectEqual(object.log, ["insert 7"])
            expect(object.objectID === id)
            expectEqual(object.name, "early")
            try context.save()
            expect(id.isTemporaryID && object.objectID != id && !object.objectID.isTemporaryID)
        }
        try stack.inContext { context throws in try expectEqual(context.all(Hooked.self).first?.name, "early") }
    }

    // CS-79, CS-29
    @Test(arguments: StoreKind.allCases)
    func `each changed object is notified once before and once after a save, with its permanent ID`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        let ids = [
            try storeHooked("updated", stack), try storeHooked("deleted", stack), try storeHooked("untouched", stack),
        ]
        try stack.inContext { context in
            let inserted = Hooked(context: context)
            let objects = try ids.map { try context.object(Hooked.self, $0) }
            objects[0].count = 1
            context.delete(objects[1])
            _ = objects[2].name
            try context.save()
            for object in [inserted, objects[0], objects[1]] {
                expectEqual(object.count(of: "willSave"), 1)
                expectEqual(object.log.last, "didSave false")
                expectEqual(object.count(of: "didSave false"), 1)
            }
            expectEqual(objects[2].log, ["fetch"])
        }
    }

    // CS-80
    @Test(arguments: StoreKind.allCases)
    func `changes made in willSave are saved, and bring another round for those that they change`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        let otherID = try storeHooked("other", stack)
        let id = try stack.inContext { context in
            let object = Hooked(context: context)
            let other = try context.object(Hooked.self, otherID)
            object.onWillSave = { object in
                if object.stamp != "saved" { object.stamp = "saved" }
                if other.count != 42 { other.count = 42 }
            }
            try context.save()
            expectEqual(object.count(of: "willSave"), 2)
            expectEqual(other.count(of: "willSave"), 1)
            expectEqual(object.count(of: "didSave false"), 1)
            expect(!context.hasChanges)
            return object.objectID
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Hooked.self, id).stamp, "saved")
            try expectEqual(context.object(Hooked.self, otherID).count, 42)
        }
    }

    // CS-80
    @Test(arguments: StoreKind.allCases)
    func `willSave that always changes something is an error, not an endless loop`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let object = Hooked(context: context)
            object.onWillSave = { $0.count += 1 }
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expect(object.isInserted)
            object.onWillSave = { $0.setPrimitiveValue($0.count + 1, forKey: "count") }
            object.count = 1
            try context.save()
            expectEqual(object.count, 2)
        }
        try stack.inContext { context throws in try expectEqual(context.all(Hooked.self).map(\.count), [2]) }
    }

    /// The deletion is made by `willSave()`, or by an observer of the changes that `willSave()` has made.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `what delete rules change during a save gets willSave, and is saved`(
        _ kind: StoreKind,
        _ isInHook: Bool
    ) throws {
        for isAtEndOfEvent in [true, false] {
            let stack = try Stack.objects(kind)
            let ownerID = try storeHooked("owner", stack)
            try stack.inContext { context in
                let owner = try context.object(Hooked.self, ownerID)
                for name in ["leaves", "stays"] {
                    let thing = Hooked(context: context)
                    thing.name = name
                    thing.owner = owner
                }
                owner.count = 2
                try context.save()
            }
            try stack.inContext { context in
                context.propagatesDeletesAtEndOfEvent = isAtEndOfEvent
                let owner = try context.object(Hooked.self, ownerID)
                let thing = try require(try context.all(Hooked.self).first { $0.name == "leaves" })
                owner.onWillSave = { owner in
                    let count = Int32(owner.things.count)
                    if owner.count != count { owner.count = count }
                }
                let trigger = Hooked(context: context)
                trigger.onWillSave = { trigger in
                    guard trigger.stamp != "saved" else { return }
                    trigger.stamp = "saved"
                    if isInHook { context.delete(thing) }
                }
                let observation = whenPosted(.NSManagedObjectContextObjectsDidChange, by: context) {
                    if !isInHook, trigger.stamp == "saved", !thing.isDeleted { context.delete(thing) }
                }
                defer { observation.remove() }
                context.processPendingChanges()
                expect(!owner.hasChanges)
                try context.save()
                expectEqual(owner.count, 1)
                expect(owner.count(of: "willSave") > 0 && !context.hasChanges)
            }
            try stack.inContext { context throws in
                let owner = try context.object(Hooked.self, ownerID)
                expect(owner.count == 1 && owner.things.map(\.name) == ["stays"])
            }
            try expectEqual(stack.problems(), [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `willSave may insert and delete`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let doomedID = try storeHooked("doomed", stack)
        try stack.inContext { context in
            let object = Hooked(context: context)
            object.name = "first"
            let doomed = try context.object(Hooked.self, doomedID)
            object.onWillSave = { object in
                guard object.things.isEmpty else { return }
                let thing = Hooked(context: context)
                thing.name = "second"
                thing.owner = object
                context.delete(doomed)
            }
            try context.save()
            expectEqual(object.things.first?.log, ["insert 7", "willSave", "didSave false"])
            expectEqual(doomed.count(of: "willSave"), 1)
        }
        try stack.inContext { context throws in
            try expectEqual(context.all(Hooked.self, sortedBy: "name").map(\.name), ["first", "second"])
        }
    }

    // CS-93
    @Test(arguments: StoreKind.allCases)
    func `prepareForDeletion runs while relationships are still set, and again when deleted again (CS-93)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let owner = Hooked(context: context)
            let object = Hooked(context: context)
            let thing = Hooked(context: context)
            object.owner = owner
            thing.owner = object
            try context.save()
            var seen: [String] = []
            object.onPrepare = { object in
                seen.append("\(object.owner === owner) \(object.things.count) \(object.isDeleted)")
            }
            context.delete(object)
            context.delete(object)
            expectEqual(seen, ["true 1 false", "true 1 true"])
            context.processPendingChanges()
            expect(thing.isDeleted)
            expectEqual(thing.count(of: "prepare"), 1)
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `rollback and undo tell objects that their values were replaced`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try storeHooked("a", stack)
        try stack.inContext { context in
            let object = try context.object(Hooked.self, id)
            object.name = "b"
            context.rollback()
            expectEqual(object.log.last, "snapshot \(NSSnapshotEventType.rollback.rawValue)")
            expectEqual(object.name, "a")
            context.undoManager = UndoManager()
            object.name = "c"
            context.undo()
            expectEqual(object.log.last, "snapshot \(NSSnapshotEventType.undoUpdate.rawValue)")
            expectEqual(object.name, "a")
        }
    }

    @Test func `each event that replaces values has a bit of its own, that of Apple's framework`() {
        let events: [NSSnapshotEventType] = [
            .undoInsertion, .undoDeletion, .undoUpdate, .rollback, .refresh, .mergePolicy,
        ]
        expectEqual(events.map(\.rawValue), [2, 4, 8, 16, 32, 64])
        for event in events { expectEqual(events.filter(event.contains), [event]) }
    }

    @Test(arguments: StoreKind.allCases)
    func `undo tells an object whether its insertion, its deletion or a change was undone`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            context.undoManager = UndoManager()
            let object = Hooked(context: context)
            object.name = "a"
            context.processPendingChanges()
            try context.save()
            func event(_ step: () -> Void) -> [String] {
                let before = object.log.count
                step()
                return object.log.dropFirst(before).filter { $0.hasPrefix("snapshot") }
            }
            let undoneInsertion = "snapshot \(NSSnapshotEventType.undoInsertion.rawValue)"
            let undoneDeletion = "snapshot \(NSSnapshotEventType.undoDeletion.rawValue)"
            let undoneUpdate = "snapshot \(NSSnapshotEventType.undoUpdate.rawValue)"
            // To undo a saved insertion is to delete the object.
            expectEqual(event { context.undo() }, [undoneInsertion])
            expect(object.isDeleted)
            expectEqual(event { context.redo() }, [undoneDeletion])
            expect(!object.isDeleted)
            object.name = "b"
            context.processPendingChanges()
            expectEqual(event { context.undo() }, [undoneUpdate])
            expectEqual(event { context.redo() }, [undoneUpdate])
            context.delete(object)
            context.processPendingChanges()
            expectEqual(event { context.undo() }, [undoneDeletion])
            expect(!object.isDeleted && object.name == "b")
            expectEqual(event { context.redo() }, [undoneInsertion])
            expect(object.isDeleted)
            try context.save()
            // The row is gone, so the object comes back as a new insertion.
            expectEqual(event { context.undo() }, [undoneDeletion])
            expect(object.isInserted && object.name == "b")
        }
    }
}

@Suite("Deleting, and what becomes of the related objects")
struct DeletionTests {
    // CS-91
    @Test(arguments: StoreKind.allCases)
    func `nullify clears the inverse when the event ends`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context in
            let city = City(context: context)
            city.name = "Lisbon"
            let tag = TestSupport.Tag(context: context)
            let user = User(context: context)
            user.email = "a"
            let venues = (0..<3).map { _ in Venue(context: context) }
            for venue in venues {
                venue.city = city
                venue.tags = [tag]
            }
            user.favourites = venues
            try context.save()
            context.delete(venues[0])
            expectEqual(city.venues.count, 3)
            context.processPendingChanges()
            expectEqual(city.venues, Set(venues[1...]))
            expectEqual(tag.venues, Set(venues[1...]))
            expectEqual(user.favourites, Array(venues[1...]))
            context.delete(city)
            try context.save()
            expectEqual(venues[1].city, nil)
            expectEqual(user.favourites, Array(venues[1...]))
        }
        try stack.inContext { context in
            let venues = try context.all(Venue.self)
            expectEqual(venues.count, 2)
            expect(venues.allSatisfy { $0.city == nil && $0.tags.count == 1 && $0.fans.count == 1 })
            try expectEqual(context.all(User.self).first?.favourites.count, 2)
            try expect(context.all(City.self).isEmpty)
        }
    }

    // CS-91
    @Test(arguments: StoreKind.allCases)
    func `cascade deletes the related objects and theirs, loaded or not`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context in
            let root = Hooked(context: context)
            root.name = "root"
            for _ in 0..<3 {
                let child = Hooked(context: context)
                child.owner = root
                for _ in 0..<3 { Hooked(context: context).owner = child }
            }
            let other = Hooked(context: context)
            other.name = "other"
            try context.save()
            return root.objectID
        }
        try stack.inContext { context in
            context.delete(context.object(with: id))
            context.processPendingChanges()
            expectEqual(context.deletedObjects.count, 13)
            try context.save()
            expect(!context.hasChanges)
            try expectEqual(context.all(Hooked.self).map(\.name), ["other"])
        }
        try stack.inContext { context throws in try expectEqual(context.all(Hooked.self).count, 1) }
    }

    // CS-91
    @Test(arguments: StoreKind.allCases)
    func `a circle of cascades ends`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let (one, two) = (Hooked(context: context), Hooked(context: context))
            one.owner = two
            two.owner = one
            try context.save()
            context.delete(one)
            try context.save()
            try expect(context.all(Hooked.self).isEmpty)
        }
    }

    // CS-90
    @Test(arguments: StoreKind.allCases)
    func `deny refuses the save as long as a member is left`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let guardian = Hooked(context: context)
            let guarded = Hooked(context: context)
            guarded.guard = guardian
            try context.save()
            context.delete(guardian)
            expectThrows(CocoaError.self) { try guardian.validateForDelete() }
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .validationRelationshipDeniedDelete)
            expectEqual(error?.userInfo[NSValidationKeyErrorKey] as? String, "guarded")
            expect(error?.userInfo[NSValidationObjectErrorKey] as? Hooked === guardian)
            expect(guardian.isDeleted)
            expect(guarded.guard === guardian)
            context.delete(guarded)
            try context.save()
            try expect(context.all(Hooked.self).isEmpty)
        }
    }

    // CS-91
    @Test(arguments: StoreKind.allCases)
    func `no action leaves the related objects alone`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let (one, two) = (Hooked(context: context), Hooked(context: context))
            (one.name, two.name) = ("one", "two")
            one.loose = two
            try context.save()
            context.delete(two)
            try context.save()
            expect(!one.hasChanges)
            expect(one.changedValues().isEmpty)
            let three = Hooked(context: context)
            three.loose = one
            expectEqual(one.looseOnes, [three])
            try context.save()
            context.delete(three)
            try context.save()
            expect(one.looseOnes.isEmpty)
        }
    }

    // CS-92
    @Test(arguments: StoreKind.allCases)
    func `delete rules wait for the save where the context says so`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            context.propagatesDeletesAtEndOfEvent = false
            let owner = Hooked(context: context)
            let thing = Hooked(context: context)
            thing.owner = owner
            try context.save()
            context.delete(owner)
            context.processPendingChanges()
            expect(!thing.isDeleted)
            try context.save()
            try expect(context.all(Hooked.self).isEmpty)
            expectEqual(thing.managedObjectContext, nil)
        }
    }

    // CS-94
    @Test(arguments: StoreKind.allCases)
    func `what is inserted and deleted before a save leaves nothing behind (CS-94)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context in
            let city = City(context: context)
            city.name = "Lisbon"
            try context.save()
            // The city lacks its name, but it is deleted before a save asks for it.
            let brief = City(context: context)
            let venue = Venue(context: context)
            venue.city = brief
            context.delete(brief)
            // Notifications arrive on the thread that saves, inside of `save()`.
            nonisolated(unsafe) var saved: [AnyHashable: Any] = [:]
            let token = NotificationCenter.default.addObserver(
                forName: .NSManagedObjectContextDidSave,
                object: context,
                queue: nil
            ) { saved = $0.userInfo ?? [:] }
            try context.save()
            NotificationCenter.default.removeObserver(token)
            expectEqual(saved[NSInsertedObjectsKey] as? Set<NSManagedObject>, [venue])
            expect((saved[NSDeletedObjectsKey] as? Set<NSManagedObject>)?.isEmpty ?? true)
            expectEqual(venue.city, nil)
            try expectEqual(context.all(City.self).count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an inserted object takes its deletion back`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context in
            let tag = TestSupport.Tag(context: context)
            tag.title = "a"
            try context.save()
            context.delete(tag)
            context.insert(tag)
            expect(!tag.isDeleted)
            tag.title = "b"
            try context.save()
            try expectEqual(context.all(TestSupport.Tag.self).map(\.title), ["b"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object deleted without having been loaded is deleted`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.inContext { context in
            let venues = (0..<3).map { _ in Venue(context: context) }
            for venue in venues { venue.licence = Licence(context: context) }
            try context.save()
            return venues.map(\.objectID)
        }
        try stack.inContext { context in
            for id in ids { context.delete(context.object(with: id)) }
            try context.save()
        }
        try stack.inContext { context throws in
            try expect(context.all(Venue.self).isEmpty)
            try expect(context.all(Licence.self).isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that a hook brings in during a fetch is the one that the fetch answers`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context in
            let (first, second) = (Hooked(context: context), Hooked(context: context))
            (first.name, second.name) = ("relates", "zed")
            first.guard = second
            try context.save()
        }
        try stack.inContext { context in
            let request = NSFetchRequest<Hooked>(entityName: "Hooked")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.returnsObjectsAsFaults = false
            let found = try context.fetch(request)
            expectEqual(found.map(\.name), ["relates", "zed"])
            // The `awakeFromFetch` of the first object has asked for the second.
            expect(found[0].owner === found[1])
            expect(context.registeredObject(for: found[1].objectID) === found[1])
        }
    }
}
