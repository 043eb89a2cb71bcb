import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Checking models")
struct ModelValidationTests {
    /// A model with one mistake, and what the error says about it.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let entity: String?
        let property: String?
        let reason: String
        let make: @Sendable () -> NSManagedObjectModel

        init(
            _ description: String,
            _ entity: String?,
            _ property: String?,
            _ reason: String,
            _ make: @escaping @Sendable () -> NSManagedObjectModel
        ) {
            testDescription = description
            self.entity = entity
            self.property = property
            self.reason = reason
            self.make = make
        }
    }

    private static let entityMistakes = [
        Mistake("an entity without a name", nil, nil, "an entity has no name") {
            NSManagedObjectModel(NSEntityDescription())
        },
        Mistake("an entity name with a space", "My Entity", nil, "must start with a letter") {
            NSManagedObjectModel(NSEntityDescription("My Entity"))
        },
        Mistake("two entities with one name", "A", nil, "two entities with this name") {
            NSManagedObjectModel(NSEntityDescription("A"), NSEntityDescription("A"))
        },
        Mistake("a super-entity outside the model", "B", nil, "super-entity \"A\" is not in the model") {
            let parent = NSEntityDescription("A")
            let child = NSEntityDescription("B")
            parent.subentities = [child]
            let model = NSManagedObjectModel(child)
            // Keeps the parent alive for as long as the model.
            child.userInfo = ["parent": parent]
            return model
        },
        Mistake("a constraint on nothing", "A", "x", "uniqueness constraint names it") {
            let entity = NSEntityDescription("A", attribute("name"))
            entity.uniquenessConstraints = [["name", "x"]]
            return NSManagedObjectModel(entity)
        },
        Mistake("an empty constraint", "A", nil, "uniqueness constraint is empty") {
            let entity = NSEntityDescription("A", attribute("name"))
            entity.uniquenessConstraints = [[]]
            return NSManagedObjectModel(entity)
        },
        Mistake("a compound index on a transient attribute", "A", "name", "compound index names it") {
            let entity = NSEntityDescription("A", attribute("name") { $0.isTransient = true })
            entity.compoundIndexes = [["name"]]
            return NSManagedObjectModel(entity)
        },
        Mistake("a constraint on a to-many relationship", "A", "peers", "uniqueness constraint names it") {
            let entity = NSEntityDescription("A")
            entity.properties = [relationship("peers", to: entity)]
            entity.uniquenessConstraints = [["peers"]]
            return NSManagedObjectModel(entity)
        },
        Mistake("an index on another entity's attribute", "A", "other", "fetch index \"i\" names it") {
            let entity = NSEntityDescription("A", attribute("name"))
            let element = NSFetchIndexElementDescription(property: attribute("other"), collationType: .binary)
            entity.indexes = [NSFetchIndexDescription(name: "i", elements: [element])]
            return NSManagedObjectModel(entity)
        },
        Mistake("an index of mixed kinds", "A", nil, "mixes kinds") {
            let entity = NSEntityDescription("A", attribute("x", .double))
            entity.indexes = [
                NSFetchIndexDescription(
                    name: "i",
                    elements: [.binary, .rTree].map {
                        NSFetchIndexElementDescription(property: entity.properties[0], collationType: $0)
                    }
                )
            ]
            return NSManagedObjectModel(entity)
        },
    ]

    private static let propertyMistakes = [
        Mistake("a property without a name", "A", nil, "a property has no name") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("")))
        },
        Mistake("a property name with a dot", "A", "a.b", "must start with a letter") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("a.b")))
        },
        Mistake("a property name that starts with a digit", "A", "1a", "must start with a letter") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("1a")))
        },
        Mistake("a reserved name", "A", "objectID", "reserved") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("objectID")))
        },
        Mistake("two properties with one name", "A", "x", "two properties with this name") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x"), attribute("x", .double)))
        },
        Mistake("an inherited property declared again", "B", "x", "inherited from \"A\"") {
            let parent = NSEntityDescription("A", attribute("x"))
            parent.subentities = [NSEntityDescription("B", attribute("x"))]
            return NSManagedObjectModel(parent)
        },
        Mistake("an attribute without a type", "A", "x", "has no type") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x", .undefined)))
        },
        Mistake("a stored object ID", "A", "x", "object ID cannot be stored") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x", .objectID)))
        },
        Mistake("a composite type on a plain attribute", "A", "x", "needs an NSCompositeAttributeDescription") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x", .composite)))
        },
        Mistake("a composite attribute without elements", "A", "x", "no elements") {
            let composite = NSCompositeAttributeDescription()
            composite.name = "x"
            return NSManagedObjectModel(NSEntityDescription("A", composite))
        },
        Mistake("a composite attribute with a bad element", "A", "x", "(in its element \"y\")") {
            let composite = NSCompositeAttributeDescription()
            composite.name = "x"
            composite.elements = [attribute("y", .undefined)]
            return NSManagedObjectModel(NSEntityDescription("A", composite))
        },
        Mistake("a composite attribute whose default value is no dictionary", "A", "x", "is no dictionary") {
            let composite = NSCompositeAttributeDescription()
            (composite.name, composite.elements, composite.defaultValue) = ("x", [attribute("y")], "Lund")
            return NSManagedObjectModel(NSEntityDescription("A", composite))
        },
        Mistake("a default value of an unknown element", "A", "x", "has an element \"z\"") {
            let composite = NSCompositeAttributeDescription()
            (composite.name, composite.elements, composite.defaultValue) = ("x", [attribute("y")], ["z": "Lund"])
            return NSManagedObjectModel(NSEntityDescription("A", composite))
        },
        Mistake("a default value of the wrong type in a composite attribute", "A", "x", "of its element \"y\"") {
            let composite = NSCompositeAttributeDescription()
            (composite.name, composite.elements, composite.defaultValue) = ("x", [attribute("y")], ["y": 7])
            return NSManagedObjectModel(NSEntityDescription("A", composite))
        },
        Mistake("a derived attribute without a derivation", "A", "x", "no derivation expression") {
            let derived = NSDerivedAttributeDescription()
            derived.name = "x"
            derived.type = .string
            return NSManagedObjectModel(NSEntityDescription("A", derived))
        },
        Mistake("a derivation from nothing", "A", "x", "its derivation names \"nam\"") {
            let derived = NSDerivedAttributeDescription()
            derived.name = "x"
            derived.type = .string
            derived.derivationExpression = NSExpression(forKeyPath: "owner.nam")
            let entity = NSEntityDescription("A", derived, attribute("name"))
            entity.properties.append(relationship("owner", to: entity, maxCount: 1))
            return NSManagedObjectModel(entity)
        },
        Mistake("a default value of the wrong type", "A", "x", "default value Lund does not fit its type") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x", .integer64) { $0.defaultValue = "Lund" }))
        },
        Mistake("a default value that is not a number", "A", "x", "default value is not a number") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x", .double) { $0.defaultValue = Double.nan }))
        },
        Mistake("a default decimal that is not a number", "A", "x", "default value is not a number") {
            let none = NSDecimalNumber.notANumber
            return NSManagedObjectModel(NSEntityDescription("A", attribute("x", .decimal) { $0.defaultValue = none }))
        },
        Mistake("a default date that is not a number", "A", "x", "default value is not a number") {
            let none = Date(timeIntervalSinceReferenceDate: .nan)
            return NSManagedObjectModel(NSEntityDescription("A", attribute("x", .date) { $0.defaultValue = none }))
        },
        Mistake("a default element that is not a number", "A", "x", "not a number in its element \"y\"") {
            let composite = NSCompositeAttributeDescription()
            (composite.name, composite.elements) = ("x", [attribute("y", .float)])
            composite.defaultValue = ["y": Float.nan]
            return NSManagedObjectModel(NSEntityDescription("A", composite))
        },
        Mistake("a default value out of range", "A", "x", "default value 70000 does not fit its type") {
            NSManagedObjectModel(NSEntityDescription("A", attribute("x", .integer16) { $0.defaultValue = 70000 }))
        },
        Mistake("an expression as a property", "A", "x", "expression description is for fetch requests") {
            let expression = NSExpressionDescription()
            expression.name = "x"
            return NSManagedObjectModel(NSEntityDescription("A", expression))
        },
    ]

    private static let relationshipMistakes = [
        Mistake("a relationship to nowhere", "A", "r", "no destination entity") {
            NSManagedObjectModel(NSEntityDescription("A", relationship("r")))
        },
        Mistake("a destination outside the model", "A", "r", "destination entity \"B\" is not in the model") {
            let outside = NSEntityDescription("B")
            let entity = NSEntityDescription("A", relationship("r", to: outside))
            // Keeps the other entity alive for as long as the model.
            entity.userInfo = ["outside": outside]
            return NSManagedObjectModel(entity)
        },
        Mistake("an inverse on another entity", "A", "r", "not a relationship of its destination \"B\"") {
            let (first, second) = (NSEntityDescription("A"), NSEntityDescription("B"))
            let (forth, back) = (relationship("r", to: second), relationship("s", to: first))
            connect(forth, back)
            first.properties = [forth, back]
            return NSManagedObjectModel(first, second)
        },
        Mistake("an inverse that does not lead back", "A", "r", "does not name it as its own inverse") {
            let (first, second) = (NSEntityDescription("A"), NSEntityDescription("B"))
            let (forth, back) = (relationship("r", to: second), relationship("s", to: first))
            forth.inverseRelationship = back
            first.properties = [forth]
            second.properties = [back]
            return NSManagedObjectModel(first, second)
        },
        Mistake("an inverse that leads elsewhere", "A", "r", "leads to another entity") {
            let (first, second) = (NSEntityDescription("A"), NSEntityDescription("B"))
            let (forth, back) = (relationship("r", to: second), relationship("s", to: second))
            connect(forth, back)
            first.properties = [forth]
            second.properties = [back]
            return NSManagedObjectModel(first, second)
        },
        Mistake("a transient end and a stored one", "A", "r", "must both be transient") {
            let (first, second) = (NSEntityDescription("A"), NSEntityDescription("B"))
            let (forth, back) = (relationship("r", to: second), relationship("s", to: first))
            connect(forth, back)
            forth.isTransient = true
            first.properties = [forth]
            second.properties = [back]
            return NSManagedObjectModel(first, second)
        },
    ]

    @Test(arguments: entityMistakes + propertyMistakes + relationshipMistakes)
    func `the error names the entity and the property`(_ mistake: Mistake) throws {
        let model = mistake.make()

        let error = try #require(throws: CocoaError.self) { try model.tryFreeze() }

        expectEqual(error.code, .coreData)
        expectEqual(error.userInfo[NSModelEntityNameErrorKey] as? String, mistake.entity)
        expectEqual(error.userInfo[NSModelPropertyNameErrorKey] as? String, mistake.property)
        expect(error.localizedDescription.contains(mistake.reason))
        for name in [mistake.entity, mistake.property].compactMap(\.self) {
            expect(error.localizedDescription.contains("\"\(name)\""))
        }
        expect(!model.isFrozen)
    }

    @Test func `an inheritance cycle is an error and not an endless loop`() throws {
        let (first, second) = (NSEntityDescription("A"), NSEntityDescription("B"))
        first.subentities = [second]
        second.subentities = [first]
        let model = NSManagedObjectModel(first, second)

        let error = try #require(throws: CocoaError.self) { try model.tryFreeze() }

        expect(error.localizedDescription.contains("inheritance cycle"))
        expectEqual(first.versionHash.count, 32)
        expect(first.properties.isEmpty && !first.isKindOf(entity: NSEntityDescription("C")))
    }

    @Test func `a refused model can be corrected and used`() throws {
        let entity = NSEntityDescription("A", attribute("x", .undefined))
        let model = NSManagedObjectModel(entity)
        expectThrows(CocoaError.self) { try model.tryFreeze() }

        (entity.properties[0] as? NSAttributeDescription)?.type = .integer64

        try model.tryFreeze()
        expect(model.isFrozen)
    }

    @Test(arguments: ["name", "größe", "_x", "a1", "名前", "isOpen"])
    func `names of letters, digits and underscores are fine`(_ name: String) throws {
        try NSManagedObjectModel(NSEntityDescription("A", attribute(name))).tryFreeze()
    }

    @Test func `default values of every type, as Swift and as Foundation has them, are fine`() throws {
        let values: [(NSAttributeDescription.AttributeType, Any)] = [
            (.integer16, 3), (.integer32, Int32.min), (.integer64, Int64.max), (.integer64, NSNumber(value: 3)),
            (.boolean, true), (.double, 1.5), (.double, 2), (.float, Float(0.5)), (.decimal, Decimal(3)),
            (.decimal, NSDecimalNumber(string: "1.5")), (.string, "a"), (.string, NSString("a")), (.date, Date()),
            (.date, NSDate()), (.binaryData, Data([1])), (.uuid, UUID()), (.uri, URL(fileURLWithPath: "/")),
            (.transformable, ["a"]),
        ]
        let attributes = values.enumerated().map { index, value in
            attribute("a\(index)", value.0) { $0.defaultValue = value.1 }
        }
        let entity = NSEntityDescription("A")
        entity.properties = attributes

        try NSManagedObjectModel(entity).tryFreeze()
    }

    @Test func `a relationship and its inverse may be the same`() throws {
        let entity = NSEntityDescription("Person")
        let friends = relationship("friends", to: entity)
        friends.inverseRelationship = friends
        entity.properties = [friends]

        try NSManagedObjectModel(entity).tryFreeze()
    }

    @Test func `an inverse may be inherited by the destination`() throws {
        let (owner, animal, dog) = (
            NSEntityDescription("Owner"), NSEntityDescription("Animal"), NSEntityDescription("Dog")
        )
        animal.subentities = [dog]
        let (dogs, keeper) = (relationship("dogs", to: dog), relationship("keeper", to: owner, maxCount: 1))
        connect(dogs, keeper)
        owner.properties = [dogs]
        animal.properties = [keeper]

        try NSManagedObjectModel(owner, animal).tryFreeze()
    }
}
