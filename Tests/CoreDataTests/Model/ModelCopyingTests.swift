import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

@Suite("Copying and merging models")
struct ModelCopyingTests {
    // MARK: - Copying

    @Test func `a copy has everything, and refers to nothing of the original`() throws {
        let model = libraryModel()
        model.versionIdentifiers = ["1.0"]
        model.localizationDictionary = ["Entity/Book": "Bok"]

        let copy = try require(model.copy() as? NSManagedObjectModel)

        expectEqual(copy.entityVersionHashesByName, model.entityVersionHashesByName)
        expectEqual(copy.versionIdentifiers, ["1.0"])
        expectEqual(copy.localizationDictionary, ["Entity/Book": "Bok"])
        expectEqual(copy.configurations, [NSManagedObjectModel.defaultConfigurationName, "People"])
        expectEqual(copy.entities(forConfigurationName: "People")?.map(\.name), ["Author"])
        for (name, entity) in copy.entitiesByName {
            let original = try model.entity(name)
            expect(entity !== original && entity.model === copy)
            expectEqual(entity.superentity?.name, original.superentity?.name)
            for relationship in entity.relationshipsByName.values {
                expect(relationship.destinationEntity?.model === copy)
                expect(relationship.inverseRelationship?.inverseRelationship === relationship)
                expect(relationship.inverseRelationship?.entity.model === copy)
            }
        }
        let index = try require(copy.entity("Book").indexes.first)
        expect(index.entity === copy.entitiesByName["Book"])
        expect(index.elements.first?.property === copy.entitiesByName["Book"]?.propertiesByName["title"])
        expect(copy.fetchRequestTemplate(forName: "CheapBooks")?.entity === copy.entitiesByName["Book"])
        try copy.tryFreeze()
        expect(!model.isFrozen)
    }

    @Test func `a copied entity belongs to no model and still points at its destinations`() throws {
        let model = libraryModel()
        let book = try model.entity("Book")

        let copy = try require(book.copy() as? NSEntityDescription)

        expectEqual(copy.model, nil)
        expectEqual(copy.subentities.map(\.name), ["Novel"])
        expect(copy.subentities.first !== book.subentities.first)
        expect(copy.relationshipsByName["author"]?.destinationEntity === model.entitiesByName["Author"])
        expectEqual(copy.versionHash, book.versionHash)
        copy.name = "Leaflet"
        expectEqual(book.name, "Book")
    }

    @Test func `every kind of property copies all that it has`() throws {
        let plain = attribute("a", .transformable) {
            $0.isOptional = false
            $0.isIndexed = true
            $0.valueTransformerName = "T"
            $0.attributeValueClassName = "Color"
            $0.allowsExternalBinaryDataStorage = true
            $0.preservesValueInHistoryOnDeletion = true
            $0.defaultValue = "d"
            $0.renamingIdentifier = "old"
            $0.versionHashModifier = "m"
            $0.userInfo = ["k": "v"]
            $0.setValidationPredicates([NSPredicate(value: true)], withValidationWarnings: [1620])
        }
        let copy = try require(plain.copy() as? NSAttributeDescription)
        expect(!copy.isOptional && copy.isIndexed && copy.type == .transformable)
        expect(copy.valueTransformerName == "T" && copy.attributeValueClassName == "Color")
        expect(copy.allowsExternalBinaryDataStorage && copy.preservesValueInHistoryOnDeletion)
        expect(copy.defaultValue as? String == "d" && copy.renamingIdentifier == "old")
        expect(copy.userInfo?["k"] as? String == "v" && copy.validationWarnings as? [Int] == [1620])
        expect(copy.versionHash == plain.versionHash && copy.owner == nil)

        let composite = NSCompositeAttributeDescription()
        composite.elements = [attribute("x", .double)]
        let copiedComposite = try require(composite.copy() as? NSCompositeAttributeDescription)
        expect(copiedComposite.elements.map(\.name) == ["x"] && copiedComposite.elements[0] !== composite.elements[0])

        let derived = NSDerivedAttributeDescription()
        derived.derivationExpression = NSExpression(forKeyPath: "owner.name")
        let copiedDerived = try require(derived.copy() as? NSDerivedAttributeDescription)
        expectEqual(copiedDerived.derivationText, "owner.name")

        let friends = relationship("r", maxCount: 7)
        friends.minCount = 2
        friends.isOrdered = true
        friends.deleteRule = .denyDeleteRule
        let copiedFriends = try require(friends.copy() as? NSRelationshipDescription)
        expect(copiedFriends.maxCount == 7 && copiedFriends.minCount == 2)
        expect(copiedFriends.isOrdered && copiedFriends.isToMany && copiedFriends.deleteRule == .denyDeleteRule)

        let expression = NSExpressionDescription()
        expression.expression = NSExpression(forKeyPath: "price")
        expression.resultType = .decimal
        let copiedExpression = try require(expression.copy() as? NSExpressionDescription)
        expectEqual(copiedExpression.expression, expression.expression)
        expectEqual(copiedExpression.expressionResultType, .decimalAttributeType)

        let fetched = NSFetchedPropertyDescription()
        fetched.fetchRequest = NSFetchRequest(entityName: "A")
        let copiedFetched = try require(fetched.copy() as? NSFetchedPropertyDescription)
        expect(copiedFetched.fetchRequest !== fetched.fetchRequest)
        expectEqual(copiedFetched.fetchRequest?.entityName, "A")
    }

