import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: parentConflictPolicy")
struct TreeConflictTests {
    let stack: Stack
    let id: NSManagedObjectID
    let parent: NSManagedObjectContext
    let first: NSManagedObjectContext
    let second: NSManagedObjectContext

    init() throws {
        stack = try Stack(.memory)
        id = try stack.storeCity("start", population: 1)
        parent = stack.context("parent")
        first = parent.child("first")
        second = parent.child("second")
    }

    /// The first child changes name and population, and the second one only the name.
    ///
    /// Then the first one saves.
    private func collide(_ policy: NSMergePolicy) throws {
        second.parentConflictPolicy = policy
        for child in [first, second] { try child.look(id, City.self) { _ = $0.name } }
        try first.edit(id, City.self) {
            $0.name = "first"
            $0.population = 10
        }
        try second.edit(id, City.self) { $0.name = "second" }
        try first.saveAndWait()
    }

    private func expectCity(_ name: String, _ population: Int64) throws {
        for context in [second, parent] {
            try context.look(id, City.self) { expect($0.name == name && $0.population == population, "\(context)") }
        }
        second.performAndWait { expect(!second.hasChanges) }
    }

    @Test func `without a policy there is no conflict`() throws {
        expectEqual(first.parentConflictPolicy, nil)
        try collide(.error)
        second.parentConflictPolicy = nil
        try second.saveAndWait()
        try expectCity("second", 10)
    }

    @Test func `the error policy throws 133020 with the conflicts, and both contexts are as before`() throws {
        try collide(.error)
        let fresh = second.insertCity("new")
        let error = expectThrows(CocoaError.self) { try second.saveAndWait() }
        expectEqual(error?.code, .managedObjectMerge)
        let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
        try second.performAndWait {
            let conflict = try require(conflicts?.first)
            expectEqual(conflicts?.count, 1)
            expectEqual(conflict.sourceObject.objectID, id)
            expect(conflict.oldCount == 1 && conflict.newCount == 2)
            expectEqual(conflict.objectSnapshot?["name"] as? String, "start")
            expectEqual(conflict.cachedSnapshot?["name"] as? String, "first")
            expectEqual((conflict.cachedSnapshot?["population"] as? NSNumber)?.int64Value, 10)
            expect(conflict.persistedSnapshot == nil)
            expectEqual(second.insertedObjects.map(\.objectID), [fresh])
            expectEqual(second.updatedObjects.map(\.objectID), [id])
            try expectEqual(second.get(id, City.self).name, "second")
            try expectEqual(second.get(id, City.self).changedValues().keys.sorted(), ["name"])
        }
        parent.performAndWait { expect(parent.insertedObjects.isEmpty) }
        try parent.look(id, City.self) { expectEqual($0.name, "first") }
        // The same save succeeds once the cause is gone.
        try second.performAndWait {
            second.refresh(try second.get(id, City.self), mergeChanges: true)
            try second.save()
        }
        try expectCity("second", 10)
    }

    @Test func `object trump keeps the child's changes and the parent's others`() throws {
        try collide(.mergeByPropertyObjectTrump)
        try second.saveAndWait()
        try expectCity("second", 10)
    }

    @Test func `store trump keeps the parent's changes`() throws {
        try collide(.mergeByPropertyStoreTrump)
        try second.edit(id, City.self) { _ in }
        try second.saveAndWait()
        try expectCity("first", 10)
    }

    @Test func `overwrite keeps the child's object as a whole`() throws {
        try collide(.overwrite)
        try second.saveAndWait()
        try expectCity("second", 1)
    }

    @Test func `rollback drops the child's changes`() throws {
        try collide(.rollback)
        try second.saveAndWait()
        try expectCity("first", 10)
    }

