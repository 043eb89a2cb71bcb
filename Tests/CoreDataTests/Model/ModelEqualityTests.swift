import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

@Suite("Equal models")
struct ModelEqualityTests {
    @Test func `models made in the same way are equal, and so is a copy`() throws {
        let (model, other) = (libraryModel(), libraryModel())
        expect(model == other && model.hash == other.hash)
        let copy = try require(model.copy() as? NSManagedObjectModel)
        expect(copy == model && copy.hash == model.hash)
        for (name, entity) in model.entitiesByName {
            let same = try other.entity(name)
            expect(entity == same && entity.hash == same.hash)
            for (name, property) in entity.propertiesByName {
                let same = try require(same.propertiesByName[name])
                expect(property == same && property.hash == same.hash)
                expectEqual(property.copy() as? NSPropertyDescription, property)
            }
            expectEqual(entity.indexes, same.indexes)
            expectEqual(entity.copy() as? NSEntityDescription, entity)
        }
        model.freeze()
        expectEqual(model, other)
    }

    @Test func `two loads of one file are equal`() throws {
        let lines = """
            <entity name="A" representedClassName="A"><attribute name="n" optional="YES" attributeType="Integer 16" \
            defaultValueString="3"/><relationship name="b" optional="YES" maxCount="1" destinationEntity="B" \
            inverseName="a" inverseEntity="B"/></entity>
            <entity name="B"><relationship name="a" optional="YES" toMany="YES" destinationEntity="A" inverseName="b" \
            inverseEntity="A"/></entity>
            """
        let (first, second) = (try NSManagedObjectModel.parsing(lines), try NSManagedObjectModel.parsing(lines))
        expectEqual(first, second)
        try second.entity("A").attributesByName["n"]?.defaultValue = 4
        expect(first != second)
    }

    @Test(arguments: 0..<17) func `what differs in content is not equal`(_ number: Int) throws {
        let (model, other) = (libraryModel(), libraryModel())
        let book = try other.entity("Book")
        let title = try require(book.attributesByName["title"])
        let author = try require(book.relationshipsByName["author"])
        switch number {
        case 0: book.name = "X"
        case 1: book.managedObjectClassName = "X"
        case 2: book.isAbstract = true
        case 3: book.properties = [title]
        case 4: book.subentities = []
        case 5: book.uniquenessConstraints = []
        case 6: book.indexes = []
        case 7: book.versionHashModifier = "x"
        case 8: title.type = .double
        case 9: title.isOptional = false
        case 10: title.defaultValue = "x"
        case 11: author.deleteRule = .cascadeDeleteRule
        case 12: author.maxCount = 2
        case 13: title.setValidationPredicates([NSPredicate(value: false)], withValidationWarnings: ["no"])
        case 14: other.versionIdentifiers = ["2"]
        case 15: other.setFetchRequestTemplate(nil, forName: "CheapBooks")
        default: other.setEntities([book], forConfigurationName: "People")
        }
        expect(model != other)
    }

    @Test func `properties of one name are distinguished by kind and by entity`() {
        let (cat, dog) = (NSEntityDescription("Cat", attribute("name")), NSEntityDescription("Dog", attribute("name")))
        expect(cat.properties[0] != dog.properties[0])
        expectEqual(Set(cat.properties + dog.properties).count, 2)
        expectEqual(attribute("name"), attribute("name"))
        expect(attribute("name") != relationship("name"))
        expect(NSDerivedAttributeDescription() != NSAttributeDescription())
    }

    // MARK: - User info

    @Test func `user info may be set while the model is in use, and makes no difference`() throws {
        let (model, other) = (libraryModel(), libraryModel())
        model.freeze()
        let book = try model.entity("Book")
        let title = try require(book.attributesByName["title"])
        expect(book.userInfo?.isEmpty == true && title.userInfo?.isEmpty == true)
        book.userInfo = ["colour": "red"]
        title.userInfo?["colour"] = "blue"
        expectEqual(book.userInfo as? [String: String], ["colour": "red"])
        expectEqual(title.userInfo as? [String: String], ["colour": "blue"])
        let same = try other.entity("Book")
        expect(model == other && book == same)
        expectEqual((title.copy() as? NSAttributeDescription)?.userInfo as? [String: String], ["colour": "blue"])
    }
}
