import CoreData
import Expectations
import TestSupport
import Testing

/// Two descriptions are equal if all of their facts are, and a copy has all facts.
@Suite("Equal parts of models")
struct PartEqualityTests {
    /// Checks that each change alone makes a difference, which a copy has as well, and which the same change removes.
    private func expectDifferences<Part: NSObject & NSCopying>(_ make: () -> Part, _ changes: [(Part) -> Void]) throws {
        expect(make() == make() && make().hash == make().hash)
        for (number, change) in changes.enumerated() {
            let (plain, changed, other) = (make(), make(), make())
            change(changed)
            expect(changed != plain && plain != changed, "\(Part.self), change \(number)")
            let copy = try require(changed.copy() as? Part)
            expect(copy == changed && copy.hash == changed.hash && copy != plain, "copy of \(Part.self), \(number)")
            change(other)
            expect(other == changed && other.hash == changed.hash, "\(Part.self), change \(number) twice")
        }
    }

    private static var whatever: NSPredicate { NSPredicate(format: "SELF != nil") }

    @Test func `of attributes`() throws {
        let changes: [(NSAttributeDescription) -> Void] = [
            { $0.name = "b" }, { $0.isOptional = false }, { $0.isTransient = true }, { $0.type = .integer64 },
            { $0.isIndexed = true }, { $0.renamingIdentifier = "z" }, { $0.versionHashModifier = "z" },
            { $0.defaultValue = "z" }, { $0.allowsExternalBinaryDataStorage = true },
            { $0.preservesValueInHistoryOnDeletion = true }, { $0.valueTransformerName = "z" },
            { $0.attributeValueClassName = "Z" },
            { $0.setValidationPredicates([Self.whatever], withValidationWarnings: ["no"]) },
        ]
        try expectDifferences({ attribute("a") }, changes)
        try expectDifferences(
            { () -> NSAttributeDescription in
                let checked = attribute("a")
                checked.setValidationPredicates([Self.whatever], withValidationWarnings: ["no"])
                return checked
            },
            [
                { $0.setValidationPredicates([Self.whatever], withValidationWarnings: ["never"]) },
                { $0.setValidationPredicates([NSPredicate(value: true)], withValidationWarnings: ["no"]) },
                { $0.setValidationPredicates([Self.whatever, Self.whatever], withValidationWarnings: ["no", "no"]) },
            ]
        )
    }

    @Test func `of derived and composite attributes`() throws {
        try expectDifferences(
            { () -> NSDerivedAttributeDescription in
                let derived = NSDerivedAttributeDescription()
                (derived.name, derived.type) = ("d", .string)
                derived.derivationExpression = NSExpression(format: "canonical:(a)")
                return derived
            },
            [
                { $0.derivationExpression = NSExpression(format: "uppercase:(a)") },
                { $0.derivationExpression = NSExpression(format: "canonical:(b)") }, { $0.derivationExpression = nil },
            ]
        )
        try expectDifferences(
            { () -> NSCompositeAttributeDescription in
                let composite = NSCompositeAttributeDescription()
                composite.name = "c"
                composite.elements = [attribute("x"), attribute("y", .double)]
                return composite
            },
            [
                { $0.elements = [] }, { $0.elements[0].name = "z" }, { $0.elements[1].type = .float },
                { $0.elements.append(attribute("z")) }, { $0.elements[0].defaultValue = "z" },
            ]
        )
    }

    @Test func `of relationships`() throws {
        let (author, book) = (NSEntityDescription("Author"), NSEntityDescription("Book"))
        let (one, two) = (relationship("one", to: author), relationship("two", to: author))
        try expectDifferences(
            { () -> NSRelationshipDescription in
                let books = relationship("books", to: book)
                books.inverseRelationship = one
                return books
            },
            [
                { $0.destinationEntity = author }, { $0.destinationEntity = nil }, { $0.inverseRelationship = two },
                { $0.inverseRelationship = nil }, { $0.maxCount = 3 }, { $0.minCount = 1 },
                { $0.deleteRule = .denyDeleteRule }, { $0.isOrdered = true }, { $0.isOptional = false },
            ]
        )
    }

