import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Batch deletes")
struct BatchDeleteTests {
    @Test(arguments: StoreKind.allCases)
    func `what a fetch would find is deleted, with status, count or IDs (CS-167)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeNumberedVenues(6)
        try expectEqual(stack.execute(NSBatchDeleteRequest("Venue", "price == 0")).value as? Bool, true)
        let counting = NSBatchDeleteRequest("Venue", "price < %@", 3)
        counting.resultType = .resultTypeCount
        try expectEqual(stack.execute(counting).value as? Int, 2)
        let fetch = NSFetchRequest<Venue>(entityName: "Venue")
        fetch.sortDescriptors = [NSSortDescriptor(key: "price", ascending: false)]
        fetch.fetchLimit = 1
        fetch.fetchOffset = 1
        let listing = NSBatchDeleteRequest(fetchRequest: fetch)
        listing.resultType = .resultTypeObjectIDs
        try expectEqual(stack.execute(listing).value as? [NSManagedObjectID], [ids[4]])
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["v3 3", "v5 5"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `objects are deleted by IDs of one hierarchy, those that are gone already do not count (CS-167)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        var ids = try stack.storeNumberedVenues(3)
        ids.append(try stack.store(Bar.self) { bar, _ in bar.name = "bar" })
        try stack.delete(ids[0])
        let request = NSBatchDeleteRequest(objectIDs: [ids[0], ids[1], ids[3]])
        request.resultType = .resultTypeCount
        try expectEqual(stack.execute(request).value as? Int, 2)
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["v2 2"])
        let none = NSBatchDeleteRequest(objectIDs: [])
        none.resultType = .resultTypeObjectIDs
        try expectEqual((stack.execute(none).value as? [NSManagedObjectID])?.isEmpty, true)
        let mixed = NSBatchDeleteRequest(objectIDs: [ids[2], try stack.storeCity()])
        expectThrows(CocoaError.self) { try stack.execute(mixed) }
        let context = stack.context()
        let temporary = context.performAndWait { Venue(context: context).objectID }
        expectThrows(CocoaError.self) { try stack.execute(NSBatchDeleteRequest(objectIDs: [temporary])) }
        try expectEqual(stack.count("Venue"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `nullify takes the rows out of relationships of every kind`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let city = try stack.storeCity()
        let tag = try stack.store(TestSupport.Tag.self) { tag, _ in tag.title = "tag" }
        let venues = try stack.storeNumberedVenues(3) { _, venue, context in
            venue.city = context.object(with: city) as? City
            venue.tags = [context.object(with: tag)].compactMap { $0 as? TestSupport.Tag }.reduce(into: []) {
                $0.insert($1)
            }
        }
        let user = try stack.store(User.self) { user, context in
            user.email = "fan"
            user.favourites = venues.compactMap { context.object(with: $0) as? Venue }
        }
        let version = try stack.version(of: user)
        try stack.execute(NSBatchDeleteRequest("Venue", "name == 'v1'"))
        try expectEqual(stack.read(city, City.self) { $0.venues.count }, 2)
        try expectEqual(stack.read(tag, TestSupport.Tag.self) { $0.venues.count }, 2)
        try expectEqual(stack.read(user, User.self) { $0.favourites.compactMap(\.name) }, ["v0", "v2"])
        try expectEqual(stack.version(of: user), version + 1)
        try stack.execute(NSBatchDeleteRequest("City"))
        try expectEqual(stack.all(Venue.self) { $0.city?.name ?? "nil" }, ["nil", "nil"])
        try expectEqual(stack.version(of: venues[0]), 2)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `cascades are followed, and counted`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeNumberedVenues(3) { number, venue, context in
            venue.photos = (0..<2).map { _ in Photo(context: context) }
            let licence = Licence(context: context)
            licence.number = "\(number)"
            venue.licence = licence
        }
        let request = NSBatchDeleteRequest("Venue", "price > 0")
        request.resultType = .resultTypeObjectIDs
        let ids = try require(try stack.execute(request).value as? [NSManagedObjectID])
        expect(
            Dictionary(grouping: ids) { $0.entity.name ?? "" }.mapValues(\.count) == [
                "Venue": 2, "Photo": 4, "Licence": 2,
            ]
        )
        try expectEqual(["Venue", "Photo", "Licence"].map { try stack.count($0) }, [1, 2, 1])
        try expectEqual(stack.all(Licence.self) { "\($0.number ?? "") \($0.venue?.name ?? "")" }, ["0 v0"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `deny refuses the whole batch, unless those it protects are deleted too`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let boss = User(context: context)
            boss.email = "boss"
            for number in 0..<2 {
                let user = User(context: context)
                user.email = "report \(number)"
                user.boss = boss
            }
            try context.save()
        }
        let before = try stack.state()
        let error = expectThrows(CocoaError.self) {
            try stack.execute(NSBatchDeleteRequest("User", "email == 'boss' OR email == 'report 0'"))
        }
        expectEqual(error?.code, .validationRelationshipDeniedDelete)
        expectEqual(error?.localizedDescription.contains("\"reports\" of User"), true)
        try expectEqual(stack.count("User"), 3)
        try expectEqual(stack.state(), before)
        try stack.execute(NSBatchDeleteRequest("User"))
        try expectEqual(stack.count("User"), 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `a chain of cascades is followed to its end, round the ring too`(_ kind: StoreKind) throws {
        let node = GuideModel.entity("Node", NSManagedObject.self)
        node.properties = [GuideModel.attribute("number", .integer32)]
        GuideModel.relate(node, "next", .one(.cascadeDeleteRule), node, "previous", .one(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [node]
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            var last: NSManagedObject?
            var first: NSManagedObject?
            for number in 0..<500 {
                let object = NSEntityDescription.insertNewObject(forEntityName: "Node", into: context)
                object.setValue(number, forKey: "number")
                object.setValue(last, forKey: "previous")
                last = object
                first = first ?? object
            }
            try context.save()
        }
        try stack.execute(NSBatchDeleteRequest("Node", "number == 100"))
        try expectEqual(stack.count("Node"), 100)
        let all = try stack.all(NSManagedObject.self) { "\($0.value(forKey: "number") ?? "")" }
        expectEqual(all.compactMap { Int($0) }.max(), 99)
        try context.performAndWait {
            context.reset()
            let request = NSFetchRequest<NSManagedObject>(entityName: "Node")
            request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
            let nodes = try context.fetch(request)
            expect(nodes.last?.value(forKey: "next") == nil)
            nodes[0].setValue(nodes[99], forKey: "previous")
            try context.save()
        }
        try stack.execute(NSBatchDeleteRequest("Node", "number == 50"))
        try expectEqual(stack.count("Node"), 0)
        try expectEqual(stack.problems(), [])
    }
}