    // MARK: - Merging

    @Test func `merging finds destinations in the other model by name`() throws {
        // The author's model has no full entity Book: the relationship leads to an outline of it.
        let (author, outline) = (NSEntityDescription("Author"), NSEntityDescription("Book"))
        let book = NSEntityDescription("Book", attribute("title"))
        author.properties = [relationship("books", to: outline)]

        let merged = try require(
            withExtendedLifetime(outline) {
                NSManagedObjectModel(byMerging: [NSManagedObjectModel(author), NSManagedObjectModel(book)])
            }
        )

        expectEqual(Set(merged.entitiesByName.keys), ["Author", "Book"])
        let destination = try merged.entity("Author").relationshipsByName["books"]?.destinationEntity
        expect(destination === merged.entitiesByName["Book"])
    }

    @Test func `entities that are equal in two models count once, and configurations join`() throws {
        let (first, second) = (libraryModel(), libraryModel())
        second.setEntities(second.entities, forConfigurationName: "All")
        first.versionIdentifiers = ["1"]
        second.versionIdentifiers = ["2"]

        let merged = try require(NSManagedObjectModel(byMerging: [first, second]))

        expectEqual(merged.entities.count, 3)
        expectEqual(merged.entityVersionHashesByName, first.entityVersionHashesByName)
        expectEqual(merged.versionIdentifiers, ["1", "2"])
        expectEqual(Set(merged.configurations.dropFirst()), ["People", "All"])
        expect(
            Set(merged.entities(forConfigurationName: "All")?.compactMap(\.name) ?? []) == ["Author", "Book", "Novel"]
        )
        try merged.tryFreeze()
    }

    @Test func `entities that differ under one name cannot be merged`() {
        let first = NSManagedObjectModel(NSEntityDescription("A", attribute("x")))
        let second = NSManagedObjectModel(NSEntityDescription("A", attribute("x", .double)))

        expectEqual(NSManagedObjectModel(byMerging: [first, second]), nil)
    }

