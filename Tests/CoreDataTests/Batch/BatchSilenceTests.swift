import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("What batches leave out")
struct BatchSilenceTests {
    /// An entity with a required name, whose objects count their hooks and whose validation refuses everything.
    private func model() -> NSManagedObjectModel {
        let note = GuideModel.entity("Note", CountingNote.self)
        note.properties = [
            GuideModel.attribute("text", .string, optional: false), GuideModel.attribute("number", .integer32),
        ]
        let model = NSManagedObjectModel()
        model.entities = [note]
        return model
    }

    @Test
    func `nothing is validated, no hook is called, and no notification of a save or a change is posted (CS-169)`()
        throws
    {
        let posted = Locked<[String]>([])
        // The stores run one after the other, since one counter counts the hooks of all.
        for kind in StoreKind.allCases {
            let stack = try Stack(kind, model: model())
            let context = stack.context()
            let names: [Notification.Name] = [
                .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
                .NSManagedObjectContextObjectsDidChange, NSManagedObjectContext.didSaveObjectIDsNotification,
            ]
            let observers = names.map { name in
                NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { _ in
                    posted.withLock { $0.append(name.rawValue) }
                }
            }
            defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
            try context.performAndWait {
                // The text is missing, and the objects' validation would refuse all of them.
                try context.execute(NSBatchInsertRequest(entityName: "Note", objects: (0..<3).map { ["number": $0] }))
                var count = 0
                try context.execute(
                    NSBatchInsertRequest(entityName: "Note") { (object: NSManagedObject) -> Bool in
                        object.setValue(count + 3, forKey: "number")
                        count += 1
                        return count > 2
                    }
                )
                let loaded = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
                expectEqual(loaded.compactMap { $0.value(forKey: "number") as? Int }.sorted(), [0, 1, 2, 3, 4])
                posted.withLock { $0 = [] }
                let update = NSBatchUpdateRequest(entityName: "Note")
                update.propertiesToUpdate = ["text": NSNull(), "number": NSExpression(format: "number + 10")]
                try context.execute(update)
                try context.execute(NSBatchDeleteRequest("Note", "number < 12"))
                try expectEqual(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Note")), 3)
                context.processPendingChanges()
                expectEqual(CountingNote.calls.withLock { $0 }, 0)
                expectEqual(posted.withLock { $0 }, [])
            }
        }
        // A save calls the hooks, so the test would have seen all of them above.
        let context = try Stack(.memory, model: model()).context()
        context.performAndWait {
            _ = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
            expectThrows(CocoaError.self) { try context.save() }
        }
        expect(CountingNote.calls.withLock { $0 } > 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `minimum and maximum counts of relationships are not checked (CS-171)`(_ kind: StoreKind) throws {
        let owner = GuideModel.entity("Owner", NSManagedObject.self)
        let thing = GuideModel.entity("Thing", NSManagedObject.self)
        owner.properties = [GuideModel.attribute("name", .string)]
        thing.properties = [GuideModel.attribute("name", .string)]
        GuideModel.relate(owner, "things", .many(.nullifyDeleteRule), thing, "owner", .one(.nullifyDeleteRule))
        owner.relationshipsByName["things"]?.minCount = 2
        owner.relationshipsByName["things"]?.isOptional = false
        let model = NSManagedObjectModel()
        model.entities = [owner, thing]
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            func make(_ entity: String) -> NSManagedObject {
                NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
            }
            let owner = make("Owner")
            owner.setValue(Set((0..<2).map { _ in make("Thing") }), forKey: "things")
            try context.save()
            // A save checks the minimum count.
            for thing in owner.value(forKey: "things") as? Set<NSManagedObject> ?? [] { context.delete(thing) }
            expectThrows(CocoaError.self) { try context.save() }
            context.rollback()
        }
        try stack.execute(NSBatchDeleteRequest("Thing"))
        try expectEqual([stack.count("Owner"), stack.count("Thing")], [1, 0])
        try expectEqual(stack.problems(), [])
    }
}

/// A note that counts its hooks, and that fails every validation.
final class CountingNote: NSManagedObject {
    static let calls = Locked(0)

    private func count() { Self.calls.withLock { $0 += 1 } }

    private func refuse() throws {
        count()
        throw CocoaError(.managedObjectValidation)
    }

    override func awakeFromInsert() {
        super.awakeFromInsert()
        count()
    }
    override func willSave() {
        super.willSave()
        count()
    }
    override func didSave() {
        super.didSave()
        count()
    }
    override func prepareForDeletion() {
        super.prepareForDeletion()
        count()
    }
    override func validateForInsert() throws { try refuse() }
    override func validateForUpdate() throws { try refuse() }
    override func validateForDelete() throws { try refuse() }
}