    @Test func `a custom policy decides`() throws {
        final class Adding: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
                for conflict in list {
                    let theirs = (conflict.cachedSnapshot?["population"] as? NSNumber)?.int64Value ?? 0
                    let city = conflict.sourceObject as? City
                    city?.population += theirs
                }
            }
        }
        second.parentConflictPolicy = Adding(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        try second.edit(id, City.self) { $0.population = 5 }
        try first.edit(id, City.self) { $0.population = 7 }
        try first.saveAndWait()
        try second.saveAndWait()
        try expectCity("start", 12)
    }

    @Test func `a change against a deletion, and a deletion against a change, are conflicts`() throws {
        let other = try stack.storeCity("other", population: 1)
        second.parentConflictPolicy = .error
        // Without this, the context would read again the objects that are not held.
        second.performAndWait { second.retainsRegisteredObjects = true }
        for child in [first, second] {
            try child.look(id, City.self) { _ = $0.name }
            try child.look(other, City.self) { _ = $0.name }
        }
        try first.performAndWait {
            first.delete(try first.get(id, City.self))
            try first.get(other, City.self).population = 2
            try first.save()
        }
        try second.performAndWait {
            try second.get(id, City.self).population = 3
            second.delete(try second.get(other, City.self))
            let error = expectThrows(CocoaError.self) { try second.save() }
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
            expectEqual(conflicts.count, 2)
            expectEqual(conflicts.first { $0.sourceObject.objectID == id }?.newVersionNumber, 0)
            // Memory wins: one object comes back, and the other is deleted.
            second.parentConflictPolicy = .mergeByPropertyObjectTrump
            try second.save()
        }
        try parent.performAndWait {
            try expectEqual(parent.all(City.self).map(\.objectID), [id])
            try expectEqual(parent.get(id, City.self).population, 3)
            try parent.save()
        }
        try expectEqual(stack.count("City"), 1)
        try expectEqual(stack.read(id, City.self) { $0.population }, 3)
    }

    @Test func `under store trump deletions of the parent stand`() throws {
        second.parentConflictPolicy = .mergeByPropertyStoreTrump
        try second.edit(id, City.self) { $0.population = 3 }
        try first.performAndWait {
            first.delete(try first.existingObject(with: id))
            try first.save()
        }
        try second.saveAndWait()
        parent.performAndWait { expectEqual(parent.deletedObjects.count, 1) }
        try expectEqual(second.cityNames(), [])
    }

    @Test func `what the child saved itself, and what the parent saved since, is no conflict`() throws {
        second.parentConflictPolicy = .error
        for number in 1...3 {
            try second.edit(id, City.self) { $0.population = Int64(number) }
            try second.saveAndWait()
            try parent.saveAndWait()
        }
        let fresh = second.insertCity("new")
        try second.saveAndWait()
        try second.performAndWait {
            let venue = Venue(context: second)
            venue.city = try second.get(fresh, City.self)
            try second.save()
        }
        try parent.saveAndWait()
        try second.edit(fresh, City.self) { $0.population = 4 }
        try second.performAndWait { try require(try second.all(Venue.self).first).price = 4 }
        try second.saveAndWait()
        try parent.saveAndWait()
        try expectEqual(stack.read(fresh, City.self) { $0.population }, 4)
    }

    @Test func `changes of different objects, and additions to one relationship, do not conflict`() throws {
        let other = try stack.storeCity("other")
        for child in [first, second] {
            child.parentConflictPolicy = .error
            try child.look(id, City.self) { _ = $0.venues }
        }
        try first.edit(id, City.self) { $0.venues.insert(Venue(context: first)) }
        try second.edit(id, City.self) { $0.venues.insert(Venue(context: second)) }
        try second.edit(other, City.self) { $0.population = 2 }
        try first.saveAndWait()
        try second.saveAndWait()
        try parent.look(id, City.self) { expectEqual($0.venues.count, 2) }
    }

    @Test func `detectConflicts(for:) in a child checks an object that it does not change (CS-111)`() throws {
        second.parentConflictPolicy = .error
        try second.performAndWait {
            second.detectConflicts(for: try second.existingObject(with: id))
        }
        second.insertCity("depends on it")
        try first.edit(id, City.self) { $0.population = 2 }
        try first.saveAndWait()
        #expect { try second.saveAndWait() } throws: { $0.cocoaCode == .managedObjectMerge }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a child brings back is not deleted by its parent's save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let (parent, child) = stack.pair()
        child.performAndWait {
            child.retainsRegisteredObjects = true
            child.parentConflictPolicy = .mergeByPropertyObjectTrump
        }
        try child.look(id, City.self) { expectEqual($0.name, "old") }
        try parent.performAndWait { parent.delete(try parent.get(id, City.self)) }
        try child.edit(id, City.self) { $0.name = "back" }
        try child.saveAndWait()
        try expectEqual(parent.look(id, City.self) { $0.isDeleted ? "deleted" : $0.name }, "back")
        try parent.saveAndWait()
        try expectEqual(stack.read(id, City.self) { $0.name }, "back")
    }
}
