import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

/// Properties that are declared with classes, and with the values of transformable attributes.
@Suite("Declared classes of attributes")
struct ObjectTypesTests {
    private func stack(_ kind: StoreKind) throws -> Stack { try Stack(kind, model: TypedShelf.model()) }

    @Test(arguments: StoreKind.allCases)
    func `numbers, dates and texts can be declared as classes that are not optional`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        try stack.inContext { context in
            let shelf = TypedShelf(context: context)
            expect(shelf.price == .zero && shelf.count == 0 && shelf.day == NSDate(timeIntervalSinceReferenceDate: 0))
            shelf.price = NSDecimalNumber(string: "1.25")
            shelf.count = 7
            shelf.weight = 2.5
            shelf.day = NSDate(timeIntervalSinceReferenceDate: 60)
            shelf.title = "t"
            try context.save()
        }
        try stack.inContext { context throws in
            let shelf = try require(try context.fetch(NSFetchRequest<TypedShelf>(entityName: "Shelf")).first)
            expectEqual(shelf.price, NSDecimalNumber(string: "1.25"))
            expect(shelf.count == 7 && shelf.weight == 2.5 && shelf.title == "t")
            expectEqual(shelf.day, NSDate(timeIntervalSinceReferenceDate: 60))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a transformable attribute can be declared as what it holds`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        try stack.inContext { context in
            let shelf = TypedShelf(context: context)
            expect(shelf.words == [] && shelf.numbers == [:] && shelf.list == NSArray() && shelf.bag == NSSet())
            expectEqual(shelf.letters, [])
            shelf.words = ["a", "b"]
            shelf.numbers = ["one": 1]
            shelf.letters = ["x"]
            shelf.list = ["l"]
            shelf.bag = NSSet(array: ["s"])
            shelf.row = NSOrderedSet(array: ["o"])
            try context.save()
        }
        try stack.inContext { context throws in
            let shelf = try require(try context.fetch(NSFetchRequest<TypedShelf>(entityName: "Shelf")).first)
            expect(shelf.words == ["a", "b"] && shelf.numbers == ["one": 1] && shelf.letters == ["x"])
            expect(shelf.list == ["l"] && shelf.bag == NSSet(array: ["s"]) && shelf.row == NSOrderedSet(array: ["o"]))
            shelf.row = nil
            expectEqual(shelf.row, nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a transformable value of an undeclared class reads as nil, and is reported once`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        let told = Locked<[String]>([])
        stack.coordinator.unreportableErrorHandler = { error, _ in
            told.withLock { $0.append(error.localizedDescription) }
        }
        try stack.inContext { context in
            for _ in 0..<2 {
                TypedShelf(context: context).setValue(["an", "array"] as NSArray, forKey: "mapping")
            }
            try context.save()
        }
        try stack.inContext { context throws in
            for shelf in try context.fetch(NSFetchRequest<TypedShelf>(entityName: "Shelf")) {
                expectEqual(shelf.mapping, nil)
            }
        }
        let texts = told.withLock { $0 }
        expectEqual(texts.count, 1)
        expectEqual(
            texts.first?.hasPrefix("Property \"mapping\" of Shelf is declared as NSDictionary, but holds"),
            true
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `primitive values are read and set without a mark on the object`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        try stack.inContext { context in
            let shelf = TypedShelf(context: context)
            shelf.name = "first"
            expect(shelf.primitiveName == "first" && shelf.primitiveCount == 0)
            try context.save()
            shelf.primitiveName = "second"
            shelf.primitiveCount = 3
            expect(!shelf.hasChanges && !context.hasChanges)
            expect(shelf.name == "second" && shelf.count == 3)
            expectEqual(shelf.value(forKey: "primitiveName") as? String, "second")
            shelf.setValue("third", forKey: "primitiveName")
            expect(!shelf.hasChanges && shelf.name == "third")
            shelf.willChangeValue(forKey: "name")
            shelf.primitiveName = "fourth"
            shelf.didChangeValue(forKey: "name")
            expect(shelf.hasChanges)
            try context.save()
        }
        try stack.inContext { context throws in
            let shelf = try require(try context.fetch(NSFetchRequest<TypedShelf>(entityName: "Shelf")).first)
            expectEqual(shelf.name, "fourth")
        }
    }
}

private final class TypedShelf: NSManagedObject {
    @Managed var name: String?
    @Managed var primitiveName: String?
    @Managed var primitiveCount: Int64
    @Managed var price: NSDecimalNumber
    @Managed var count: NSNumber
    @Managed var weight: NSNumber?
    @Managed var day: NSDate
    @Managed var title: NSString
    @Managed var words: [String]
    @Managed var numbers: [String: Int]
    @Managed var letters: Set<String>
    @Managed var list: NSArray
    @Managed var bag: NSSet
    @Managed var row: NSOrderedSet?
    @Managed var mapping: NSDictionary?

    static func model() -> NSManagedObjectModel {
        let entity = NSEntityDescription()
        entity.name = "Shelf"
        entity.managedObjectClassName = String(reflecting: TypedShelf.self)
        entity.properties = [
            GuideModel.attribute("name", .string), GuideModel.attribute("price", .decimal),
            GuideModel.attribute("count", .integer64), GuideModel.attribute("weight", .double),
            GuideModel.attribute("day", .date), GuideModel.attribute("title", .string),
        ]
        for name in ["words", "numbers", "letters", "list", "bag", "row", "mapping"] {
            entity.properties.append(GuideModel.attribute(name, .transformable))
        }
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }
}
