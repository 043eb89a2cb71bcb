import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Fetched properties")
struct FetchedPropertyTests {
    /// The guide's model with fetched properties of cities.
    private func model(_ properties: [String: (predicate: String, facts: [AnyHashable: Any]?)]) throws
        -> NSManagedObjectModel
    {
        let model = GuideModel.make()
        let city = try require(model.entitiesByName["City"])
        for (name, content) in properties.sorted(by: { $0.key < $1.key }) {
            let property = NSFetchedPropertyDescription()
            property.name = name
            property.userInfo = content.facts
            let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
            request.predicate = NSPredicate(format: content.predicate)
            request.sortDescriptors = [.by("distance")]
            property.fetchRequest = request
            city.properties.append(property)
        }
        return model
    }

    private func read(
        _ kind: StoreKind,
        _ properties: [String: (predicate: String, facts: [AnyHashable: Any]?)],
        _ body: (City, NSManagedObjectContext) throws -> Void
    ) throws {
        let stack = try Stack(kind, model: try model(properties))
        let context = stack.context()
        try context.performAndWait {
            VenueGuide.fill(context)
            try context.save()
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Porto'")
            try body(try require(try context.fetch(request).first), context)
        }
    }

    private func names(_ value: Any?) -> [String?]? { (value as? [Venue])?.map(\.name) }

    @Test(arguments: StoreKind.allCases)
    func `FETCH_SOURCE is the object, and its properties can be named`(_ kind: StoreKind) throws {
        let properties: [String: (predicate: String, facts: [AnyHashable: Any]?)] = [
            "own": ("city == $FETCH_SOURCE", nil), "others": ("city != $FETCH_SOURCE AND city != nil", nil),
            "namesakes": ("city.name == $FETCH_SOURCE.name AND price > 10", nil),
        ]
        try read(kind, properties) { porto, _ in
            expectEqual(names(porto.value(forKey: "own")), ["Adega", "Bica"])
            expectEqual(names(porto.value(forKey: "others")), ["Cais", nil, "Doca"])
            expectEqual(names(porto.value(forKey: "namesakes")), ["Bica"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `FETCHED_PROPERTY is the description, with the facts that the model gives it`(_ kind: StoreKind) throws {
        let properties: [String: (predicate: String, facts: [AnyHashable: Any]?)] = [
            "dear": ("price >= $FETCHED_PROPERTY.userInfo.limit", ["limit": 20]),
            "Adega": ("name == $FETCHED_PROPERTY.name", nil),
        ]
        try read(kind, properties) { porto, _ in
            expectEqual(names(porto.value(forKey: "dear")), ["Cais", nil, "Bica"])
            expectEqual(names(porto.value(forKey: "Adega")), ["Adega"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes count, and the answer is that of the moment`(_ kind: StoreKind) throws {
        try read(kind, ["own": ("city == $FETCH_SOURCE", nil)]) { porto, context in
            let new = Venue(context: context)
            new.name = "Nova"
            new.city = porto
            expectEqual(names(porto.value(forKey: "own")), ["Nova", "Adega", "Bica"])
            new.city = nil
            expectEqual(names(porto.value(forKey: "own")), ["Adega", "Bica"])
            expectEqual(names(porto.value(forKeyPath: "own")), ["Adega", "Bica"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetched property may give dictionaries or a number`(_ kind: StoreKind) throws {
        let model = GuideModel.make()
        let city = try require(model.entitiesByName["City"])
        let sums = NSFetchedPropertyDescription()
        sums.name = "sums"
        let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = [aggregate("sum", "sum:", "price")]
        request.predicate = NSPredicate(format: "city == $FETCH_SOURCE")
        sums.fetchRequest = request
        city.properties.append(sums)
        let context = try Stack(kind, model: model).context()
        try context.performAndWait {
            VenueGuide.fill(context)
            try context.save()
            let cities = NSFetchRequest<City>(entityName: "City")
            cities.sortDescriptors = [.by("name")]

            let results = try context.fetch(cities).map { $0.value(forKey: "sums") as? [NSDictionary] }

            expectEqual(results.map { $0?.first?["sum"] as? Int }, [0, 60, 30])
        }
    }
}
