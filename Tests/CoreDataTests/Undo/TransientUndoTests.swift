import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Undo and rollback of transient properties")
struct TransientUndoTests {
    /// A context with an undo manager and a stored venue.
    private func venue(_ stack: Stack) throws -> (NSManagedObjectContext, NSManagedObjectID) {
        let id = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        context.undoManager = UndoManager()
        return (context, id)
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a transient value is undone and done again, step by step`(_ kind: StoreKind, _ isAnnounced: Bool) throws {
        let stack = try Stack(kind)
        let (context, id) = try venue(stack)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            func set(_ note: String) {
                if isAnnounced {
                    venue.willChangeValue(forKey: "note")
                    venue.setPrimitiveValue(note, forKey: "note")
                    venue.didChangeValue(forKey: "note")
                } else {
                    venue.note = note
                }
                context.processPendingChanges()
            }
            set("a")
            set("b")
            venue.name = "renamed"
            context.undo()
            expect(venue.name == "bar" && venue.note == "b" && venue.isUpdated)
            context.undo()
            expect(venue.note == "a" && venue.isUpdated)
            context.undo()
            expect(venue.note == nil && !venue.hasChanges && !context.hasChanges)
            expectEqual(context.undoManager?.canUndo, false)
            context.redo()
            expect(venue.note == "a" && venue.isUpdated)
            context.redo()
            expect(venue.note == "b" && venue.isUpdated)
            context.redo()
            expect(venue.name == "renamed" && venue.note == "b")
            try context.save()
            expect(venue.note == "b" && !context.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a transient value from before a save comes back as a change`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (context, id) = try venue(stack)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.note = "a"
            try context.save()
            venue.note = "b"
            venue.price = 5
            try context.save()
            context.undo()
            expect(venue.note == "a" && venue.price == 0 && venue.isUpdated)
            context.rollback()
            expect(venue.note == "b" && venue.price == 5 && !venue.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a rollback restores the transient values of the last save`(_ kind: StoreKind, _ hasUndo: Bool) throws {
        let stack = try Stack(kind)
        let (context, id) = try venue(stack)
        try context.performAndWait {
            if !hasUndo { context.undoManager = nil }
            let venue = try context.get(id, Venue.self)
            venue.note = "a"
            context.processPendingChanges()
            venue.note = "b"
            context.rollback()
            expect(venue.note == nil && !venue.hasChanges)
            venue.note = "kept"
            try context.save()
            venue.note = "c"
            context.processPendingChanges()
            venue.note = nil
            venue.name = "renamed"
            context.rollback()
            expect(venue.note == "kept" && venue.name == "bar" && !context.hasChanges)
        }
    }

    /// Accessors keep what they have computed from other values, which are not those of the last save any more.
    @Test(arguments: StoreKind.allCases)
    func `what an accessor has computed is computed again`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (context, id) = try venue(stack)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            func shout() -> String? {
                if let known = venue.primitiveValue(forKey: "note") as? String { return known }
                let made = venue.name?.uppercased()
                venue.setPrimitiveValue(made, forKey: "note")
                return made
            }
            venue.name = "renamed"
            expectEqual(shout(), "RENAMED")
            context.undo()
            expectEqual(shout(), "BAR")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child that undoes a transient value moves that up`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let (parent, child) = stack.pair()
        child.undoManager = UndoManager()
        try child.performAndWait {
            let venue = try child.get(id, Venue.self)
            venue.note = "a"
            child.processPendingChanges()
            venue.note = "b"
            try child.save()
        }
        try expectEqual(parent.look(id, Venue.self) { $0.note }, "b")
        try child.performAndWait {
            child.undo()
            try child.save()
        }
        try expectEqual(parent.look(id, Venue.self) { $0.note }, "a")
    }
}
