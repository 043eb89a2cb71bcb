import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

@Suite("A model in use cannot be changed")
struct ModelFreezingTests {
    /// A change of a frozen model.
    ///
    /// It runs in a separate process, so a number picks it.
    private static func change(_ number: Int) {
        let model = libraryModel()
        model.freeze()
        let book = model.entitiesByName["Book"] ?? NSEntityDescription()
        let title = book.attributesByName["title"] ?? NSAttributeDescription()
        let author = book.relationshipsByName["author"] ?? NSRelationshipDescription()
        switch number {
        case 0: model.entities = []
        case 1: model.setEntities([], forConfigurationName: "X")
        case 2: model.setFetchRequestTemplate(nil, forName: "CheapBooks")
        case 3: model.versionIdentifiers = ["2"]
        case 4: model.localizationDictionary = [:]
        case 5: book.name = "X"
        case 6: book.managedObjectClassName = "X"
        case 7: book.isAbstract = true
        case 8: book.properties = []
        case 9: book.subentities = []
        case 10: book.uniquenessConstraints = []
        case 11: book.indexes = []
        case 12: book.versionHashModifier = "x"
        case 13: title.name = "x"
        case 14: title.type = .double
        case 15: title.isOptional = false
        case 16: title.defaultValue = "x"
        case 17: title.setValidationPredicates(nil, withValidationWarnings: nil)
        case 18: author.deleteRule = .cascadeDeleteRule
        case 19: author.destinationEntity = nil
        case 20: author.inverseRelationship = nil
        case 21: book.indexes[0].name = "x"
        case 22: book.indexes[0].elements[0].isAscending = false
        case 23: model.fetchRequestTemplatesByName["CheapBooks"]?.fetchLimit = 3
        case 24: model.fetchRequestTemplate(forName: "CheapBooks")?.predicate = nil
        default: break
        }
    }

