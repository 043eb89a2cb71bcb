import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

/// Classes are found by the name that the model gives, whether or not the program has used them.
///
/// A class counts as used until the program ends, so each test has different classes.
@Suite("Classes that a model names")
struct ClassDiscoveryTests {
    private func model(_ classNames: [String: String]) -> NSManagedObjectModel {
        let model = NSManagedObjectModel()
        model.entities = classNames.sorted { $0.key < $1.key }.map { name, className in
            let entity = NSEntityDescription()
            entity.name = name
            entity.managedObjectClassName = className
            entity.properties = [GuideModel.attribute("name", .string)]
            return entity
        }
        return model
    }

    private var module: String { String(String(reflecting: OnlyInModel.self).split(separator: ".")[0]) }

    @Test(arguments: [
        "OnlyInModel", ".OnlyInModel", "%.OnlyInModel", "OnlyInModelPrivately", "OnlyInModelInside",
        "ClassDiscoveryTests.OnlyInModelInside", "%.ClassDiscoveryTests.OnlyInModelInside", "NamedByModels",
        "TestSupport.NamedByModels",
    ])
    func `a class of the test bundle or of a library is found before the program has used it`(_ name: String) throws {
        let className = name.replacingOccurrences(of: "%", with: module)
        let stack = try Stack(.memory, model: model(["Thing": className]))
        stack.inContext { context in
            let inserted = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
            expectEqual(String(describing: type(of: inserted)), name.split(separator: ".").last.map(String.init))
        }
    }

    /// A class inside of another type.
    final class OnlyInModelInside: NSManagedObject {}

