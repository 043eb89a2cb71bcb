import CoreData
import Expectations
import TestSupport
import Testing

// The code of Apple's articles on fetching, as their readers would write it.

@Suite("Fetching as the articles show it")
struct FetchingArticleTests {
    // MARK: - Fetching managed objects

    @Test(arguments: StoreKind.allCases)
    func `a request has an entity, a predicate and sort descriptors`(kind: StoreKind) throws {
        let names = try VenueGuide(kind).read { context in
            let entity = try require(NSEntityDescription.entity(forEntityName: "Venue", in: context))
            let request = NSFetchRequest<Venue>()
            request.entity = entity
            let minimum = 10
            request.predicate = NSPredicate(format: "(name LIKE[c] '?A*') AND (price > %@)", minimum)
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            return try context.fetch(request).map(\.name)
        }
        expectEqual(names, ["Cais"])
    }

    @Test(arguments: StoreKind.allCases)
    func `sort descriptors are applied in the order in which they appear`(kind: StoreKind) throws {
        let found = try VenueGuide(kind).read { context in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [
                NSSortDescriptor(key: "price", ascending: false), NSSortDescriptor(key: "distance", ascending: true),
            ]
            return try context.fetch(request).map { "\($0.price) \($0.distance)" }
        }
        expectEqual(found, ["30 0.5", "20 1.0", "20 2.5", "10 1.5", "10 4.0", "5 8.0"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a transient property cannot be in a predicate, and the error names it`(kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let error = expectThrows(CocoaError.self) {
            try guide.read { context in
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: "note == 'x'")
                _ = try context.fetch(request)
            }
        }
        expectEqual(error?.localizedDescription.contains("note"), true)
    }

    @Test(arguments: StoreKind.allCases)
    func `self == shows whether an object was deleted from the store`(kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let id = try guide.read { context in
            try require(try context.fetch(NSFetchRequest<City>(entityName: "City")).first { $0.name == "Faro" })
                .objectID
        }
        let deleting = guide.stack.context("deleting")
        let asking = guide.stack.context("asking")
        func count(_ target: Any) throws -> Int {
            try asking.performAndWait {
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: "self == %@", target)
                return try asking.fetch(request).count
            }
        }
        try expectEqual(count(id), 1)
        let object = asking.performAndWait { asking.object(with: id) }
        try expectEqual(count(object), 1)
        try deleting.performAndWait {
            deleting.delete(deleting.object(with: id))
            try deleting.save()
        }
        try expectEqual(count(id), 0)
        try expectEqual(count(object), 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `self IN finds several objects in one fetch`(kind: StoreKind) throws {
        let names = try VenueGuide(kind).read { context in
            let all = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            let wanted = all.filter { $0.price == 10 }
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "self IN %@", wanted)
            let byObject = try context.fetch(request).compactMap(\.name).sorted()
            request.predicate = NSPredicate(format: "self IN %@", wanted.map(\.objectID))
            let byID = try context.fetch(request).compactMap(\.name).sorted()
            return [byObject, byID]
        }
        expectEqual(names, [["Adega", "Doca"], ["Adega", "Doca"]])
    }

    @Test(arguments: StoreKind.allCases)
    func `a super-entity stands for its sub-entities, also where it is abstract`(kind: StoreKind) throws {
        let graphic = GuideModel.entity("Graphic", NSManagedObject.self)
        graphic.isAbstract = true
        graphic.properties = [GuideModel.attribute("x", .double)]
        let circle = GuideModel.entity("Circle", NSManagedObject.self)
        circle.properties = [GuideModel.attribute("radius", .double)]
        let line = GuideModel.entity("Line", NSManagedObject.self)
        graphic.subentities = [circle, line]
        let model = NSManagedObjectModel()
        model.entities = [graphic, circle, line]
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            for (name, x) in [("Circle", 3.0), ("Line", 1.0), ("Line", 2.0)] {
                NSEntityDescription.insertNewObject(forEntityName: name, into: context).setValue(x, forKey: "x")
            }
            try context.save()
        }
        let other = stack.context()
        try other.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Graphic")
            request.sortDescriptors = [NSSortDescriptor(key: "x", ascending: true)]
            let names = try other.fetch(request).map { $0.entity.name }
            expectEqual(names, ["Line", "Line", "Circle"])
            request.includesSubentities = false
            let none = try other.count(for: request)
            expectEqual(none, 0)
        }
    }

    // MARK: - Fetching specific property values

    @Test(arguments: StoreKind.allCases)
    func `distinct values of an attribute`(kind: StoreKind) throws {
        let values = try VenueGuide(kind).read { context in
            let request = NSFetchRequest<NSDictionary>()
            request.entity = NSEntityDescription.entity(forEntityName: "Venue", in: context)
            request.resultType = .dictionaryResultType
            request.returnsDistinctResults = true
            request.propertiesToFetch = ["price"]
            return try context.fetch(request).compactMap { $0["price"] as? Int16 }.sorted()
        }
        expectEqual(values, [5, 10, 20, 30])
    }

    @Test(arguments: StoreKind.allCases)
    func `attribute values that satisfy a function, several at once`(kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context in
            func description(_ function: String, _ key: String, _ type: NSAttributeType) -> NSExpressionDescription {
                let description = NSExpressionDescription()
                description.name = function + key
                description.expression = NSExpression(
                    forFunction: function,
                    arguments: [NSExpression(forKeyPath: key)]
                )
                description.expressionResultType = type
                return description
            }
            let request = NSFetchRequest<NSDictionary>()
            request.entity = NSEntityDescription.entity(forEntityName: "Venue", in: context)
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = [
                description("min:", "createdAt", .dateAttributeType),
                description("max:", "price", .integer16AttributeType),
            ]
            let objects = try context.fetch(request)
            expectEqual(objects.count, 1)
            expectEqual(
                objects.first?.value(forKey: "min:createdAt") as? Date,
                Date(timeIntervalSinceReferenceDate: 100)
            )
            expectEqual(objects.first?.value(forKey: "max:price") as? Int16, 30)
        }
    }

    // MARK: - Five ways to a fetch request

    private static func modelWithTemplate() -> NSManagedObjectModel {
        let model = GuideModel.make()
        let template = NSFetchRequest<NSFetchRequestResult>()
        template.entity = model.entitiesByName["Venue"]
        template.predicate = NSPredicate(format: "name == $NAME")
        model.setFetchRequestTemplate(template, forName: "venueFR")
        let all = NSFetchRequest<NSFetchRequestResult>()
        all.entity = model.entitiesByName["Venue"]
        model.setFetchRequestTemplate(all, forName: "FetchRequest")
        return model
    }

    @Test(arguments: StoreKind.allCases)
    func `there are five ways to make a request`(kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.modelWithTemplate())
        let context = stack.context()
        try context.performAndWait {
            VenueGuide.fill(context)
            try context.save()

            let fetchRequest1 = NSFetchRequest<Venue>()
            fetchRequest1.entity = try require(NSEntityDescription.entity(forEntityName: "Venue", in: context))
            let fetchRequest2 = NSFetchRequest<Venue>(entityName: "Venue")
            let fetchRequest3: NSFetchRequest<Venue> = Venue.fetchRequest()
            let model = stack.coordinator.managedObjectModel
            let fetchRequest4 = try require(model.fetchRequestTemplate(forName: "FetchRequest"))
            let fetchRequest5 = try require(
                model.fetchRequestFromTemplate(withName: "venueFR", substitutionVariables: ["NAME": "Bica"])
            )

            for request in [fetchRequest1, fetchRequest2, fetchRequest3] {
                let found = try context.fetch(request)
                expectEqual(found.count, 6)
            }
            let four = try context.fetch(fetchRequest4)
            expectEqual(four.count, 6)
            let five = try context.fetch(fetchRequest5).map { ($0 as? Venue)?.name }
            expectEqual(five, ["Bica"])
        }
    }

    @Test func `a template of a model in use cannot be changed`() async {
        await #expect(processExitsWith: .failure) {
            let model = Self.modelWithTemplate()
            _ = NSPersistentStoreCoordinator(managedObjectModel: model)
            model.fetchRequestTemplate(forName: "FetchRequest")?.predicate = NSPredicate(format: "price == 1")
        }
    }

    // MARK: - Result types, counts and calculations

    @Test(arguments: StoreKind.allCases)
    func `a count is a result type, and a call`(kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context in
            let request = NSFetchRequest<NSNumber>(entityName: "Venue")
            request.resultType = .countResultType
            request.predicate = NSPredicate(format: "%K == %@", "price", 10)
            let counted = try context.fetch(request).first?.intValue
            expectEqual(counted, 2)
            let called = try context.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
            expectEqual(called, 6)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a sum is calculated in the store`(kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context in
            let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            let sum = NSExpressionDescription()
            sum.name = "sumDeals"
            sum.expression = NSExpression(forFunction: "sum:", arguments: [NSExpression(forKeyPath: \Venue.price)])
            sum.expressionResultType = .integer32AttributeType
            request.propertiesToFetch = [sum]
            let result = try require(try context.fetch(request).first)
            expectEqual((result["sumDeals"] as? NSNumber)?.intValue, 95)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs can be fetched, and used in another context`(kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let ids = try guide.read { context in
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
            request.resultType = .managedObjectIDResultType
            request.sortDescriptors = [NSSortDescriptor(key: "distance", ascending: true)]
            return try context.fetch(request)
        }
        let names = try guide.read { context in
            try ids.map { (try context.existingObject(with: $0) as? Venue)?.name }
        }
        expectEqual(names, ["Cais", nil, "Adega", "Bica", "Doca", "Elevador"])
    }

    // MARK: - Predicates and sorting

    @Test(arguments: StoreKind.allCases)
    func `predicates are combined, and reversed orders are made of descriptors`(kind: StoreKind) throws {
        let found = try VenueGuide(kind).read { context in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSCompoundPredicate(andPredicateWithSubpredicates: [
                NSPredicate(format: "city.name == %@", "Lisbon"),
                NSCompoundPredicate(orPredicateWithSubpredicates: [
                    NSPredicate(format: "distance < %f", 0.75), NSPredicate(format: "price == 10"),
                ]),
            ])
            let byName = NSSortDescriptor(key: "name", ascending: true, selector: "localizedStandardCompare:")
            request.sortDescriptors = [try require(byName.reversedSortDescriptor as? NSSortDescriptor)]
            return try context.fetch(request).map(\.name)
        }
        expectEqual(found, ["Doca", "Cais"])
    }

    // MARK: - Asynchronous fetching

    @Test(arguments: StoreKind.allCases)
    func `an asynchronous request calls its block with the final result`(kind: StoreKind) async throws {
        let guide = try VenueGuide(kind)
        let context = guide.stack.context("asynchronous")
        let names: [String] = try await withCheckedThrowingContinuation { continuation in
            context.perform {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: false)]
                request.fetchLimit = 2
                let asynchronous = NSAsynchronousFetchRequest<Venue>(fetchRequest: request) { result in
                    continuation.resume(returning: (result.finalResult ?? []).compactMap(\.name))
                }
                do {
                    try context.execute(asynchronous)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        expectEqual(names, ["Elevador", "Doca"])
    }
}
