import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Faults")
struct FaultTests {
    /// Saves hooked objects with these names and returns their IDs.
    private func store(_ names: [String], _ stack: Stack) throws -> [NSManagedObjectID] {
        try stack.inContext { context throws in
            let objects = names.map { name in
                let object = Hooked(context: context)
                object.name = name
                return object
            }
            try context.save()
            return objects.map(\.objectID)
        }
    }

    // CS-61
    @Test(arguments: StoreKind.allCases)
    func `a fetch returns faults, and reading a property realises the object (CS-61)`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        _ = try store(["a"], stack)
        try stack.inContext { context throws in
            let object = try require(try context.all(Hooked.self).first)
            expect(object.isFault)
            expectEqual(object.faultingState, 1)
            expectEqual(object.entity.name, "Hooked")
            expect(object.isFault)
            expectEqual(object.name, "a")
            expect(!object.isFault)
            expectEqual(object.faultingState, 0)
            object.willAccessValue(forKey: nil)
            expectEqual(object.primitiveValue(forKey: "name") as? String, "a")
            object.didAccessValue(forKey: "name")
        }
    }

    // CS-61
    @Test(arguments: StoreKind.allCases)
    func `a request may ask for realised objects`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        _ = try store(["a"], stack)
        try stack.inContext { context throws in
            let request = NSFetchRequest<Hooked>(entityName: "Hooked")
            request.returnsObjectsAsFaults = false
            let object = try require(try context.fetch(request).first)
            expect(!object.isFault)
            expectEqual(object.log, ["fetch"])
        }
    }

    // CS-62
    @Test(arguments: StoreKind.allCases)
    func `awakeFromFetch runs once each time a fault is realised, and what it sets is no change (CS-62)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack.objects(kind)
        let id = try store(["a"], stack)[0]
        try stack.inContext { context throws in
            let object = try context.object(Hooked.self, id)
            expectEqual(object.name, "a")
            expectEqual(object.count, 7)
            expectEqual(object.count(of: "fetch"), 1)
            expectEqual(object.greeting, "hello a")
            expectEqual(object.shout, "A")
            expect(!object.hasChanges)
            expect(!object.hasPersistentChangedValues)
            expect(object.changedValues().isEmpty)
            expect(!context.hasChanges)
            context.refresh(object, mergeChanges: false)
            expectEqual(object.name, "a")
            expectEqual(object.count(of: "fetch"), 2)
            object.count = 8
            expectEqual(Set(object.changedValues().keys), ["count"])
            try context.save()
        }
        try stack.inContext { context throws in
            let object = try context.object(Hooked.self, id)
            expectEqual(object.count, 8)
            expectEqual(object.committedValues(forKeys: ["count"])["count"] as? Int32, 8)
        }
    }

    // CS-62
    @Test(arguments: StoreKind.allCases)
    func `a relationship set in awakeFromFetch makes neither side dirty`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let guardian = Hooked(context: context)
            guardian.name = "guardian"
            let object = Hooked(context: context)
            object.name = "relates"
            object.guard = guardian
            try context.save()
            return object.objectID
        }
        try stack.inContext { context throws in
            let object = try context.object(Hooked.self, id)
            expectEqual(object.owner?.name, "guardian")
            expectEqual(object.owner?.things.isEmpty, true)
            expect(!context.hasChanges)
        }
    }

    // CS-64
    @Test(arguments: StoreKind.allCases)
    func `a refresh without merging drops the changes and reports the object once`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try store(["a"], stack)[0]
        try stack.inContext { context throws in
            let object = try context.object(Hooked.self, id)
            object.name = "changed"
            object.shout = "loud"
            object.log = []
            context.refresh(object, mergeChanges: false)
            expect(object.isFault)
            expect(!object.hasChanges)
            expect(!context.hasChanges)
            expectEqual(object.log, ["willTurnIntoFault", "didTurnIntoFault"])
            expectEqual(object.name, "a")
            expectEqual(object.shout, "A")
        }
    }

    // CS-65, CS-66
    @Test(arguments: StoreKind.allCases)
    func `a merging refresh shows new values under the object's own changes, which can be saved`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        let id = try store(["a"], stack)[0]
        let mine = stack.context()
        try mine.performAndWait {
            let object = try mine.object(Hooked.self, id)
            object.name = "mine"
        }
        try stack.inContext { context throws in
            let object = try context.object(Hooked.self, id)
            object.name = "theirs"
            object.count = 99
            try context.save()
        }
        try mine.performAndWait {
            let object = try mine.object(Hooked.self, id)
            expectEqual(object.count, 7)
            mine.refresh(object, mergeChanges: true)
            expectEqual(object.name, "mine")
            expectEqual(object.count, 99)
            expectEqual(object.log.last, "snapshot \(NSSnapshotEventType.refresh.rawValue)")
            expectEqual(object.committedValues(forKeys: ["name"])["name"] as? String, "theirs")
            try mine.save()
        }
        try stack.inContext { context throws in try expectEqual(context.object(Hooked.self, id).name, "mine") }
    }

    // CS-65
    @Test(arguments: StoreKind.allCases)
    func `a merging refresh keeps relationships that were changed on a fault`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try store(["owner", "thing"], stack)
        try stack.inContext { context throws in
            let owner = try context.object(Hooked.self, ids[0])
            let thing = try context.object(Hooked.self, ids[1])
            thing.owner = owner
            expect(owner.isFault)
            context.refreshAllObjects()
            expectEqual(owner.things, [thing])
            expect(thing.owner === owner)
            try context.save()
        }
        try stack.inContext { context throws in try expectEqual(context.object(Hooked.self, ids[0]).things.count, 1) }
    }

    // CS-65
    @Test(arguments: StoreKind.allCases)
    func `a merging refresh keeps the order that was made here`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let mother = Person("m", context)
            mother.children = ["a", "b", "c"].map { Person($0, context) }
            try context.save()
            return mother.objectID
        }
        try stack.inContext { context throws in
            let mother = try context.object(Person.self, id)
            mother.children = mother.children.reversed()
            mother.children.insert(Person("d", context), at: 1)
            context.refresh(mother, mergeChanges: true)
            expectEqual(mother.children.map(\.name), ["c", "d", "b", "a"])
            try context.save()
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Person.self, id).children.map(\.name), ["c", "d", "b", "a"])
        }
    }

    // CS-63
    @Test(arguments: StoreKind.allCases)
    func `a to-many relationship is a fault of its own (CS-63)`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let owner = Hooked(context: context)
            for _ in 0..<3 { Hooked(context: context).owner = owner }
            expect(!owner.hasFault(forRelationshipNamed: "things"))
            try context.save()
            return owner.objectID
        }
        try stack.inContext { context throws in
            let owner = try context.object(Hooked.self, id)
            _ = owner.name
            expect(owner.hasFault(forRelationshipNamed: "things"))
            let ids = owner.objectIDs(forRelationshipNamed: "things")
            expectEqual(ids.count, 3)
            expectEqual(context.registeredObjects, [owner])
            expect(!owner.hasFault(forRelationshipNamed: "things"))
            let things = owner.things
            expectEqual(Set(things.map(\.objectID)), Set(ids))
            let thing = try require(things.first)
            expect(thing.isFault)
            expectEqual(!thing.hasFault(forRelationshipNamed: "owner"), !thing.isFault)
            _ = thing.name
            expect(!thing.hasFault(forRelationshipNamed: "owner"))
            expect(!owner.hasFault(forRelationshipNamed: "name"))
            expect(owner.objectIDs(forRelationshipNamed: "nonsense").isEmpty)
        }
    }

    // CS-73
    @Test(arguments: StoreKind.allCases)
    func `a fault whose row has gone counts as deleted and reads empty`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try store(["gone", "other"], stack)
        try stack.inContext { reader in
            let object = try reader.object(Hooked.self, ids[0])
            try delete(ids[0], stack)
            expectEqual(object.name, nil)
            expectEqual(object.count, 0)
            expectEqual(object.owner, nil)
            expect(object.things.isEmpty)
            expect(object.isDeleted)
            expect(!object.isFault)
            // Writing to it stops neither the program nor the next save.
            object.name = "ghost"
            let other = try reader.object(Hooked.self, ids[1])
            other.name = "saved"
            try reader.save()
        }
        try stack.inContext { context throws in try expectEqual(context.all(Hooked.self).map(\.name), ["saved"]) }
    }

    // CS-74
    @Test(arguments: StoreKind.allCases)
    func `without shouldDeleteInaccessibleFaults a handler hears of the fault, and nothing is deleted`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack.objects(kind)
        let id = try store(["gone"], stack)[0]
        try stack.inContext { reader in
            reader.shouldDeleteInaccessibleFaults = false
            var heard: [NSManagedObject] = []
            reader.inaccessibleFaultHandler = { heard.append($0) }
            let object = try reader.object(Hooked.self, id)
            try delete(id, stack)
            expectEqual(object.name, nil)
            expectEqual(object.count, 0)
            expectEqual(heard, [object])
            expect(!object.isDeleted)
            expectThrows(CocoaError.self) { _ = try reader.existingObject(with: id) }
        }
    }

    // CS-75
    @Test(arguments: StoreKind.allCases)
    func `the hook for inaccessible faults gets the object, its ID and the property`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try store(["a", "b"], stack)
        let reader = WatchfulContext(.privateQueue)
        reader.persistentStoreCoordinator = stack.coordinator
        try reader.performAndWait {
            let first = try reader.object(Hooked.self, ids[0])
            let second = try reader.object(Hooked.self, ids[1])
            for id in ids { try delete(id, stack) }
            expectThrows(CocoaError.self) { _ = try reader.existingObject(with: ids[0]) }
            expect(reader.seen.isEmpty)
            _ = first.count
            _ = second.value(forKey: "greeting")
            expectEqual(reader.seen.map(\.id), ids)
            expectEqual(reader.seen.map(\.property), ["count", "greeting"])
            expect(!first.isDeleted)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects outlive their context with what they have loaded`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try store(["loaded", "fault"], stack)
        let (loaded, fault, new) = try stack.inContext { context throws in
            let loaded = try context.object(Hooked.self, ids[0])
            _ = loaded.name
            let new = Hooked(context: context)
            new.name = "new"
            return (loaded, try context.object(Hooked.self, ids[1]), new)
        }
        expectEqual(loaded.managedObjectContext, nil)
        expectEqual(loaded.name, "loaded")
        expect(loaded.objectID === ids[0])
        expect(loaded.things.isEmpty)
        expectEqual(fault.name, nil)
        expectEqual(fault.count, 0)
        expect(fault.objectID === ids[1])
        expectEqual(new.name, "new")
        expect(new.objectID.isTemporaryID)
        expect(!new.hasChanges)
        loaded.name = "for itself"
        expectEqual(loaded.name, "for itself")
        expect(loaded.description.contains("for itself"))
    }

    // CS-68
    @Test(arguments: StoreKind.allCases)
    func `after a reset objects belong to no context`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try store(["loaded", "fault"], stack)
        try stack.inContext { context throws in
            let loaded = try context.object(Hooked.self, ids[0])
            loaded.name = "changed"
            let fault = try context.object(Hooked.self, ids[1])
            context.reset()
            expectEqual(loaded.managedObjectContext, nil)
            expect(!loaded.hasChanges)
            expectEqual(fault.name, nil)
            expect(fault.objectID === ids[1])
            expect(context.registeredObjects.isEmpty)
            try expect(context.object(Hooked.self, ids[0]) !== loaded)
            try expectEqual(context.object(Hooked.self, ids[0]).name, "loaded")
        }
    }

    private func delete(_ id: NSManagedObjectID, _ stack: Stack) throws {
        try stack.inContext { context throws in
            context.delete(context.object(with: id))
            try context.save()
        }
    }
}

/// A context that notes which faults could not be realised, and leaves them alone.
private final class WatchfulContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: as in NSManagedObjectContext, `seen` is used inside the scope only.
    var seen: [(id: NSManagedObjectID, property: String?)] = []

    override func shouldHandleInaccessibleFault(
        _ fault: NSManagedObject,
        for oid: NSManagedObjectID,
        triggeredByProperty property: NSPropertyDescription?
    ) -> Bool {
        seen.append((oid, property?.name))
        return false
    }
}
