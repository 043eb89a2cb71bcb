import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Deletions that lead to others")
struct CascadeTests {
    /// Shelf → box → thing, each taking the next with it.
    private func model() -> NSManagedObjectModel {
        let entities = ["Shelf", "Box", "Thing"].map { name in
            let entity = GuideModel.entity(name, NSManagedObject.self)
            entity.properties = [GuideModel.attribute("name", .string)]
            return entity
        }
        GuideModel.relate(
            entities[0],
            "boxes",
            .many(.cascadeDeleteRule),
            entities[1],
            "shelf",
            .one(.nullifyDeleteRule)
        )
        GuideModel.relate(
            entities[1],
            "things",
            .many(.cascadeDeleteRule),
            entities[2],
            "box",
            .one(.nullifyDeleteRule)
        )
        let model = NSManagedObjectModel()
        model.entities = entities
        return model
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a cascade goes on through an object that had changed before`(_ kind: StoreKind, atEndOfEvent: Bool) throws {
        let stack = try Stack(kind, model: model())
        let context = stack.context()
        try context.performAndWait {
            context.propagatesDeletesAtEndOfEvent = atEndOfEvent
            let objects = ["Shelf", "Box", "Thing"].map {
                NSEntityDescription.insertNewObject(forEntityName: $0, into: context)
            }
            objects[1].setValue(objects[0], forKey: "shelf")
            objects[2].setValue(objects[1], forKey: "box")
            try context.save()
            objects[1].setValue("changed", forKey: "name")
            context.processPendingChanges()
            context.delete(objects[0])
            try context.save()
        }
        for name in ["Shelf", "Box", "Thing"] { try expectEqual(stack.count(name), 0, "\(name)") }
    }

    @Test(arguments: StoreKind.allCases)
    func `what is deleted, taken back and deleted again is deleted with all that it leads to`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind, model: model())
        let context = stack.context()
        try context.performAndWait {
            context.undoManager = UndoManager()
            let objects = ["Shelf", "Box", "Thing"].map {
                NSEntityDescription.insertNewObject(forEntityName: $0, into: context)
            }
            objects[1].setValue(objects[0], forKey: "shelf")
            objects[2].setValue(objects[1], forKey: "box")
            try context.save()
            for _ in 0..<2 {
                context.delete(objects[0])
                context.processPendingChanges()
                expectEqual(context.deletedObjects.count, 3)
                context.undo()
                expect(context.deletedObjects.isEmpty)
            }
            context.delete(objects[0])
            try context.save()
        }
        try expectEqual(stack.count("Thing"), 0)
    }
}
