import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataOperations
@testable import StrataArchives

// Traits that models rarely use.

final class ShoutingTransformer: ValueTransformer {
    override func transformedValue(_ value: Any?) -> Any? { (value as? String).map { Data($0.uppercased().utf8) } }

    override func reverseTransformedValue(_ value: Any?) -> Any? {
        (value as? Data).map { String(decoding: $0, as: UTF8.self) }
    }
}

@ManagedObject(
    .compoundIndex("x", "y"),
    .index("both", on: .ascending("x"), .descending("y")),
    .index("where", on: .rTree("x"), .rTree("y")),
    .index("upper", on: .expression("uppercase:(label)", type: .string, isAscending: false))
)
final class Pin: NSManagedObject {
    @Managed var x: Double
    @Managed var y: Double
    @Managed(.validated("SELF != 'x'", message: "is no label")) var label: String?
    @Managed(.transformable(by: ShoutingTransformer.self)) var loud: NSString?
    @Managed(.inverse("pin"), .destination(Line.self)) var lines: NSSet?
    @Managed(.inverse(\Line.orderedPin), .destination(Line.self), .ordered) var orderedLines: NSOrderedSet?
    @Managed(.inverse(\Line.looserPins), .unordered) var looseLines: [Line]

    @ManagedObject
    final class Line: NSManagedObject {
        @Managed(.count(least: 1, most: 1)) var pin: Pin?
        @Managed var orderedPin: Pin?
        @Managed(.count(2...)) var looserPins: Set<Pin>
    }
}

@Suite("Traits that are rare")
struct RareTraitTests {
    private func model() throws -> NSManagedObjectModel { try NSManagedObjectModel(for: Pin.self, Pin.Line.self) }

    @Test("indexes of every kind are in the model")
    func indexes() throws {
        let pin = try model().entity("Pin")

        expectEqual(pin.compoundIndexNames, [["x", "y"]])
        let both = try require(pin.indexes.first { $0.name == "both" })
        expectEqual(both.elements.map(\.isAscending), [true, false])
        let tree = try require(pin.indexes.first { $0.name == "where" })
        expect(
            tree.elements.map(\.collationType) == [.rTree, .rTree] && tree.elements.map(\.propertyName) == ["x", "y"]
        )
        let upper = try require(pin.indexes.first { $0.name == "upper" }?.elements.first)
        let computed = try require(upper.property as? NSExpressionDescription)
        expect(computed.resultType == .string && computed.expression?.expressionType == .function)
        expect(!upper.isAscending)
    }

    @Test("relationships are ordered, unordered and counted as the traits say")
    func relationships() throws {
        let model = try model()
        let pin = try model.entity("Pin").relationshipsByName
        let thread = try model.entity("Line").relationshipsByName

        expect(pin["lines"]?.destinationEntity?.name == "Line" && pin["lines"]?.isOrdered == false)
        expect(
            pin["lines"]?.inverseRelationship?.name == "pin" && thread["pin"]?.inverseRelationship?.name == "lines"
        )
        expect(pin["orderedLines"]?.isOrdered == true && pin["orderedLines"]?.isToMany == true)
        expect(
            pin["looseLines"]?.isOrdered == false && pin["looseLines"]?.inverseRelationship?.name == "looserPins"
        )
        expect(thread["pin"]?.minCount == 1 && thread["pin"]?.maxCount == 1)
        expect(thread["looserPins"]?.minCount == 2 && thread["looserPins"]?.maxCount == 0)
    }

    @Test("a condition refuses with its message, and a transformer's class is known by its name")
    func values() throws {
        ValueTransformer.setValueTransformer(
            ShoutingTransformer(),
            forName: NSValueTransformerName("ShoutingTransformer")
        )
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try model())
        try coordinator.addPersistentStore(ofType: NSInMemoryStoreType, configurationName: nil, at: nil, options: nil)
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let pin = Pin(context: context)
            (pin.x, pin.y, pin.label, pin.loud) = (1, 2, "x", "quiet")
            do {
                try context.save()
                Issue.record("no error")
            } catch {
                expect(error.localizedDescription.contains("is no label"))
            }
            pin.label = "a"
            try context.save()
            context.refresh(pin, mergeChanges: false)
            expectEqual(pin.loud, "QUIET")
        }
    }
}