    @Test func `of indexes and their elements`() throws {
        let (title, price) = (attribute("title"), attribute("price", .decimal))
        func element(_ property: NSPropertyDescription = title) -> NSFetchIndexElementDescription {
            NSFetchIndexElementDescription(property: property, collationType: .binary)
        }
        try expectDifferences(
            { element() },
            [{ $0.collationType = .rTree }, { $0.isAscending = false }]
        )
        expect(element() != element(price))
        try expectDifferences(
            { NSFetchIndexDescription(name: "byTitle", elements: [element()]) },
            [
                { $0.name = "other" }, { $0.elements = [] }, { $0.elements = [element(price)] },
                { $0.elements = [element(), element(price)] }, { $0.elements = [element(price), element()] },
                { $0.partialIndexPredicate = Self.whatever }, { $0.elements[0].isAscending = false },
            ]
        )
    }

    @Test func `of entities`() throws {
        try expectDifferences(
            { () -> NSEntityDescription in
                let book = NSEntityDescription("Book", attribute("title"), attribute("price", .decimal))
                book.managedObjectClassName = "Book"
                return book
            },
            [
                { $0.name = "Novel" }, { $0.managedObjectClassName = "Novel" }, { $0.isAbstract = true },
                { $0.renamingIdentifier = "z" }, { $0.versionHashModifier = "z" }, { $0.properties.removeLast() },
                { $0.properties.append(attribute("z")) }, { $0.properties[0].name = "z" },
                { $0.subentities = [NSEntityDescription("Novel")] }, { $0.uniquenessConstraints = [["title"]] },
                { $0.uniquenessConstraints = [["title", "price"]] }, { $0.compoundIndexes = [["title", "price"]] },
                { $0.indexes = [NSFetchIndexDescription(name: "i", elements: nil)] },
            ]
        )
    }

    /// The order of properties says nothing, and the application may change its facts at any time.
    @Test func `are equal in any order, and whatever the program notes of them`() {
        let book = NSEntityDescription("Book", attribute("title"), attribute("price", .decimal))
        let other = NSEntityDescription("Book", attribute("price", .decimal), attribute("title"))
        other.userInfo = ["z": 1]
        other.properties[0].userInfo = ["z": 1]
        expect(book == other && book.hash == other.hash)
    }

    @Test func `of fetch requests in models, each option counts`() throws {
        typealias Request = NSFetchRequest<NSFetchRequestResult>
        let changes: [(Request) -> Void] = [
            { $0.predicate = nil }, { $0.predicate = NSPredicate(format: "price < 3") },
            { $0.sortDescriptors = [.by("title")] }, { $0.fetchLimit = 1 }, { $0.fetchOffset = 1 },
            { $0.fetchBatchSize = 1 }, { $0.resultType = .managedObjectIDResultType },
            { $0.includesSubentities = false }, { $0.includesPropertyValues = false },
            { $0.includesPendingChanges = false }, { $0.returnsObjectsAsFaults = false },
            { $0.returnsDistinctResults = true }, { $0.shouldRefreshRefetchedObjects = true },
            { $0.relationshipKeyPathsForPrefetching = ["author"] }, { $0.propertiesToFetch = ["title"] },
            { $0.propertiesToGroupBy = ["title"] }, { $0.havingPredicate = Self.whatever },
            { $0.evaluationTimeLimit = 3 },
        ]
        func request(_ change: ((Request) -> Void)?) -> Request {
            let request = Request(entityName: "Book")
            request.predicate = NSPredicate(format: "title BEGINSWITH $PREFIX")
            change?(request)
            return request
        }
        func model(_ change: ((Request) -> Void)?) -> NSManagedObjectModel {
            let model = libraryModel()
            model.setFetchRequestTemplate(request(change), forName: "some")
            return model
        }
        func property(_ change: ((Request) -> Void)?) -> NSFetchedPropertyDescription {
            let property = NSFetchedPropertyDescription()
            (property.name, property.fetchRequest) = ("some", request(change))
            return property
        }
        try expectDifferences({ property(nil) }, [{ $0.fetchRequest = nil }])
        for (number, change) in changes.enumerated() {
            expect(model(change) != model(nil) && model(change) == model(change), "change \(number)")
            expect(property(change) != property(nil) && property(change) == property(change), "change \(number)")
            let copy = try require(model(change).copy() as? NSManagedObjectModel)
            expect(copy == model(change), "copy with change \(number)")
        }
    }
}
