import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@Suite("Transient values in trees")
struct TransientValueTests {
    private func notes(_ kind: StoreKind) throws -> (stack: Stack, id: NSManagedObjectID) {
        let stack = try Stack(kind, model: TreeModel.make())
        let id = try stack.store(DraftNote.self) { note, _ in note.text = "stored" }
        return (stack, id)
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's save moves them up, those of new objects too`(_ kind: StoreKind) throws {
        let (stack, id) = try notes(kind)
        let (parent, child) = stack.pair()
        let new = try child.performAndWait { () throws in
            try child.get(id, DraftNote.self).text = "changed"
            try child.get(id, DraftNote.self).draft = "scribble"
            let note = DraftNote(context: child)
            note.draft = "first thoughts"
            return note.objectID
        }
        try child.saveAndWait()
        try expectEqual(parent.look(id, DraftNote.self) { $0.draft }, "scribble")
        try expectEqual(parent.look(new, DraftNote.self) { $0.draft }, "first thoughts")
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that changes nothing else moves them up, and the parent's object is changed by that`(
        _ kind: StoreKind
    ) throws {
        let (stack, id) = try notes(kind)
        let (root, middle, leaf) = stack.chain()
        try leaf.edit(id, DraftNote.self) { $0.draft = "scribble" }
        try leaf.saveAndWait()
        try middle.performAndWait { () throws in
            let note: DraftNote = try typed(require(middle.registeredObject(for: id)))
            expectEqual(note.draft, "scribble")
            expect(note.isUpdated && !note.hasPersistentChangedValues && middle.hasChanges)
        }
        try middle.saveAndWait()
        try root.performAndWait { () throws in
            let note: DraftNote = try typed(require(root.registeredObject(for: id)))
            expect(note.draft == "scribble" && note.isUpdated)
            try root.save()
            expect(note.draft == "scribble" && !note.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `they never come down, and what a child has not set stays in the parent`(_ kind: StoreKind) throws {
        let (stack, id) = try notes(kind)
        let (parent, child) = stack.pair()
        try parent.edit(id, DraftNote.self) { $0.draft = "of the parent" }
        try child.performAndWait { () throws in
            let note = try child.get(id, DraftNote.self)
            expectEqual(note.draft, nil)
            note.text = "changed"
            try child.save()
        }
        try expectEqual(parent.look(id, DraftNote.self) { $0.draft }, "of the parent")
        try child.performAndWait { () throws in
            child.reset()
            try expectEqual(child.get(id, DraftNote.self).draft, nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `they are no conflict with what the parent has changed`(_ kind: StoreKind) throws {
        let (stack, id) = try notes(kind)
        let (parent, child) = stack.pair()
        child.parentConflictPolicy = .error
        try child.performAndWait { try child.get(id, DraftNote.self).draft = "scribble" }
        try parent.edit(id, DraftNote.self) { $0.text = "of the parent" }
        try child.saveAndWait()
        try expectEqual(parent.look(id, DraftNote.self) { $0.draft }, "scribble")
        try expectEqual(parent.look(id, DraftNote.self) { $0.text }, "of the parent")
    }

    @Test(arguments: StoreKind.allCases)
    func `what was rolled back is not moved up`(_ kind: StoreKind) throws {
        let (stack, id) = try notes(kind)
        let (parent, child) = stack.pair()
        try child.performAndWait { () throws in
            let note = try child.get(id, DraftNote.self)
            note.draft = "dropped"
            child.rollback()
            note.text = "changed"
            try child.save()
        }
        try expectEqual(parent.look(id, DraftNote.self) { $0.draft }, nil)
    }

    /// Items with a constraint and a transient property of any type, and books, which are items with one more.
    private static func items() -> NSManagedObjectModel {
        let item = GuideModel.entity("Item", NSManagedObject.self)
        item.properties = [GuideModel.attribute("code", .string), GuideModel.transient("scratch", .undefined)]
        item.uniquenessConstraints = [["code"]]
        let book = GuideModel.entity("Book", NSManagedObject.self)
        book.properties = [GuideModel.attribute("title", .string), GuideModel.transient("mark", .integer64)]
        item.subentities = [book]
        let model = NSManagedObjectModel()
        model.entities = [item, book]
        return model
    }

    @Test(arguments: StoreKind.allCases)
    func `those of new objects go up the tree, of any type and of sub-entities, beside constraints`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind, model: Self.items())
        let (root, middle, leaf) = stack.chain()
        let ids = try leaf.performAndWait { () throws in
            let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: leaf)
            item.setValue("1", forKey: "code")
            item.setValue([1, 2, 3], forKey: "scratch")
            let book = NSEntityDescription.insertNewObject(forEntityName: "Book", into: leaf)
            book.setValue("2", forKey: "code")
            book.setValue("loose leaf", forKey: "scratch")
            book.setValue(7, forKey: "mark")
            return [item.objectID, book.objectID]
        }
        for (context, next) in [(leaf, middle), (middle, root)] {
            try context.saveAndWait()
            try next.look(ids[0], NSManagedObject.self) { item in
                expectEqual(item.value(forKey: "scratch") as? [Int], [1, 2, 3])
                expectEqual(item.value(forKey: "code") as? String, "1")
            }
            try next.look(ids[1], NSManagedObject.self) { book in
                expectEqual(book.value(forKey: "scratch") as? String, "loose leaf")
                expectEqual((book.value(forKey: "mark") as? NSNumber)?.intValue, 7)
                expect(book.isInserted)
            }
        }
        // A context lets go of what is saved, with its transient values, unless something holds it.
        root.performAndWait { root.retainsRegisteredObjects = true }
        try root.saveAndWait()
        try root.look(ids[1], NSManagedObject.self) { book in
            expectEqual((book.value(forKey: "mark") as? NSNumber)?.intValue, 7)
            expect(!book.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `those of a new object are in the parent although its save fails by a constraint`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.items())
        let context = stack.context()
        try context.performAndWait { () throws in
            let stored = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
            stored.setValue("1", forKey: "code")
            try context.save()
        }
        let (parent, child) = stack.pair()
        let id = try child.performAndWait { () throws in
            let item = NSEntityDescription.insertNewObject(forEntityName: "Book", into: child)
            item.setValue("1", forKey: "code")
            item.setValue("kept", forKey: "scratch")
            try child.save()
            return item.objectID
        }
        expectThrows(CocoaError.self) { try parent.saveAndWait() }
        try parent.look(id, NSManagedObject.self) { item in
            expect(item.isInserted && item.value(forKey: "scratch") as? String == "kept")
            item.setValue("3", forKey: "code")
        }
        parent.performAndWait { parent.retainsRegisteredObjects = true }
        try parent.saveAndWait()
        try parent.look(id, NSManagedObject.self) { expectEqual($0.value(forKey: "scratch") as? String, "kept") }
    }
}
