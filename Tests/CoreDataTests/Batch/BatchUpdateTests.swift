import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Batch updates")
struct BatchUpdateTests {
    @Test
    func `requests, entity names and default result types are as declared (CS-160)`() {
        let entity = GuideModel.make().entitiesByName["Venue"]!  // The model has it.
        let update = NSBatchUpdateRequest(entityName: "Venue")
        expect(update.entityName == "Venue" && update.requestType == .batchUpdateRequestType)
        expect(update.resultType == .statusOnlyResultType && update.includesSubentities)
        expect(NSBatchUpdateRequest(entity: entity).entity === entity)
        let insert = NSBatchInsertRequest(entityName: "Venue", objects: [])
        expect(insert.entityName == "Venue" && insert.entity == nil && insert.requestType == .batchInsertRequestType)
        expect(insert.resultType == .statusOnly && insert.objectsToInsert?.isEmpty == true)
        expect(NSBatchInsertRequest(entity: entity, objects: []).entity === entity)
        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
        fetch.fetchLimit = 3
        let delete = NSBatchDeleteRequest(fetchRequest: fetch)
        expect(delete.requestType == .batchDeleteRequestType && delete.resultType == .resultTypeStatusOnly)
        fetch.fetchLimit = 4
        expect(delete.fetchRequest.fetchLimit == 3 && delete.fetchRequest !== fetch)
        expectEqual(NSBatchUpdateRequestResultType.updatedObjectIDsResultType.rawValue, 1)
        expectEqual(NSBatchDeleteRequestResultType(rawValue: 2), .resultTypeCount)
        expectEqual(NSBatchInsertRequestResultType(rawValue: 1), .objectIDs)
        let copy = update.copy() as? NSBatchUpdateRequest
        expect(copy?.entityName == "Venue" && copy !== update)
    }