    @Test(arguments: 0..<25) func `every change stops the program and says why`(_ number: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [number] in
            Self.change(number)
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("in use"))
    }

    /// A change of one more property of a part of a frozen model.
    private static func changePart(_ number: Int) {
        let model = libraryModel()
        let book = model.entitiesByName["Book"] ?? NSEntityDescription()
        let derived = NSDerivedAttributeDescription()
        (derived.name, derived.type) = ("loud", .string)
        derived.derivationExpression = NSExpression(format: "uppercase:(title)")
        let composite = NSCompositeAttributeDescription()
        (composite.name, composite.elements) = ("place", [attribute("shelf")])
        let fetched = NSFetchedPropertyDescription()
        (fetched.name, fetched.fetchRequest) = ("cheap", NSFetchRequest(entityName: "Book"))
        let computed = NSExpressionDescription()
        (computed.name, computed.expression) = ("short", NSExpression(format: "lowercase:(title)"))
        computed.resultType = .string
        let element = NSFetchIndexElementDescription(property: computed, collationType: .binary)
        book.indexes.append(NSFetchIndexDescription(name: "byShort", elements: [element]))
        book.properties += [derived, composite, fetched]
        model.freeze()
        let title = book.attributesByName["title"] ?? NSAttributeDescription()
        let author = book.relationshipsByName["author"] ?? NSRelationshipDescription()
        switch number {
        case 0: book.renamingIdentifier = "Volume"
        case 1: book.compoundIndexes = [["title"]]
        case 2: title.isTransient = true
        case 3: title.isIndexed = true
        case 4: title.renamingIdentifier = "heading"
        case 5: title.versionHashModifier = "x"
        case 6: title.attributeValueClassName = "NSNumber"
        case 7: title.valueTransformerName = "x"
        case 8: title.allowsExternalBinaryDataStorage = true
        case 9: title.preservesValueInHistoryOnDeletion = true
        case 10: author.minCount = 1
        case 11: author.maxCount = 2
        case 12: author.isOrdered = true
        case 13: derived.derivationExpression = nil
        case 14: composite.elements = []
        case 15: composite.elements[0].name = "x"
        case 16: fetched.fetchRequest = nil
        case 17: fetched.fetchRequest?.fetchLimit = 1
        case 18: computed.expression = nil
        case 19: computed.resultType = .double
        case 20: book.indexes[0].elements = []
        case 21: book.indexes[0].partialIndexPredicate = NSPredicate(value: true)
        case 22: element.collationType = .rTree
        default: break
        }
    }

    @Test(arguments: 0..<23) func `every property of each part stops the program too`(_ number: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [number] in
            Self.changePart(number)
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("in use"), "\(number): \(message)")
    }

    @Test func `freezing an invalid model stops the program with the reason`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            NSManagedObjectModel(NSEntityDescription("A", relationship("r"))).freeze()
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("property \"r\" of entity \"A\": the relationship has no destination entity"))
    }

    @Test func `misuse while building stops the program with a way out`() async {
        let second = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let entity = NSEntityDescription("A")
            let first = NSManagedObjectModel(entity)
            withExtendedLifetime(first) { _ = NSManagedObjectModel(entity) }
        }
        let property = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let name = attribute("name")
            let first = NSEntityDescription("A", name)
            withExtendedLifetime(first) { _ = NSEntityDescription("B", name) }
        }
        let configuration = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            NSManagedObjectModel().setEntities([NSEntityDescription("A")], forConfigurationName: "C")
        }
        let warnings = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            attribute("name").setValidationPredicates([NSPredicate(value: true)], withValidationWarnings: [])
        }
        for (result, part) in [
            (second, "an entity has one model"), (property, "a property belongs to one entity"),
            (configuration, "is not in the model"), (warnings, "give one for each"),
        ] {
            let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            expect(message.contains(part))
        }
    }

    @Test func `a copy of a frozen model can be changed, and the original stays`() throws {
        let model = libraryModel()
        try model.tryFreeze()
        let copy = try require(model.copy() as? NSManagedObjectModel)

        try copy.entity("Book").properties.append(attribute("pages", .integer32))
        copy.setFetchRequestTemplate(nil, forName: "CheapBooks")

        try copy.tryFreeze()
        try expect(copy.entity("Novel").attributesByName["pages"] != nil)
        try expectEqual(model.entity("Novel").attributesByName["pages"], nil)
        expect(model.fetchRequestTemplate(forName: "CheapBooks") != nil)
    }

    @Test func `a copy of a template can be changed`() throws {
        let model = libraryModel()
        try model.tryFreeze()
        let template = try require(model.fetchRequestTemplate(forName: "CheapBooks"))

        let copy = try require(template.copy() as? NSFetchRequest<NSFetchRequestResult>)
        copy.fetchLimit = 3

        expectEqual(template.fetchLimit, 0)
        expect(copy.entity === template.entity)
    }

    @Test func `freezing twice, and from many threads, is freezing once`() async throws {
        let model = libraryModel()
        try await withThrowingTaskGroup(of: FrozenModel.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    try model.tryFreeze()
                    return model.frozen
                }
            }
            for try await frozen in group {
                expect(frozen === model.frozen)
            }
        }
    }

    @Test func `entities are numbered depth first, by name without case`() throws {
        let (zoo, animal, cat, dog) = (
            NSEntityDescription("zoo"), NSEntityDescription("Animal"), NSEntityDescription("cat"),
            NSEntityDescription("Dog")
        )
        animal.isAbstract = true
        animal.subentities = [dog, cat]
        let model = NSManagedObjectModel(zoo, animal)
        model.freeze()

        expectEqual(model.frozen.entities.map(\.name), ["Animal", "cat", "Dog", "zoo"])
        expectEqual(animal.frozen.subtree, 1...3)
        expectEqual(animal.concreteNumbers, [2, 3])
        expect(dog.rootEntity === animal)
        expect(model.frozen.entity(numbered: 4) === zoo)
        expect(model.frozen.entity(numbered: 0) == nil && model.frozen.entity(numbered: 5) == nil)
        expect(cat.isKindOf(entity: animal) && !animal.isKindOf(entity: cat) && !zoo.isKindOf(entity: animal))
    }
}
