import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Classes and entities")
struct ClassLookupTests {
    private func model(_ className: String, entity name: String = "Thing") -> NSManagedObjectModel {
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = className
        entity.properties = [GuideModel.attribute("name", .string)]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }

    @Test(arguments: ["LookedUp", ".LookedUp", "%.LookedUp"])
    func `a class is found by its bare name, with a dot, and with its module`(_ name: String) throws {
        let className = name == "%.LookedUp" ? String(reflecting: LookedUp.self) : name
        let stack = try Stack(.memory, model: model(className))
        try stack.inContext { context in
            let object = LookedUp(context: context)
            object.name = "a"
            expectEqual(object.entity.name, "Thing")
            try context.save()
        }
        try stack.inContext { context throws in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
            try expect(context.fetch(request).first is LookedUp)
            let inserted = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
            expect(inserted is LookedUp)
        }
    }

    @Test
    func `an entity of an unknown class has the class of its super-entity, or the plain one`() throws {
        let parent = GuideModel.entity("Parent", LookedUp.self)
        let child = NSEntityDescription()
        child.name = "Child"
        child.managedObjectClassName = "Nowhere.ToBeFound"
        parent.subentities = [child]
        let alone = NSEntityDescription()
        alone.name = "Alone"
        alone.managedObjectClassName = "NeitherThis"
        let model = NSManagedObjectModel()
        model.entities = [parent, child, alone]
        let stack = try Stack(.memory, model: model)
        stack.inContext { context in
            expect(NSEntityDescription.insertNewObject(forEntityName: "Child", into: context) is LookedUp)
            let object = NSEntityDescription.insertNewObject(forEntityName: "Alone", into: context)
            expect(type(of: object) == NSManagedObject.self)
        }
    }

    /// A class that is not at the top level has a name that no model can spell in full.
    final class Nested: NSManagedObject {
        @Managed var name: String?
    }

    @Test
    func `a nested class is found by its last name`() throws {
        let stack = try Stack(.memory, model: model("Nested"))
        try stack.inContext { context throws in
            Nested(context: context).name = "a"
            try context.save()
            try expectEqual(context.fetch(NSFetchRequest<Nested>(entityName: "Thing")).first?.name, "a")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `two models may share a class, and each context uses its own`(_ kind: StoreKind) throws {
        let first = try Stack(kind, model: model("LookedUp", entity: "First"))
        let second = try Stack(kind, model: model("LookedUp", entity: "Second"))
        for _ in 0..<3 {
            for (stack, name) in [(first, "First"), (second, "Second")] {
                try stack.inContext { context in
                    let object = LookedUp(context: context)
                    object.name = name
                    expectEqual(object.entity.name, name)
                    expectEqual(object.name, name)
                    try context.save()
                    let request: NSFetchRequest<LookedUp> = LookedUp.fetchRequest()
                    try expect(context.fetch(request).allSatisfy { $0.name == name })
                }
            }
        }
        try first.inContext { context throws in
            try expectEqual(context.fetch(LookedUp.fetchRequest()).count, 3)
        }
    }

    @Test
    func `a class knows its entity and makes requests for it`() throws {
        let stack = try Stack(.memory)
        let request: NSFetchRequest<Venue> = Venue.fetchRequest()
        let plain: NSFetchRequest<NSFetchRequestResult> = Venue.fetchRequest()
        try stack.inContext { context in
            Venue(context: context).name = "a"
            Bar(context: context).name = "b"
            try context.save()
            let venues: [Venue] = try context.fetch(request)
            expectEqual(Set(venues.compactMap(\.name)), ["a", "b"])
            try expectEqual(context.fetch(plain).count, 2)
            try expectEqual(context.fetch(Bar.fetchRequest()).map(\.name), ["b"])
            expectEqual(Venue.entity().name, "Venue")
            expectEqual(Bar.entity().name, "Bar")
            expectEqual(Bar.entity().superentity?.name, "Venue")
            let object = Tag(entity: Tag.entity(), insertInto: nil)
            expectEqual(object.title, nil)
        }
    }

    @Test
    func `the table of properties has those of the superclass first`() {
        expectEqual(Bar.managedProperties.map(\.name).suffix(2), ["fans", "beers"])
        expectEqual(Bar.managedProperties.first?.name, "name")
    }
}

private typealias Tag = TestSupport.Tag

final class LookedUp: NSManagedObject {
    @Managed var name: String?
}
