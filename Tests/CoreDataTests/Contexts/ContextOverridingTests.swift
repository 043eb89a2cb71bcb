import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// A program may replace what a context does, for example to count saves or to let them fail in a test.
@Suite("Overriding members of a context")
struct ContextOverridingTests {
    @Test(arguments: StoreKind.allCases)
    func `an override is called in place of each member, and its super does the work`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let context = RecordingContext(stack)
        try context.performAndWait {
            context.undoManager = UndoManager()
            let object = Hooked(context: context)
            object.name = "a"
            context.assign(object, to: try require(stack.coordinator.persistentStores.first))
            context.processPendingChanges()
            context.undo()
            expect(!context.hasChanges)
            context.redo()
            expect(object.isInserted)
            try context.obtainPermanentIDs(for: [object])
            expect(!object.objectID.isTemporaryID)
            try context.save()
            expectEqual(
                context.calls,
                ["insert", "assign", "processPendingChanges", "undo", "redo", "obtainPermanentIDs", "save"]
            )
            context.calls = []
            let id = object.objectID
            expect(context.object(with: id) === object)
            expect(context.registeredObject(for: id) === object)
            expect(try context.existingObject(with: id) === object)
            context.detectConflicts(for: object)
            object.name = "b"
            context.refresh(object, mergeChanges: false)
            expect(object.isFault)
            expectEqual(object.name, "a")
            context.refreshAllObjects()
            expect(object.isFault)
            context.delete(object)
            expect(object.isDeleted)
            context.rollback()
            expect(!object.isDeleted)
            expectEqual(
                context.calls,
                [
                    "object", "registeredObject", "existingObject", "detectConflicts", "refresh", "refreshAllObjects",
                    "delete", "rollback",
                ]
            )
            context.calls = []
            context.reset()
            expect(object.managedObjectContext == nil && context.registeredObjects.isEmpty)
            expectEqual(context.calls, ["reset"])
        }
        try expectEqual(stack.count("Hooked"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `overrides of perform, merges and requests are called`(_ kind: StoreKind) async throws {
        let stack = try Stack.objects(kind)
        let context = RecordingContext(stack)
        await withCheckedContinuation { done in context.perform { done.resume() } }
        try context.performAndWait {
            expectEqual(context.calls, ["perform"])
            context.mergeChanges(fromContextDidSave: Notification(name: .NSManagedObjectContextDidSave))
            let insert = NSBatchInsertRequest(entityName: "Hooked", objects: [["name": "a"], ["name": "b"]])
            insert.resultType = .count
            let result = try context.execute(insert) as? NSBatchInsertResult
            expectEqual(result?.result as? Int, 2)
            expectEqual(context.calls, ["perform", "mergeChanges", "execute"])
        }
        try expectEqual(stack.count("Hooked"), 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `what the framework does by itself calls no override`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let context = RecordingContext(stack)
        try context.performAndWait {
            let owner = Hooked(context: context)
            for _ in 0..<3 { Hooked(context: context).owner = owner }
            try context.save()
            context.calls = []
            // The cascade, and the end of the event before a fetch and in a save.
            context.delete(owner)
            try expect(context.all(Hooked.self).isEmpty)
            try context.save()
            expectEqual(context.calls, ["delete", "save"])
            context.calls = []
            let child = context.child()
            try child.performAndWait { () throws in
                let object = Hooked(context: child)
                object.name = "child"
                try child.save()
                try child.obtainPermanentIDs(for: [object])
            }
            context.rollback()
            expectEqual(context.calls, ["rollback"])
        }
        try expectEqual(stack.count("Hooked"), 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that fails in an override stores nothing, in each form of a save`(_ kind: StoreKind) async throws {
        let stack = try Stack.objects(kind)
        let context = RecordingContext(stack)
        let other = stack.context()
        context.performAndWait {
            Hooked(context: context).name = "a"
            context.failure = CocoaError(.persistentStoreSave)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expectThrows(CocoaError.self) { try context.save(retrying: 3) }
            expect(context.hasChanges)
        }
        await expectThrows(CocoaError.self) { try await context.save(mergingInto: [other]) }
        try expectEqual(stack.count("Hooked"), 0)
        try context.performAndWait {
            context.failure = nil
            try context.save()
            expect(!context.hasChanges)
        }
        try expectEqual(stack.count("Hooked"), 1)
    }
}

private final class RecordingContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: like its superclass; what it adds is used only inside of its scope, or by `perform` before
    // another thread has the context.
    var calls: [String] = []
    var failure: (any Error)?

    convenience init(_ stack: Stack) {
        self.init(concurrencyType: .privateQueueConcurrencyType)
        persistentStoreCoordinator = stack.coordinator
    }

    override func perform(_ block: @escaping () -> Void) {
        calls.append("perform")
        super.perform(block)
    }
    override func save() throws {
        calls.append("save")
        if let failure { throw failure }
        try super.save()
    }
    override func execute(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
        calls.append("execute")
        return try super.execute(request)
    }
    override func insert(_ object: NSManagedObject) {
        calls.append("insert")
        super.insert(object)
    }
    override func delete(_ object: NSManagedObject) {
        calls.append("delete")
        super.delete(object)
    }
    override func assign(_ object: Any, to store: NSPersistentStore) {
        calls.append("assign")
        super.assign(object, to: store)
    }
    override func detectConflicts(for object: NSManagedObject) {
        calls.append("detectConflicts")
        super.detectConflicts(for: object)
    }
    override func processPendingChanges() {
        calls.append("processPendingChanges")
        super.processPendingChanges()
    }
    override func refresh(_ object: NSManagedObject, mergeChanges flag: Bool) {
        calls.append("refresh")
        super.refresh(object, mergeChanges: flag)
    }
    override func refreshAllObjects() {
        calls.append("refreshAllObjects")
        super.refreshAllObjects()
    }
    override func rollback() {
        calls.append("rollback")
        super.rollback()
    }
    override func reset() {
        calls.append("reset")
        super.reset()
    }
    override func obtainPermanentIDs(for objects: [NSManagedObject]) throws {
        calls.append("obtainPermanentIDs")
        try super.obtainPermanentIDs(for: objects)
    }
    override func registeredObject(for objectID: NSManagedObjectID) -> NSManagedObject? {
        calls.append("registeredObject")
        return super.registeredObject(for: objectID)
    }
    override func object(with objectID: NSManagedObjectID) -> NSManagedObject {
        calls.append("object")
        return super.object(with: objectID)
    }
    override func existingObject(with objectID: NSManagedObjectID) throws -> NSManagedObject {
        calls.append("existingObject")
        return try super.existingObject(with: objectID)
    }
    override func mergeChanges(fromContextDidSave notification: Notification) {
        calls.append("mergeChanges")
        super.mergeChanges(fromContextDidSave: notification)
    }
    override func undo() {
        calls.append("undo")
        super.undo()
    }
    override func redo() {
        calls.append("redo")
        super.redo()
    }
}