    @Test func `merging for a store picks the version that the store has`() throws {
        let old = NSManagedObjectModel(NSEntityDescription("A", attribute("x")), NSEntityDescription("B"))
        let new = NSManagedObjectModel(
            NSEntityDescription("A", attribute("x"), attribute("y")),
            NSEntityDescription("B")
        )
        let metadata = ["NSStoreModelVersionHashes": old.entityVersionHashesByName]

        let merged = try require(NSManagedObjectModel(byMerging: [new, old], forStoreMetadata: metadata))

        expectEqual(merged.entityVersionHashesByName, old.entityVersionHashesByName)
        expect(merged.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
        expect(!new.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
        expectEqual(NSManagedObjectModel(byMerging: [new], forStoreMetadata: metadata), nil)
        expectEqual(NSManagedObjectModel(byMerging: [old], forStoreMetadata: [:]), nil)
        expectEqual(new.entitiesThatDiffer(fromStoreMetadata: metadata, configuration: nil), ["A"])
    }

    @Test func `merging for a store takes one version that fits whole, with what its hashes leave out`() throws {
        func version(_ transformer: String?, _ depot: NSEntityDescription) -> NSManagedObjectModel {
            let tags = attribute("tags", .transformable)
            tags.valueTransformerName = transformer
            return NSManagedObjectModel(NSEntityDescription("Parcel", tags), depot)
        }
        func depot(_ names: String...) -> NSEntityDescription {
            let entity = NSEntityDescription("Depot")
            entity.properties = names.map { attribute($0) }
            return entity
        }
        let one = version(nil, depot("town"))
        let two = version("NSSecureUnarchiveFromData", depot("town", "street"))
        let larger = NSManagedObjectModel(
            NSEntityDescription("Parcel", attribute("tags", .transformable)),
            depot("town", "street"),
            NSEntityDescription("Lorry")
        )
        let metadata = ["NSStoreModelVersionHashes": two.entityVersionHashesByName]

        for models in [[one, two], [larger, one, two], [two, larger]] {
            let found = try require(NSManagedObjectModel(byMerging: models, forStoreMetadata: metadata))
            expectEqual(found, two)
            let tags = found.entitiesByName["Parcel"]?.attributesByName["tags"]
            expectEqual(tags?.valueTransformerName, "NSSecureUnarchiveFromData")
        }
        // If no model fits by itself, then a larger one gives all entities of the store, and no others.
        let part = try require(NSManagedObjectModel(byMerging: [one, larger], forStoreMetadata: metadata))
        expectEqual(part.entityVersionHashesByName, two.entityVersionHashesByName)
    }

    // MARK: - Configurations

    @Test func `a configuration names some of the entities`() throws {
        let model = libraryModel()
        let metadata = ["NSStoreModelVersionHashes": ["Author": try model.entity("Author").versionHash]]

        expectEqual(model.entities(forConfigurationName: nil)?.count, 3)
        expectEqual(model.entities(forConfigurationName: "PF_DEFAULT_CONFIGURATION_NAME")?.count, 3)
        expectEqual(model.entities(forConfigurationName: "People")?.map(\.name), ["Author"])
        expectEqual(model.entities(forConfigurationName: "Nobody"), nil)
        expect(model.isConfiguration(withName: "People", compatibleWithStoreMetadata: metadata))
        expect(!model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
        expect(!model.isConfiguration(withName: "Nobody", compatibleWithStoreMetadata: metadata))
        model.entities = [try model.entity("Book")]
        expectEqual(model.entities(forConfigurationName: "People")?.isEmpty, true)
    }

    // MARK: - Building

    @Test func `links follow the lists that are set`() throws {
        let (parent, other, child) = (
            NSEntityDescription("A"), NSEntityDescription("B"), NSEntityDescription("C", attribute("x"))
        )
        parent.subentities = [child]
        other.subentities = [child]
        expect(parent.subentities.isEmpty && child.superentity === other)
        other.subentities = []
        expectEqual(child.superentity, nil)

        let model = NSManagedObjectModel(parent, child)
        expect(child.managedObjectModel === model)
        model.entities = [parent]
        expectEqual(child.model, nil)

        let x = child.properties[0]
        child.properties = []
        expectEqual(x.owner, nil)
        parent.properties = [x]
        expect(x.entity === parent)
        expect(parent.renamingIdentifier == "A" && x.renamingIdentifier == "x")

        let elements = (0..<3).map { _ in NSFetchIndexElementDescription(property: x, collationType: .binary) }
        let index = NSFetchIndexDescription(name: "byX", elements: [elements[0]])
        expect(elements[0].indexDescription === index && index.entity == nil)
        index.elements = [elements[1]]
        index.elements.append(elements[2])
        expect(elements[1].indexDescription === index && elements[2].indexDescription === index)
        parent.indexes = [index]
        expect(index.entity === parent)
    }

    @Test func `inherited properties come first, and setting the list keeps them out`() {
        let (parent, child) = (NSEntityDescription("A", attribute("x")), NSEntityDescription("B", attribute("y")))
        parent.subentities = [child]

        child.properties += [attribute("z")]

        expectEqual(child.properties.map(\.name), ["x", "y", "z"])
        expectEqual(child.ownProperties.map(\.name), ["y", "z"])
        expect(child.propertiesByName["x"]?.entity === parent)
    }
}
