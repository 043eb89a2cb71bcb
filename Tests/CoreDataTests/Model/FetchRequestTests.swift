import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

@Suite("Fetch requests and templates")
struct FetchRequestTests {
    @Test func `a new request asks for everything, as objects`() {
        let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Book")

        expect(request.entityName == "Book" && request.entity == nil && request.predicate == nil)
        expect(request.requestType == .fetchRequestType && request.resultType == .managedObjectResultType)
        expect(request.fetchLimit == 0 && request.fetchOffset == 0 && request.fetchBatchSize == 0)
        expect(request.includesSubentities && request.includesPropertyValues && request.includesPendingChanges)
        expect(request.returnsObjectsAsFaults && !request.returnsDistinctResults)
        expect(!request.shouldRefreshRefetchedObjects && request.sortDescriptors == nil)
    }

    @Test func `a copy has all that the request says and is independent of it`() throws {
        let request = NSFetchRequest<NSDictionary>(entityName: "Book")
        request.predicate = NSPredicate(format: "price > 3")
        request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: false)]
        request.fetchLimit = 1
        request.fetchOffset = 2
        request.fetchBatchSize = 3
        request.resultType = .dictionaryResultType
        request.includesSubentities = false
        request.includesPropertyValues = false
        request.includesPendingChanges = false
        request.returnsObjectsAsFaults = false
        request.returnsDistinctResults = true
        request.shouldRefreshRefetchedObjects = true
        request.relationshipKeyPathsForPrefetching = ["author"]
        request.propertiesToFetch = ["title"]
        request.propertiesToGroupBy = ["title"]
        request.havingPredicate = NSPredicate(value: true)

        let copy = try require(request.copy() as? NSFetchRequest<NSDictionary>)

        expect(copy !== request && copy.entityName == "Book" && copy.predicate == request.predicate)
        expectEqual(copy.sortDescriptors?.map(\.ascending), [false])
        expect(copy.fetchLimit == 1 && copy.fetchOffset == 2 && copy.fetchBatchSize == 3)
        expect(copy.resultType == .dictionaryResultType && copy.returnsDistinctResults)
        expect(!copy.includesSubentities && !copy.includesPropertyValues && !copy.includesPendingChanges)
        expect(!copy.returnsObjectsAsFaults && copy.shouldRefreshRefetchedObjects)
        expectEqual(copy.relationshipKeyPathsForPrefetching, ["author"])
        expectEqual(copy.propertiesToFetch as? [String], ["title"])
        expect(copy.propertiesToGroupBy as? [String] == ["title"] && copy.havingPredicate != nil)
        copy.fetchLimit = 9
        expectEqual(request.fetchLimit, 1)
    }

    @Test func `an entity that is set wins over the name`() {
        let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Book")
        let entity = NSEntityDescription("Author")

        request.entity = entity

        expectEqual(request.entityName, "Author")
        expect(request.description.contains("Author"))
    }

    @Test func `a template's variables are replaced in a copy`() throws {
        let model = libraryModel()

        let request = try require(
            model.fetchRequestFromTemplate(
                withName: "CheapBooks",
                substitutionVariables: ["PREFIX": "A", "PRICE": 10]
            )
        )

        expectEqual(request.predicate?.evaluate(with: ["title": "Alpha", "price": 3] as [String: Any]), true)
        expectEqual(request.predicate?.evaluate(with: ["title": "Beta", "price": 3] as [String: Any]), false)
        expectEqual(request.predicate?.evaluate(with: ["title": "Alpha", "price": 30] as [String: Any]), false)
        expectEqual(request.entity?.name, "Book")
        expectEqual(model.fetchRequestTemplate(forName: "CheapBooks")?.predicate?.formatText.contains("$PREFIX"), true)
        expectEqual(model.fetchRequestFromTemplate(withName: "None", substitutionVariables: [:]), nil)
    }

    @Test func `a template that has no variables needs none, and can then be changed`() throws {
        let model = libraryModel()
        let all = NSFetchRequest<NSFetchRequestResult>(entityName: "Book")
        model.setFetchRequestTemplate(all, forName: "All")
        all.fetchLimit = 5
        model.freeze()

        let request = try require(model.fetchRequestFromTemplate(withName: "All", substitutionVariables: [:]))
        request.fetchLimit = 2

        // The model keeps a copy of what it was given.
        expectEqual(model.fetchRequestTemplate(forName: "All")?.fetchLimit, 0)
        expectEqual(Set(model.fetchRequestTemplatesByName.keys), ["All", "CheapBooks"])
    }

    @Test func `a missing variable stops the program and is named`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = libraryModel().fetchRequestFromTemplate(withName: "CheapBooks", substitutionVariables: ["PREFIX": "A"])
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("$PRICE"))
    }
}