    @Test(arguments: StoreKind.allCases)
    func `constants and expressions are stored, of the rows that match, with status, count or IDs (CS-165)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeNumberedVenues(5)
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.predicate = NSPredicate(format: "price >= 3")
        request.propertiesToUpdate = ["name": "new", "price": NSExpression(format: "price * 10 + 1")]
        try expectEqual(stack.execute(request).value as? Bool, true)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["new 31", "new 41", "v0 0", "v1 1", "v2 2"])
        request.predicate = NSPredicate(format: "name BEGINSWITH 'v'")
        request.propertiesToUpdate = ["price": NSNull()]
        request.resultType = .updatedObjectsCountResultType
        try expectEqual(stack.execute(request).value as? Int, 3)
        request.predicate = nil
        request.propertiesToUpdate = ["favorite": true]
        request.resultType = .updatedObjectIDsResultType
        let updated = try require(try stack.execute(request).value as? [NSManagedObjectID])
        expect(Set(updated) == Set(ids) && updated.count == 5)
        try expectEqual(stack.all(Venue.self) { "\($0.favorite)" }, Array(repeating: "true", count: 5))
        // An expression that is a constant is its value, also where no other expression could stand.
        let none = NSExpression(forConstantValue: nil)
        request.propertiesToUpdate = [
            "name": NSExpression(forConstantValue: "same"), "price": NSExpression(forConstantValue: 7), "city": none,
        ]
        try expectEqual((stack.execute(request).value as? [NSManagedObjectID])?.count, 5)
        try expectEqual(stack.all(Venue.self, nameAndPrice), Array(repeating: "same 7", count: 5))
        request.propertiesToUpdate = ["name": none]
        _ = try stack.execute(request)
        try expectEqual(stack.all(Venue.self) { $0.name ?? "none" }, Array(repeating: "none", count: 5))
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `what the request names is changed, and nothing else`(_ kind: StoreKind) throws {
        let options: [AnyHashable: Any] = kind == .memory ? [:] : [NSPersistentHistoryTrackingKey: true]
        let stack = try Stack(kind, model: GuideModel.make(), options: options)
        let city = try stack.storeCity("Porto")
        try stack.storeNumberedVenues(3) { _, venue, context in
            venue.city = context.object(with: city) as? City
            venue.photos = ["x", "y"].map { title in
                let photo = Photo(context: context)
                photo.title = "\(title) of \(venue.name ?? "")"
                return photo
            }
            venue.photos.swapAt(0, 1)
        }
        let before = try stack.state()
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.predicate = NSPredicate(format: "price == 2")
        request.propertiesToUpdate = ["price": NSExpression(format: "price * 10"), "city": NSNull()]
        try stack.execute(request)
        try expectEqual(
            stack.state().differences(from: before, ignoring: StoreState.history),
            [
                "+ City Porto.venues -> [Venue v0, Venue v1]", "+ Venue v2.price = 20",
                "- City Porto.venues -> [Venue v0, Venue v1, Venue v2]", "- Venue v2.city -> City Porto",
                "- Venue v2.price = 2",
            ]
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `a computed number is what an expression comes to in memory, also beyond its type`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.store(Venue.self) { venue, _ in
            (venue.price, venue.distance, venue.visits) = (7, 2.75, Int.max)
            venue.setValue(2_147_483_646, forKey: "seats")
        }
        func shown(_ name: String) throws -> String? {
            try stack.all(Venue.self) { venue in "\(venue.value(forKey: name) ?? "nil")" }.first
        }
        // In this order; nil for an update that is refused.
        let cases: [(String, String, String?)] = [
            ("price", "price + 1", "8"), ("price", "price * price - 60", "4"), ("price", "price * 10000", nil),
            ("price", "distance + 1", "3"), ("price", "seats - 2147483640", "6"), ("seats", "seats + 1", "2147483647"),
            ("seats", "seats + 1", nil), ("seats", "visits - seats", nil), ("visits", "visits + 1", nil),
            ("visits", "visits + 1 - 2", nil), ("distance", "visits + 1", "9.223372036854776e+18"),
            ("distance", "visits * visits", "8.507059173023462e+37"), ("visits", "visits - 1", "9223372036854775806"),
            ("distance", "price + 1", "7.0"), ("distance", "distance * 1.5 - price", "4.5"),
            ("distance", "distance * 1e-300 * 1e-300", "0.0"), ("distance", "(price + 4.5) * 1e308", "inf"),
            ("price", "distance + 1", nil), ("distance", "distance - distance", nil),
            ("distance", "distance + 1", "inf"), ("distance", "price - 6", "0.0"), ("seats", "nil + 1", "nil"),
            ("seats", "seats + 1", "nil"), ("price", "seats + price", "nil"), ("price", "7 - 5", "2"),
        ]
        for (name, expression, wanted) in cases {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = [name: NSExpression(format: expression)]
            let before = try shown(name)
            if let wanted {
                _ = try stack.execute(request)
                try expectEqual(shown(name), wanted, "\(name) = \(expression)")
            } else {
                let error = #expect(throws: CocoaError.self, "\(expression)") { try stack.execute(request) }
                expectEqual(error?.code, .persistentStoreOperation)
                try expectEqual(shown(name), before, "\(name) = \(expression)")
            }
        }
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `an expression that comes to no number for a row is refused, and nothing changes`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context in
            for (name, distance) in [("a", 1.0), ("b", -Double.infinity)] {
                let venue = Venue(context: context)
                (venue.name, venue.price, venue.distance, venue.visits) = (name, 0, distance, 5)
            }
            try context.save()
        }
        func shown() throws -> [String] { try stack.all(Venue.self) { "\($0.name ?? "") \($0.distance) \($0.visits)" } }
        let before = try shown()
        // The first venue alone has a number for some.
        let refused = [
            ("distance", "distance - distance"), ("distance", "distance / price"), ("distance", "price / price"),
            ("distance", "sqrt(distance)"), ("distance", "distance * price"), ("distance", "distance * 0"),
            ("distance", "1 + abs(distance - distance)"), ("visits", "visits / price"),
            ("visits", "modulus:by:(visits, price)"), ("distance", "city.venues.@count / price"),
        ]
        for (name, expression) in refused {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = [name: NSExpression(format: expression)]
            let error = #expect(throws: CocoaError.self, "\(expression)") { try stack.execute(request) }
            expectEqual(error?.code, .persistentStoreOperation, "\(expression)")
            try expectEqual(shown(), before, "\(name) = \(expression)")
        }
        // Nil of nil, and a division that is not made.
        for (name, expression) in [("seats", "seats / visits"), ("visits", "TERNARY(price == 0, 7, visits / price)")] {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = [name: NSExpression(format: expression)]
            _ = try stack.execute(request)
        }
        try expectEqual(shown(), before.map { $0.replacing(" 5", with: " 7") })
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a value made of other rows is made of what they were before the update`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Porto"
            for price in 1...3 {
                let venue = Venue(context: context)
                (venue.name, venue.price, venue.city) = ("v\(price)", Int16(price), city)
            }
            try context.save()
        }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.propertiesToUpdate = ["price": NSExpression(format: "city.venues.@sum.price")]
        _ = try stack.execute(request)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["v1 6", "v2 6", "v3 6"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a value made of rows of the same table is made of what they were before the update`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            // The one whose value the next one takes is changed first.
            let users = try [("leaf", 4), ("mid", 2), ("boss", 1)].map { name, age in
                let user = User(context: context)
                user.email = name
                user.name = name
                user.age = Int16(age)
                try context.save()
                return user
            }
            (users[0].boss, users[1].boss) = (users[1], users[2])
            try context.save()
        }
        let request = NSBatchUpdateRequest(entityName: "User")
        request.propertiesToUpdate = ["age": NSExpression(format: "reports.@sum.age")]
        _ = try stack.execute(request)
        try expectEqual(stack.all(User.self) { "\($0.name ?? "") \($0.age)" }, ["boss 2", "leaf 0", "mid 4"])
    }

    @Test(arguments: StoreKind.allCases)
    func `every kind of attribute takes a constant and NULL`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeNumberedVenues(1)[0]
        let code = UUID()
        let request = NSBatchUpdateRequest(entityName: "Venue")
        let values: [AnyHashable: Any] = [
            "name": "n", "price": 7, "distance": 2.5, "createdAt": Date(timeIntervalSinceReferenceDate: 99),
            "favorite": true, "rating": Decimal(string: "12.5")!,  // A number.
            "code": code, "site": URL(string: "https://a.b")!,  // A URL.
            "map": Data([1, 2]), "seats": 70_000, "visits": Int64.max, "score": Float(1.5),
            "colour": ["red"] as NSArray,
        ]
        request.propertiesToUpdate = values
        try stack.execute(request)
        func described(_ venue: Venue) -> String {
            """
            \(venue.name ?? "-") \(venue.price) \(venue.distance) \(venue.createdAt?.timeIntervalSinceReferenceDate ?? 0) \
            \(venue.favorite) \(venue.rating ?? 0) \(venue.code?.uuidString ?? "-") \(venue.site?.absoluteString ?? "-") \
            \(venue.map?.count ?? 0) \(venue.seats) \(venue.visits) \(venue.score) \(venue.colour?[0] as? String ?? "-")
            """
        }
        let all = try stack.read(id, Venue.self, described)
        expectEqual(all, "n 7 2.5 99.0 true 12.5 \(code.uuidString) https://a.b 2 70000 \(Int64.max) 1.5 red")
        request.propertiesToUpdate = values.mapValues { _ in NSNull() }
        try stack.execute(request)
        try expectEqual(stack.read(id, Venue.self, described), "- 0 0.0 0.0 false 0 - - 0 0 0 0.0 -")
    }

    @Test(arguments: StoreKind.allCases)
    func `rows of sub-entities are changed too, unless the request leaves them out (CS-165)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeNumberedVenues(1)
        _ = try stack.store(Bar.self) { bar, _ in bar.name = "bar" }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.propertiesToUpdate = ["price": 5]
        request.includesSubentities = false
        try stack.execute(request)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["bar 0", "v0 5"])
        request.includesSubentities = true
        request.propertiesToUpdate = ["price": 6]
        try stack.execute(request)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["bar 6", "v0 6"])
        let bars = NSBatchUpdateRequest(entityName: "Bar")
        bars.propertiesToUpdate = ["beers": NSExpression(format: "beers + price")]
        try stack.execute(bars)
        try expectEqual(stack.all(Bar.self) { "\($0.beers)" }, ["9"])
    }

    @Test(arguments: StoreKind.allCases)
    func `expressions see the rows as they were, also through relationships and collections`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let city = try stack.storeCity("Porto", population: 100)
        try stack.storeNumberedVenues(3) { _, venue, context in venue.city = context.object(with: city) as? City }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.predicate = NSPredicate(format: "city.name == 'Porto' AND city.venues.@count == 3")
        request.propertiesToUpdate = [
            "visits": NSExpression(format: "city.population + price"),
            "distance": NSExpression(format: "city.venues.@count * 1.5"),
            "price": NSExpression(format: "SUBQUERY(city.venues, $v, $v.price > 0).@count"),
        ]
        request.resultType = .updatedObjectsCountResultType
        try expectEqual(stack.execute(request).value as? Int, 3)
        let found = try stack.all(Venue.self) { "\($0.name ?? "") \($0.visits) \($0.distance) \($0.price)" }
        expectEqual(found, ["v0 100 4.5 2", "v1 101 4.5 2", "v2 102 4.5 2"])
    }

    @Test(arguments: StoreKind.allCases)
    func `loaded objects keep their values, and their next save finds the conflict (CS-166, 172)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeNumberedVenues(1)[0]
        let version = try stack.version(of: id)
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.price, 0)
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = ["price": 9]
            try context.execute(request)
            expect(venue.price == 0 && !context.hasChanges)
            venue.name = "mine"
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [venue])
            context.refresh(venue, mergeChanges: true)
            expect(venue.price == 9 && venue.name == "mine")
            try context.save()
        }
        try expectEqual(stack.version(of: id), version + 2)
        try expectEqual(stack.read(id, Venue.self, nameAndPrice), "mine 9")
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-one relationship takes an object, an ID or NULL (CS-170)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (porto, faro) = (try stack.storeCity("Porto"), try stack.storeCity("Faro"))
        try stack.storeNumberedVenues(2) { _, venue, context in venue.city = context.object(with: porto) as? City }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.propertiesToUpdate = ["city": faro]
        try stack.execute(request)
        try expectEqual(stack.read(faro, City.self) { $0.venues.count }, 2)
        try expectEqual(stack.read(porto, City.self) { $0.venues.count }, 0)
        let context = stack.context()
        try context.performAndWait {
            request.predicate = NSPredicate(format: "name == 'v1'")
            request.propertiesToUpdate = ["city": try context.get(porto, City.self)]
            try context.execute(request)
        }
        try expectEqual(stack.all(Venue.self) { $0.city?.name ?? "" }, ["Faro", "Porto"])
        request.predicate = nil
        request.propertiesToUpdate = ["city": NSNull()]
        try stack.execute(request)
        try expectEqual(stack.all(Venue.self) { $0.city?.name ?? "nil" }, ["nil", "nil"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `members of an ordered relationship come behind the others, and the owners' versions advance`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let venues = try stack.storeNumberedVenues(2) { number, venue, context in
            venue.photos = (0..<2).map { index in
                let photo = Photo(context: context)
                photo.title = "\(number)\(index)"
                return photo
            }
        }
        let versions = try venues.map { try stack.version(of: $0) }
        let request = NSBatchUpdateRequest(entityName: "Photo")
        request.predicate = NSPredicate(format: "title BEGINSWITH '0'")
        request.propertiesToUpdate = ["venue": venues[1]]
        try stack.execute(request)
        try expectEqual(stack.read(venues[1], Venue.self) { $0.photos.compactMap(\.title) }, ["10", "11", "00", "01"])
        try expectEqual(stack.read(venues[0], Venue.self) { $0.photos.count }, 0)
        try expectEqual(venues.map { try stack.version(of: $0) }, versions.map { $0 + 1 })
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `one side of a one-to-one relationship can be cleared, and the other follows`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeNumberedVenues(2) { number, venue, context in
            let licence = Licence(context: context)
            licence.number = "\(number)"
            venue.licence = licence
        }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.predicate = NSPredicate(format: "licence.number == '1'")
        request.propertiesToUpdate = ["licence": NSNull()]
        try stack.execute(request)
        try expectEqual(stack.all(Licence.self) { "\($0.number ?? "") \($0.venue?.name ?? "nil")" }, ["0 v0", "1 nil"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that were read before show what a batch has done to the other sides of their relationships`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        // Other keys than those of the venues.
        for number in 0..<5 { try stack.store(Licence.self) { licence, _ in licence.number = "spare \(number)" } }
        try stack.storeNumberedVenues(2) { number, venue, context in
            let licence = Licence(context: context)
            licence.number = "\(number)"
            venue.licence = licence
            let photo = Photo(context: context)
            photo.title = "\(number)"
            venue.photos = [photo]
        }
        let reader = stack.context()
        let (licences, venues) = try reader.performAndWait {
            let (licences, venues) = (try reader.all(Licence.self), try reader.all(Venue.self))
            for licence in licences { _ = licence.venue?.name }
            for venue in venues { _ = (venue.licence?.number, venue.photos.count) }
            return (licences.map(\.objectID), venues.map(\.objectID))
        }
        /// The objects as look-ups by ID show them. A look-up asks the row cache first.
        func seen() throws -> [String] {
            let context = stack.context()
            return try context.performAndWait {
                try licences.map { try context.get($0, Licence.self) }.map {
                    "\($0.number ?? "") \($0.venue?.name ?? "-")"
                }.sorted().filter { !$0.hasPrefix("spare") }
                    + venues.map { try context.get($0, Venue.self) }.map {
                        "\($0.name ?? "") \($0.licence?.number ?? "-") \($0.photos.compactMap(\.title))"
                    }.sorted()
            }
        }
        try expectEqual(seen(), ["0 v0", "1 v1", #"v0 0 ["0"]"#, #"v1 1 ["1"]"#])
        let clearing = NSBatchUpdateRequest(entityName: "Venue")
        clearing.predicate = NSPredicate(format: "name == 'v1'")
        clearing.propertiesToUpdate = ["licence": NSNull()]
        try stack.execute(clearing)
        try expectEqual(seen(), ["0 v0", "1 -", #"v0 0 ["0"]"#, #"v1 - ["1"]"#])
        let moving = NSBatchUpdateRequest(entityName: "Photo")
        moving.predicate = NSPredicate(format: "title == '0'")
        moving.propertiesToUpdate = try [
            "venue": require(venues.first { try stack.read($0, Venue.self, \.name) == "v1" })
        ]
        try stack.execute(moving)
        try expectEqual(seen(), ["0 v0", "1 -", "v0 0 []", #"v1 - ["1", "0"]"#])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `what cannot be set is refused by name, and nothing is changed`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeNumberedVenues(1)
        let city = try stack.storeCity()
        let licence = try stack.store(Licence.self) { licence, _ in licence.number = "1" }
        let gone = try stack.storeCity("gone")
        try stack.delete(gone)
        let unsaved = stack.context()
        let temporary = unsaved.performAndWait { City(context: unsaved).objectID }
        let before = try stack.state()
        let cases: [(String, Any, CocoaError.Code)] = [
            ("tags", [city], .persistentStoreOperation), ("note", "x", .persistentStoreOperation),
            ("nothing", 1, .persistentStoreOperation), ("price", "x", .persistentStoreOperation),
            ("price", 40_000, .persistentStoreOperation), ("city", "x", .persistentStoreOperation),
            ("city", licence, .persistentStoreOperation), ("licence", licence, .persistentStoreOperation),
            ("city", temporary, .persistentStoreOperation), ("city", gone, .managedObjectReferentialIntegrity),
            ("name", NSExpression(format: "price + 1"), .persistentStoreOperation),
            ("price", NSExpression(format: "nothing + 1"), .persistentStoreOperation),
            ("city", NSExpression(format: "city"), .persistentStoreOperation),
            ("map", NSExpression(format: "map"), .persistentStoreOperation),
        ]
        for (name, value, code) in cases {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = [name: value, "distance": 5.0]
            let error = #expect(throws: CocoaError.self, "\(name)") { try stack.execute(request) }
            expectEqual(error?.code, code, "\(name) \(value)")
            expectEqual(
                error?.localizedDescription.contains("\"\(name)\""),
                true,
                "\(error?.localizedDescription ?? "")"
            )
        }
        let empty = NSBatchUpdateRequest(entityName: "Venue")
        expectThrows(CocoaError.self) { try stack.execute(empty) }
        let range = NSBatchUpdateRequest(entityName: "Venue")
        range.propertiesToUpdate = ["price": NSExpression(format: "price + 40000"), "distance": 5.0]
        expectThrows(CocoaError.self) { try stack.execute(range) }
        try expectEqual(stack.all(Venue.self) { "\($0.price) \($0.distance)" }, ["0 0.0"])
        try expectEqual(stack.state(), before)
    }

    @Test(arguments: StoreKind.allCases)
    func `an update that would break a uniqueness constraint changes nothing and names it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for email in ["a", "b"] { _ = try stack.store(User.self) { user, _ in user.email = email } }
        let before = try stack.state()
        let request = NSBatchUpdateRequest(entityName: "User")
        request.propertiesToUpdate = ["email": "c", "age": 3]
        let error = expectThrows(CocoaError.self) { try stack.execute(request) }
        expectEqual(error?.code, .managedObjectConstraintMerge)
        expectEqual(error?.localizedDescription.contains("email"), true)
        try expectEqual(stack.all(User.self) { "\($0.email) \($0.age)" }, ["a 0", "b 0"])
        try expectEqual(stack.state(), before)
    }

    @Test(arguments: StoreKind.allCases)
    func `rows may take unique values that others give up in the same update`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Seat", NSManagedObject.self)
        entity.properties = [GuideModel.attribute("number", .integer32), GuideModel.attribute("name", .string)]
        entity.uniquenessConstraints = [["number"]]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.execute(
            NSBatchInsertRequest(entityName: "Seat", objects: (1...9).map { ["number": $0, "name": "s\($0)"] })
        )
        let request = NSBatchUpdateRequest(entityName: "Seat")
        request.predicate = NSPredicate(format: "number > 3")
        request.propertiesToUpdate = ["number": NSExpression(format: "number + 1")]
        request.resultType = .updatedObjectIDsResultType
        expectEqual((try stack.execute(request).value as? [NSManagedObjectID])?.count, 6)
        func numbers() throws -> [Int] {
            try stack.all(NSManagedObject.self) { "\($0.value(forKey: "number") ?? "")" }.compactMap { Int($0) }
                .sorted()
        }
        try expectEqual(numbers(), [1, 2, 3, 5, 6, 7, 8, 9, 10])
        request.propertiesToUpdate = ["number": NSExpression(format: "number - 2")]
        let error = expectThrows(CocoaError.self) { try stack.execute(request) }
        expectEqual(error?.code, .managedObjectConstraintMerge)
        try expectEqual(numbers(), [1, 2, 3, 5, 6, 7, 8, 9, 10])
    }

    @Test(arguments: StoreKind.allCases)
    func `saves and unknown requests are refused (CS-174)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let save = NSSaveChangesRequest(inserted: [], updated: [], deleted: [], locked: nil)
        expectThrows(CocoaError.self) { try stack.execute(save) }
        let context = stack.context()
        try context.performAndWait {
            let request = NSBatchUpdateRequest(entityName: "Venue")
            request.propertiesToUpdate = ["price": 1]
            let result = try stack.coordinator.execute(request, with: context)
            expectEqual((result as? NSBatchUpdateResult)?.result as? Bool, true)
            expectEqual(request.entity.name, "Venue")
        }
    }
}
