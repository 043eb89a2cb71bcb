import CoreData
import Expectations
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
}
