import CoreData
import Expectations
import TestSupport
import Testing

/// A page of a fetch, while what lies on it or before it has unsaved changes.
@Suite("Pages with unsaved changes")
struct PendingPageTests {
    /// Ten cities, `a0` to `a9`.
    private func stack(_ kind: StoreKind) throws -> Stack {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<10 {
                let city = City(context: context)
                city.name = "a\(number)"
            }
            try context.save()
        }
        return stack
    }

    /// The page of the sixth and the seventh city.
    private func page(_ context: NSManagedObjectContext) throws -> [String] {
        let request = NSFetchRequest<City>(entityName: "City")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        request.fetchOffset = 5
        request.fetchLimit = 2
        return try context.fetch(request).map(\.name)
    }

    private func city(_ name: String, _ context: NSManagedObjectContext) throws -> City {
        try require(try context.all(City.self).first { $0.name == name })
    }

    @Test(arguments: StoreKind.allCases)
    func `a new object is on the page where it sorts`(_ kind: StoreKind) throws {
        let context = try stack(kind).context()
        try context.performAndWait {
            City(context: context).name = "a55"
            let found = try page(context)
            expectEqual(found, ["a5", "a55"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a change on an earlier page moves nothing`(_ kind: StoreKind) throws {
        let context = try stack(kind).context()
        try context.performAndWait {
            try city("a0", context).population = 5
            try expectEqual(page(context), ["a5", "a6"])
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a deletion lets the next object move up`(_ kind: StoreKind, _ isInChild: Bool) throws {
        let root = try stack(kind).context()
        let context = isInChild ? root.child() : root
        try context.performAndWait {
            context.delete(try city("a6", context))
            try expectEqual(page(context), ["a5", "a7"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a change of an object of a sub-entity counts for predicates over relationships`(_ kind: StoreKind) throws {
        let animal = GuideModel.entity("Animal", NSManagedObject.self)
        animal.properties = [GuideModel.attribute("name", .string)]
        let cat = GuideModel.entity("Cat", NSManagedObject.self)
        animal.subentities = [cat]
        let owner = GuideModel.entity("Owner", NSManagedObject.self)
        owner.properties = [GuideModel.attribute("name", .string)]
        GuideModel.relate(owner, "pets", .many(.nullifyDeleteRule), animal, "owner", .one(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [animal, cat, owner]
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            let ada = NSEntityDescription.insertNewObject(forEntityName: "Owner", into: context)
            let felix = NSEntityDescription.insertNewObject(forEntityName: "Cat", into: context)
            felix.setValue("Felix", forKey: "name")
            felix.setValue(ada, forKey: "owner")
            try context.save()
            felix.setValue("Tom", forKey: "name")
            let request = NSFetchRequest<NSManagedObject>(entityName: "Owner")
            request.predicate = NSPredicate(format: "ANY pets.name == 'Tom'")
            try expectEqual(context.fetch(request), [ada])
            request.predicate = NSPredicate(format: "ANY pets.name == 'Felix'")
            try expect(context.fetch(request).isEmpty)
        }
    }
}