    @Test(arguments: StoreKind.allCases)
    func `typed reads give objects of classes that the program has not used`(_ kind: StoreKind) throws {
        let model = model(["Owner": "UnusedOwner", "Pet": "UnusedPet"])
        let (owner, pet) = (model.entitiesByName["Owner"]!, model.entitiesByName["Pet"]!)
        GuideModel.relate(pet, "owner", .one(.nullifyDeleteRule), owner, "pets", .many(.nullifyDeleteRule))
        GuideModel.relate(owner, "favourite", .one(.nullifyDeleteRule), pet, "fan", .one(.nullifyDeleteRule))
        let stack = try Stack(kind, model: model)
        let id = try stack.inContext { context in
            let owner = NSEntityDescription.insertNewObject(forEntityName: "Owner", into: context)
            let pet = NSEntityDescription.insertNewObject(forEntityName: "Pet", into: context)
            pet.setValue("Miro", forKey: "name")
            owner.setValue(pet, forKey: "favourite")
            owner.setValue(Set([pet]), forKey: "pets")
            try context.save()
            return owner.objectID
        }
        try stack.inContext { context in
            let owner = try require(context.existingObject(with: id) as? UnusedOwner)
            expectEqual(owner.favourite?.name, "Miro")
            expectEqual(owner.pets.map(\.name), ["Miro"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch without a class gives objects of the class, and so does a typed one after it`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind, model: model(["Thing": "UnusedThing"]))
        try stack.inContext { context in
            _ = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
            try context.save()
        }
        try stack.inContext { context throws in
            let untyped = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Thing"))
            expectEqual(untyped.map { String(describing: type(of: $0)) }, ["UnusedThing"])
            try expectEqual(context.fetch(NSFetchRequest<UnusedThing>(entityName: "Thing")).count, 1)
        }
    }

    @Test
    func `the use of one of two classes with a name decides which one an entity means`() throws {
        let here = try Stack(.memory, model: model(["Thing": "Twin"]))
        let there = try Stack(.memory, model: model(["Thing": "Twin"]))
        for _ in 0..<2 {
            try here.inContext { context in
                Twin(context: context).name = "here"
                try context.save()
                let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
                try expect(context.fetch(request).allSatisfy { $0 is Twin })
            }
            try there.inContext { context in
                #expect(throws: Never.self) {
                    try context.fetch(NSFetchRequest<TestSupport.Twin>(entityName: "Thing"))
                }
                let object = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
                expect(object is TestSupport.Twin)
                try context.save()
            }
        }
    }

    @Test
    func `two classes with a name are both named when one is not of the class that a request promises`() throws {
        let stack = try Stack(.memory, model: model(["Thing": "Twin"]))
        stack.inContext { context in
            Twin(context: context).name = "mine"
            let error = expectThrows(CocoaError.self) {
                try context.fetch(NSFetchRequest<TestSupport.Twin>(entityName: "Thing"))
            }
            expectEqual(error?.code, .persistentStoreOperation)
            let text = error?.localizedDescription ?? ""
            expect(text.contains("\(module).Twin and TestSupport.Twin"))
        }
    }

    @Test
    func `a fetch that cannot know which of two classes is meant throws an error that names both`() throws {
        let stacks = try StoreKind.allCases.map { try Stack($0, model: model(["Thing": "Lookalike"])) }
        for stack in stacks {
            try stack.inContext { context in
                let entity = try require(NSEntityDescription.entity(forEntityName: "Thing", in: context))
                _ = NSManagedObject(entity: entity, insertInto: context)
                try context.save()
            }
            try stack.inContext { context in
                let untyped = NSFetchRequest<NSManagedObject>(entityName: "Thing")
                let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Thing")
                let inBatches = NSFetchRequest<NSManagedObject>(entityName: "Thing")
                inBatches.fetchBatchSize = 1
                for error in [
                    expectThrows(CocoaError.self) { try context.fetch(untyped) },
                    expectThrows(CocoaError.self) { try context.fetch(request) },
                    expectThrows(CocoaError.self) { try context.fetch(inBatches) },
                ] {
                    expectEqual(error?.code, .persistentStoreOperation)
                    let text = error?.localizedDescription ?? ""
                    expect(text.contains("\(module).Lookalike and TestSupport.Lookalike"), "\(text)")
                }
                // A request that creates no objects does not depend on the class.
                try expectEqual(context.count(for: untyped), 1)
                let ids = NSFetchRequest<NSManagedObjectID>(entityName: "Thing")
                ids.resultType = .managedObjectIDResultType
                try expectEqual(context.fetch(ids).count, 1)
            }
        }
        for stack in stacks {
            try stack.inContext { context in
                try expectEqual(context.fetch(NSFetchRequest<Lookalike>(entityName: "Thing")).count, 1)
                let again = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Thing"))
                expect(again.first is Lookalike)
            }
        }
    }

    @Test
    func `an insertion that cannot know which of two classes is meant stops the program and names both`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let entity = NSEntityDescription()
            entity.name = "Thing"
            entity.managedObjectClassName = "Lookalike"
            let model = NSManagedObjectModel()
            model.entities = [entity]
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
            try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            context.performAndWait {
                _ = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let stop = text.components(separatedBy: "Objects of entity Thing cannot be made").dropFirst().first ?? ""
        expect(stop.contains("CoreDataTests.Lookalike and TestSupport.Lookalike"), "\(text)")
    }

    @Test
    func `classes that are missing, or there twice, are reported once when stores are loaded, by entity`() throws {
        let model = model([
            "Lost": "LostWithoutTrace", "Foreign": "SomeApp.Gone", "Double": "Twin", "Fine": "OnlyInModel",
            "Plain": "NSManagedObject",
        ])
        let abstract = NSEntityDescription()
        abstract.name = "Abstract"
        abstract.isAbstract = true
        abstract.managedObjectClassName = "NeverMade"
        model.entities.append(abstract)
        let told = Locked<[String]>([])
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        coordinator.unreportableErrorHandler = { error, _ in told.withLock { $0.append(error.localizedDescription) } }
        for _ in 0..<2 {
            try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        }
        let second = NSPersistentStoreCoordinator(managedObjectModel: model)
        second.unreportableErrorHandler = coordinator.unreportableErrorHandler
        try second.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        let texts = told.withLock { $0 }
        expectEqual(texts.count, 1)
        let text = try require(texts.first)
        expect(
            text.contains("For entity Lost the program has no subclass of NSManagedObject named \"LostWithoutTrace\"")
        )
        expect(text.contains("For entity Foreign") && text.contains("\"SomeApp.Gone\""))
        expect(
            text.contains("For entity Double several classes are named \"Twin\", \(module).Twin and TestSupport.Twin")
        )
        for name in ["Fine", "Plain", "Abstract"] { expect(!text.contains("For entity \(name) ")) }
    }
}

final class OnlyInModel: NSManagedObject {}

private final class OnlyInModelPrivately: NSManagedObject {}

final class Twin: NSManagedObject {
    @Managed var name: String?
}

final class Lookalike: NSManagedObject {}

private final class UnusedOwner: NSManagedObject {
    @Managed var favourite: UnusedPet?
    @Managed var pets: Set<UnusedPet>
}

private final class UnusedPet: NSManagedObject {
    @Managed var name: String?
}

private final class UnusedThing: NSManagedObject {}
