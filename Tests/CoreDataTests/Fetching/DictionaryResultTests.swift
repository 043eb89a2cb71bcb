import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Dictionary results")
struct DictionaryResultTests {
    @Test(arguments: StoreKind.allCases)
    func `attributes come under their names, and nil is left out`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", ["name", "price"]) {
            $0.sortDescriptors = [.by("distance")]
        }

        expectEqual(results.map { $0["name"] as? String }, ["Cais", nil, "Adega", "Bica", "Doca", "Elevador"])
        expectEqual(results.map { $0["price"] as? Int }, [30, 20, 10, 20, 10, 5])
        expectEqual(results.map(\.count), [2, 1, 2, 2, 2, 2])
    }

    @Test(arguments: StoreKind.allCases)
    func `without propertiesToFetch all attributes are given, but no transient ones and no relationships`(
        _ kind: StoreKind
    ) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", nil) {
            $0.predicate = NSPredicate(format: "name == 'Adega'")
        }

        let result = try require(results.first)
        let keys = Set(result.allKeys.compactMap { $0 as? String })
        expect(
            results.count == 1 && keys.isSuperset(of: ["name", "price", "distance", "createdAt", "rating", "favorite"])
        )
        expect(keys.isDisjoint(with: ["note", "city", "tags"]))
    }

    @Test(arguments: StoreKind.allCases)
    func `a result behaves as any dictionary does`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", ["name", "price"]) {
            $0.sortDescriptors = [.by("distance")]
        }

        // The second venue has no name.
        let (first, second) = (results[0], results[1])
        expect(first["name"] as? String == "Cais" && first[NSString(string: "name")] as? String == "Cais")
        expect(second["name"] == nil && second["other"] == nil && second[NSNumber(value: 1)] == nil)
        expect(second.object(forKey: "price") as? Int == 20 && second.value(forKey: "price") as? Int == 20)
        expectEqual(Set(first.allKeys.compactMap { $0 as? String }), Set(["name", "price"]))
        expect(second.count == second.allKeys.count && second.count == second.allValues.count)
        expectEqual(second.count, Array(second).count)

        let plain = NSDictionary(objects: first.allValues, forKeys: first.allKeys.map { NSString(string: "\($0)") })
        expect(first == plain && plain == first && first != second && first.hash == plain.hash)
        let swift = (first as Any) as? [String: Any]
        expectEqual(swift?["price"] as? Int, 30)
        expectEqual((first.copy() as? NSDictionary), plain)
        let mutable = try require(first.mutableCopy() as? NSMutableDictionary)
        mutable["name"] = "Rua"
        expect(mutable["name"] as? String == "Rua" && first["name"] as? String == "Cais")
        let data = try NSKeyedArchiver.archivedData(withRootObject: first, requiringSecureCoding: false)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSDictionary.self, from: data)
        expectEqual(back, plain)
    }

    @Test(arguments: StoreKind.allCases)
    func `each result has the keys of its own values, however many sets of keys there are`(_ kind: StoreKind) throws {
        let names = ["name", "createdAt", "rating", "code", "site", "map", "colour"]
        let context = try Stack(kind).context()
        try context.performAndWait {
            let code = UUID()
            for number in 0..<128 {
                let venue = Venue(context: context)
                venue.seats = Int32(number)
                if number & 1 != 0 { venue.name = "Venue \(number), with a name that is longer than others" }
                if number & 2 != 0 { venue.createdAt = Date(timeIntervalSinceReferenceDate: Double(number)) }
                if number & 4 != 0 { venue.rating = Decimal(number) / 4 }
                if number & 8 != 0 { venue.code = code }
                if number & 16 != 0 { venue.site = URL(string: "https://example.org/\(number)") }
                if number & 32 != 0 { venue.map = Data([UInt8(number)]) }
                if number & 64 != 0 { venue.colour = [number] }
            }
            try context.save()

            let request = NSFetchRequest<[String: Any]>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = names + ["seats"]
            request.sortDescriptors = [.by("seats")]
            // The second time each set of keys is known already.
            for _ in 0..<2 {
                let results = try context.fetch(request)
                expectEqual(results.count, 128)
                for (number, result) in results.enumerated() {
                    let present = names.enumerated().filter { number & (1 << $0.offset) != 0 }.map(\.element)
                    expectEqual(Set(result.keys), Set(present + ["seats"]))
                    expectEqual(result["seats"] as? Int, number)
                    let name = number & 1 == 0 ? nil : "Venue \(number), with a name that is longer than others"
                    expectEqual(result["name"] as? String, name)
                    expectEqual(result["rating"] as? Decimal, number & 4 == 0 ? nil : Decimal(number) / 4)
                    expectEqual((result["colour"] as? NSArray)?[0] as? Int, number & 64 == 0 ? nil : number)
                    var changed = result
                    changed["added"] = 1
                    changed["seats"] = nil
                    expectEqual(changed.count, result.count)
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `values have the types that key-value coding gives`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let names = [
            "name", "price", "distance", "createdAt", "favorite", "rating", "code", "site", "map", "seats", "visits",
            "score", "colour",
        ]
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            venue.name = "Adega"
            venue.price = -7
            venue.distance = 1.25
            venue.createdAt = Date(timeIntervalSinceReferenceDate: 12.5)
            venue.favorite = true
            venue.rating = Decimal(string: "4.5")
            venue.code = UUID()
            venue.site = URL(string: "https://example.org/a")
            venue.map = Data([1, 2, 3])
            venue.seats = 70_000
            venue.visits = 1 << 40
            venue.score = 0.5
            venue.colour = ["red", "green"] as NSArray
            try context.save()

            let request = NSFetchRequest<[String: Any]>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = names
            let result = try require(try context.fetch(request).first)
            let object = try require(try context.dictionaries("Venue", names).first)

            for name in names {
                let expected = try require(venue.value(forKey: name))
                let value = try require(result[name], "\(name)")
                expect(type(of: value) == type(of: expected), "\(name)")
                expectEqual(value as? AnyHashable, expected as? AnyHashable, "\(name)")
                // A dictionary of Foundation's keeps its values as Foundation's objects.
                expect(object[name] != nil, "\(name)")
            }
            expect(result["price"] as? Int16 == -7 && result["visits"] as? Int == 1 << 40)
            expect(result["favorite"] as? Bool == true && object["favorite"] as? Bool == true)
            expectEqual(object["colour"] as? NSArray, ["red", "green"] as NSArray)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-one relationship is given as the ID of its destination`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let results = try context.dictionaries("Venue", ["name", "city"]) { $0.sortDescriptors = [.by("name")] }

            let cities = try context.fetch(NSFetchRequest<City>(entityName: "City"))
            let porto = try require(cities.first { $0.name == "Porto" })
            expectEqual(results[1]["city"] as? NSManagedObjectID, porto.objectID)
            expect(results[1]["city"] as? NSManagedObjectID === porto.objectID)
            expect(results.last?["name"] as? String == "Elevador" && results.last?["city"] == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a destination's ID names its own entity, not the one that the model declares`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let bar = Bar(context: context)
            let licence = Licence(context: context)
            licence.venue = bar
            try context.save()

            let results = try context.dictionaries("Licence", ["venue"])
            let owners = try context.dictionaries("Licence", ["venue.licence"])

            let id = try require(results.first?["venue"] as? NSManagedObjectID)
            expect(id == bar.objectID && id.entity.name == "Bar")
            expectEqual(owners.first?["venue.licence"] as? NSManagedObjectID, licence.objectID)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `key paths over to-one relationships are keys as they are written`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", ["name", "city.name", "city.population"]) {
            $0.predicate = NSPredicate(format: "name != nil")
            $0.sortDescriptors = [.by("city.name", ascending: false), .by("name")]
        }

        expectEqual(results.map { $0["name"] as? String }, ["Adega", "Bica", "Cais", "Doca", "Elevador"])
        expectEqual(results.map { $0["city.name"] as? String }, ["Porto", "Porto", "Lisbon", "Lisbon", nil])
        expectEqual(results.map { $0["city.population"] as? Int }, [230_000, 230_000, 550_000, 550_000, nil])
    }

    @Test(arguments: StoreKind.allCases)
    func `property descriptions stand for their names`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let entity = try require(NSEntityDescription.entity(forEntityName: "Venue", in: context))
            let properties = try ["name", "city"].map { try require(entity.propertiesByName[$0]) }

            let results = try context.dictionaries("Venue", properties) {
                $0.predicate = NSPredicate(format: "price == 30")
            }

            expect(results.count == 1 && results[0]["name"] as? String == "Cais")
            expectEqual((results[0]["city"] as? NSManagedObjectID)?.entity.name, "City")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the object's own ID is the evaluated object`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let own = NSExpressionDescription()
            own.name = "id"
            own.expression = NSExpression.expressionForEvaluatedObject()
            own.expressionResultType = .objectIDAttributeType

            let results = try context.dictionaries("Venue", [own, "objectID"]) { $0.sortDescriptors = [.by("price")] }

            let ids = results.compactMap { $0["id"] as? NSManagedObjectID }
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
            request.resultType = .managedObjectIDResultType
            request.sortDescriptors = [.by("price")]
            try expectEqual(ids, context.fetch(request))
            expect(ids.first?.entity.name == "Bar" && ids.last?.entity.name == "Venue")
            expectEqual(results.compactMap { $0["objectID"] as? NSManagedObjectID }, ids)
        }
    }

    // MARK: - Computed values

    @Test(arguments: StoreKind.allCases)
    func `several aggregates of all objects come in one dictionary`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "Venue",
            [
                aggregate("sum", "sum:", "price", .integer32), aggregate("least", "min:", "distance", .double),
                aggregate("newest", "max:", "createdAt", .date), aggregate("mean", "average:", "price", .double),
                aggregate("names", "count:", "name", .integer64), aggregate("all", "count:", "objectID", .integer64),
                aggregate("best", "max:", "rating", .decimal), aggregate("last", "max:", "name", .string),
            ]
        )

        let result = try require(results.first)
        expectEqual(results.count, 1)
        expect(result["sum"] as? Int == 95 && result["least"] as? Double == 0.5)
        expectEqual(result["newest"] as? Date, Date(timeIntervalSinceReferenceDate: 500))
        expectEqual(result["mean"] as? Double, 95.0 / 6)
        expect(result["names"] as? Int == 5 && result["all"] as? Int == 6)
        expect((result["best"] as? NSDecimalNumber)?.decimalValue == 5 && result["last"] as? String == "Elevador")
    }

    @Test(arguments: StoreKind.allCases)
    func `a result type that is not set is that of the values`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "Venue",
            [
                aggregate("newest", "max:", "createdAt"), aggregate("best", "max:", "rating"),
                aggregate("sum", "sum:", "price"), aggregate("first", "min:", "name"),
            ]
        )

        expectEqual(results.first?["newest"] as? Date, Date(timeIntervalSinceReferenceDate: 500))
        expect(results.first?["best"] is NSDecimalNumber && results.first?["sum"] as? Int == 95)
        expectEqual(results.first?["first"] as? String, "Adega")
    }

    @Test(arguments: StoreKind.allCases)
    func `aggregates of nothing are zero or missing`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "Venue",
            [
                aggregate("sum", "sum:", "price"), aggregate("total", "sum:", "distance"),
                aggregate("mean", "average:", "price"), aggregate("count", "count:", "name"),
                aggregate("max", "max:", "price"),
            ]
        ) { $0.predicate = NSPredicate(format: "price > 1000") }

        expectEqual(results.count, 1)
        expect(results.first?["sum"] as? Int == 0 && results.first?["total"] as? Double == 0)
        expect(results.first?["mean"] as? Double == 0 && results.first?["count"] as? Int == 0)
        expect(results.first?["max"] == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `functions may be nested, and take arithmetic`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "Venue",
            [
                computed("double", "price * 2", .integer32), computed("shout", "uppercase(name)", .string),
                computed("root", "sqrt(abs(from:subtract:(price, 14)))", .double),
                computed("dear", "TERNARY(price > 15, 'dear', 'cheap')", .string),
            ].map { $0 }
        ) { $0.sortDescriptors = [.by("price"), .by("name")] }

        expectEqual(results.map { $0["double"] as? Int }, [10, 20, 20, 40, 40, 60])
        expectEqual(results.map { $0["shout"] as? String }, ["ELEVADOR", "ADEGA", "DOCA", nil, "BICA", "CAIS"])
        expectEqual(results.map { $0["root"] as? Double }.prefix(3), [3, 2, 2])
        expectEqual(results.map { $0["dear"] as? String }, ["cheap", "cheap", "cheap", "dear", "dear", "dear"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what is computed of a to-many relationship is computed for each object`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "City",
            [
                "name", aggregate("count", "count:", "venues", .integer64),
                computed("dearest", "venues.@max.price", .integer16),
                computed("good", "SUBQUERY(venues, $v, $v.rating > 4).@count", .integer64),
            ]
        ) { $0.sortDescriptors = [.by("count", ascending: false), .by("name")] }

        expectEqual(results.map { $0["name"] as? String }, ["Lisbon", "Porto", "Faro"])
        expectEqual(results.map { $0["count"] as? Int }, [3, 2, 0])
        expectEqual(results.map { $0["dearest"] as? Int }, [30, 20, nil])
        expectEqual(results.map { $0["good"] as? Int }, [1, 1, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `an aggregate may be taken of what is computed for each object`(_ kind: StoreKind) throws {
        let most = NSExpressionDescription()
        most.name = "most"
        most.expression = NSExpression(
            forFunction: "max:",
            arguments: [
                NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: "venues")])
            ]
        )

        let results = try VenueGuide(kind).dictionaries("City", [most, computed("people", "sum(population) / 10")])

        expect(results.count == 1 && results[0]["most"] as? Int == 3 && results[0]["people"] as? Int == 84_000)
    }

    // MARK: - Order and window

    @Test(arguments: StoreKind.allCases)
    func `results can be sorted by the name of what is computed`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", ["name", computed("ratio", "distance / price")]) {
            $0.predicate = NSPredicate(format: "name != nil")
            $0.sortDescriptors = [.by("ratio", ascending: false)]
        }

        expectEqual(results.map { $0["name"] as? String }, ["Elevador", "Doca", "Adega", "Bica", "Cais"])
    }

    @Test(arguments: StoreKind.allCases)
    func `limit and offset count results`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let window = try guide.dictionaries("Venue", ["price"]) {
            $0.sortDescriptors = [.by("price", ascending: false)]
            $0.fetchLimit = 2
            $0.fetchOffset = 1
        }
        let rest = try guide.dictionaries("Venue", ["price"]) {
            $0.sortDescriptors = [.by("price")]
            $0.fetchOffset = 4
        }

        expectEqual(window.map { $0["price"] as? Int }, [20, 20])
        expectEqual(rest.map { $0["price"] as? Int }, [20, 30])
    }

    @Test(arguments: StoreKind.allCases)
    func `sub-entities count unless the request leaves them out`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let sum = aggregate("sum", "sum:", "price")

        try expectEqual(guide.dictionaries("Venue", [sum]) { $0.includesSubentities = false }.first?["sum"] as? Int, 90)
        try expectEqual(
            guide.dictionaries("Bar", [sum, aggregate("beers", "sum:", "beers")]).first?["beers"] as? Int,
            7
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes do not count`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let venues = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            for venue in venues { venue.price = 1000 }
            context.delete(try require(venues.first))
            let new = Venue(context: context)
            new.price = 1000

            let sums = try context.dictionaries("Venue", [aggregate("sum", "sum:", "price")])
            let prices = try context.dictionaries("Venue", ["price"]) { $0.includesPendingChanges = true }

            expect(sums.first?["sum"] as? Int == 95 && prices.count == 6)
            try context.save()
            try expect(
                context.dictionaries("Venue", [aggregate("sum", "sum:", "price")]).first?["sum"] as? Int == 6000
            )
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a composite attribute is a dictionary, and its elements are key paths`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: EveryKindModel.make())
        let context = stack.context()
        try context.performAndWait {
            let entity = try require(NSEntityDescription.entity(forEntityName: "Person", in: context))
            let person = NSManagedObject(entity: entity, insertInto: context)
            person.setValue(["street": "Rua Nova", "number": 7], forKey: "address")
            try context.save()

            let whole = try context.dictionaries("Person", ["address", "address.number"])
            let all = try context.dictionaries("Person", nil)

            let address = try require(whole.first?["address"] as? [String: Any])
            expect(address["street"] as? String == "Rua Nova" && address["number"] as? Int == 7)
            expectEqual(whole.first?["address.number"] as? Int, 7)
            expectEqual((all.first?["address"] as? [String: Any])?["number"] as? Int, 7)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `data that may lie in a file is given, whatever its size`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: EveryKindModel.make())
        let context = stack.context()
        try context.performAndWait {
            let entity = try require(NSEntityDescription.entity(forEntityName: "Person", in: context))
            let scans = [Data([1, 2]), Data(repeating: 7, count: 500_000)]
            for (serial, scan) in scans.enumerated() {
                let person = NSManagedObject(entity: entity, insertInto: context)
                person.setValue(scan, forKey: "scan")
                person.setValue(serial, forKey: "serial")
            }
            try context.save()

            let results = try context.dictionaries("Person", ["scan"]) { $0.sortDescriptors = [.by("serial")] }

            expectEqual(results.map { $0["scan"] as? Data }, scans)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `decimals keep their digits in memory, and those of a double in a file`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            venue.rating = Decimal(string: "10.11")
            try context.save()

            let rating = try context.dictionaries("Venue", ["rating"]).first?["rating"] as? NSDecimalNumber
            let sum = try context.dictionaries("Venue", [aggregate("sum", "sum:", "rating", .decimal)]).first?["sum"]

            expectEqual(rating?.decimalValue, Decimal(string: "10.11"))
            expectEqual((sum as? NSDecimalNumber)?.decimalValue, Decimal(string: "10.11"))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a sum beyond 64 bits is a floating-point number`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for _ in 0..<2 { Venue(context: context).visits = .max }
            try context.save()

            let sum = try context.dictionaries("Venue", [aggregate("sum", "sum:", "visits", .integer64)]).first?["sum"]

            expectEqual(sum as? Double, 2 * Double(Int.max))
        }
    }
}
