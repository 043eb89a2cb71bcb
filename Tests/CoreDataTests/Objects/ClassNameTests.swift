import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials

private final class HiddenThing: NSManagedObject {}

/// The names of classes as models have them.
@Suite("Names of classes")
struct ClassNameTests {
    final class Inner: NSManagedObject {}

    @Test func `a class has its name with the module, as Foundation gives it`() {
        expectEqual(NSStringFromClass(Venue.self), Foundation.NSStringFromClass(Venue.self))
        expectEqual(NSStringFromClass(Venue.self), "TestSupport.Venue")
        // The compiler prefers Foundation's function for all other classes.
        expectEqual([NSDate.self, Venue.self].map { (type: AnyClass) in NSStringFromClass(type) }.first, "NSDate")
    }

    @Test func `names are those that a program would print`() {
        let types: [NSManagedObject.Type] = [Venue.self, City.self, Inner.self, HiddenThing.self, NSManagedObject.self]
        for type in types {
            expectEqual(ManagedClasses.fullName(of: type), String(reflecting: type))
            expectEqual(ManagedClasses.bareName(of: type), String(describing: type))
        }
    }

    @Test func `a model finds classes that are private or inside other types by these names`() throws {
        // Foundation's function stops the program for such classes.
        let types: [(String, NSManagedObject.Type)] = [("Inner", Inner.self), ("Hidden", HiddenThing.self)]
        let model = NSManagedObjectModel()
        model.entities = types.map { name, type in
            let entity = NSEntityDescription()
            entity.name = name
            entity.managedObjectClassName = NSStringFromClass(type)
            return entity
        }
        let stack = try Stack(.memory, model: model)
        try stack.inContext { context in
            for (name, type) in types {
                let object = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
                expect(Swift.type(of: object) == type, "\(name)")
            }
        }
    }
}
