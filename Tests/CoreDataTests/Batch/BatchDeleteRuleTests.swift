import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Delete rules of batch deletes")
struct BatchDeleteRuleTests {
    // MARK: - As a save does it

    /// A guide whose objects are related at random, in the same way for each seed.
    private func randomGuide(_ kind: StoreKind, seed: UInt64) throws -> Stack {
        let stack = try Stack(kind)
        var generator = SeededRandom(seed: seed)
        let context = stack.context()
        try context.performAndWait {
            let cities = (0..<4).map { number in
                let city = City(context: context)
                city.name = "city \(number)"
                return city
            }
            let tags = (0..<4).map { number in
                let tag = TestSupport.Tag(context: context)
                tag.title = "tag \(number)"
                return tag
            }
            let venues = (0..<24).map { number in
                let venue = number % 3 == 0 ? Bar(context: context) : Venue(context: context)
                venue.name = "venue \(number)"
                venue.price = Int16.random(in: 0..<10, using: &generator)
                venue.city = cities.randomElement(using: &generator)
                venue.tags = Set(tags.filter { _ in Bool.random(using: &generator) })
                venue.photos = (0..<Int.random(in: 0..<3, using: &generator)).map { index in
                    let photo = Photo(context: context)
                    photo.title = "photo \(number) \(index)"
                    return photo
                }
                guard Bool.random(using: &generator) else { return venue }
                let licence = Licence(context: context)
                licence.number = "licence \(number)"
                venue.licence = licence
                return venue
            }
            for number in 0..<4 {
                let user = User(context: context)
                user.email = "user \(number)"
                user.favourites = venues.filter { _ in Bool.random(using: &generator) }.shuffled(using: &generator)
            }
            try context.save()
        }
        return stack
    }

    /// All stored objects, with their versions.
    private func everything(_ stack: Stack) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            func lines<Object: NSManagedObject>(_ type: Object.Type, _ line: (Object) -> String) throws -> [String] {
                try context.all(type).map { object in
                    let version = try stack.version(of: object.objectID)
                    return "\(object.objectID.entity.name ?? "") v\(version) \(line(object))"
                }.sorted()
            }
            func names(_ venues: some Sequence<Venue>) -> String {
                venues.compactMap(\.name).sorted().joined(separator: ",")
            }
            return try lines(City.self) { "\($0.name): \(names($0.venues))" }
                + lines(TestSupport.Tag.self) { "\($0.title ?? ""): \(names($0.venues))" }
                + lines(Venue.self) { venue in
                    """
                    \(venue.name ?? ""): \(venue.city?.name ?? "-") \(venue.photos.compactMap(\.title)) \
                    \(venue.licence?.number ?? "-") \(venue.tags.compactMap(\.title).sorted()) \
                    \(venue.fans.map(\.email).sorted())
                    """
                }
                + lines(Photo.self) { "\($0.title ?? ""): \($0.venue?.name ?? "-")" }
                + lines(Licence.self) { "\($0.number ?? ""): \($0.venue?.name ?? "-")" }
                + lines(User.self) { "\($0.email): \($0.favourites.compactMap(\.name))" }
        }
    }

    @Test(arguments: StoreKind.allCases, [1, 2, 3] as [UInt64])
    func `a batch delete leaves what the deletion of the objects leaves (CS-171)`(_ kind: StoreKind, _ seed: UInt64)
        throws
    {
        let deletions: [(String, String)] = [
            ("Venue", "price < 4"), ("Bar", "price < 7"), ("City", "name ENDSWITH '1'"),
            ("Photo", "title ENDSWITH '0'"),
            ("Licence", "venue.price > 5"), ("Tag", "title ENDSWITH '2'"), ("User", "email ENDSWITH '3'"),
        ]
        let (byObjects, byBatch) = (try randomGuide(kind, seed: seed), try randomGuide(kind, seed: seed))
        try expectEqual(everything(byObjects), everything(byBatch))
        for (entity, predicate) in deletions {
            let context = byObjects.context()
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: entity)
                request.predicate = NSPredicate(format: predicate)
                for object in try context.fetch(request) { context.delete(object) }
                try context.save()
            }
            try byBatch.execute(NSBatchDeleteRequest(entity, predicate))
            let (expected, found) = (try everything(byObjects), try everything(byBatch))
            expectEqual(found, expected, "after the deletion of \(entity)")
            try expectEqual(byBatch.problems(), [])
        }
    }

    // MARK: - Relationships that the guide does not have

    /// Owners with things, in a relationship whose inverse is not optional and in one without an inverse.
    ///
    /// Owners are also related to each other.
    private func model(_ rule: NSDeleteRule, isMandatory: Bool = false) -> NSManagedObjectModel {
        let owner = GuideModel.entity("Owner", NSManagedObject.self)
        let thing = GuideModel.entity("Thing", NSManagedObject.self)
        owner.properties = [GuideModel.attribute("name", .string)]
        thing.properties = [GuideModel.attribute("name", .string)]
        GuideModel.relate(owner, "things", .many(rule), thing, "owner", .one(.nullifyDeleteRule))
        thing.relationshipsByName["owner"]?.isOptional = !isMandatory
        // Each thing is of one owner at most in `loose`; `friends` is its own inverse.
        owner.properties.append(GuideModel.relationship("loose", .many(.nullifyDeleteRule), thing))
        let friends = GuideModel.relationship("friends", .many(.nullifyDeleteRule), owner)
        owner.properties.append(friends)
        friends.inverseRelationship = friends
        thing.properties.append(GuideModel.relationship("keeper", .one(.nullifyDeleteRule), owner))
        let model = NSManagedObjectModel()
        model.entities = [owner, thing]
        return model
    }

    /// Three owners, `o0` to `o2`, who are all friends; `o0` has two things.
    private func stackOfOwners(
        _ kind: StoreKind,
        _ model: NSManagedObjectModel,
        _ setUp: ([NSManagedObject], [NSManagedObject]) -> Void = { _, _ in }
    ) throws -> Stack {
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            func make(_ entity: String, _ name: String) -> NSManagedObject {
                let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
                object.setValue(name, forKey: "name")
                return object
            }
            let owners = (0..<3).map { make("Owner", "o\($0)") }
            let things = (0..<2).map { make("Thing", "t\($0)") }
            for thing in things { thing.setValue(owners[0], forKey: "owner") }
            for owner in owners { owner.setValue(Set(owners.filter { $0 != owner }), forKey: "friends") }
            setUp(owners, things)
            try context.save()
        }
        return stack
    }

    private func names(_ stack: Stack, _ entity: String, _ related: String) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity)).map { object in
                let others = object.value(forKey: related)
                let set = (others as? NSSet)?.allObjects ?? others.map { [$0] } ?? []
                let names = set.compactMap { ($0 as? NSManagedObject)?.value(forKey: "name") as? String }
                return "\(object.value(forKey: "name") ?? ""): \(names.sorted().joined(separator: ","))"
            }.sorted()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `nullify refuses to leave a relationship nil that must not be, unless the others go too`(_ kind: StoreKind)
        throws
    {
        let stack = try stackOfOwners(kind, model(.nullifyDeleteRule, isMandatory: true))
        let error = expectThrows(CocoaError.self) {
            try stack.execute(NSBatchDeleteRequest("Owner", "name == 'o0'"))
        }
        expectEqual(error?.code, .validationMissingMandatoryProperty)
        expectEqual(error?.localizedDescription.contains("\"owner\" of p1 of Thing"), true)
        try stack.execute(NSBatchDeleteRequest("Owner", "name == 'o1'"))
        try stack.execute(NSBatchDeleteRequest("Thing"))
        try stack.execute(NSBatchDeleteRequest("Owner"))
        try expectEqual([stack.count("Owner"), stack.count("Thing")], [0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `the rule "no action" leaves the other side as it is`(_ kind: StoreKind) throws {
        let stack = try stackOfOwners(kind, model(.noActionDeleteRule))
        try stack.execute(NSBatchDeleteRequest("Owner", "name == 'o0'"))
        let context = stack.context()
        let left = try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
            request.predicate = NSPredicate(format: "owner != nil")
            return try context.count(for: request)
        }
        expectEqual(left, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a relationship that is its own inverse is left by both sides`(_ kind: StoreKind) throws {
        let stack = try stackOfOwners(kind, model(.cascadeDeleteRule))
        try stack.execute(NSBatchDeleteRequest("Owner", "name == 'o0'"))
        try expectEqual(names(stack, "Owner", "friends"), ["o1: o2", "o2: o1"])
        try expectEqual(stack.count("Thing"), 0)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `members of a to-many relationship without an inverse are set free`(_ kind: StoreKind) throws {
        let stack = try stackOfOwners(kind, model(.nullifyDeleteRule)) { owners, things in
            owners[1].setValue(Set(things), forKey: "loose")
        }
        try expectEqual(names(stack, "Owner", "loose"), ["o0: ", "o1: t0,t1", "o2: "])
        try stack.execute(NSBatchDeleteRequest("Owner", "name == 'o1'"))
        try expectEqual(names(stack, "Thing", "owner"), ["t0: o0", "t1: o0"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-one relationship without an inverse is never left leading nowhere`(_ kind: StoreKind) throws {
        let stack = try stackOfOwners(kind, model(.cascadeDeleteRule)) { owners, things in
            things[0].setValue(owners[1], forKey: "keeper")
        }
        let error = expectThrows(CocoaError.self) {
            try stack.execute(NSBatchDeleteRequest("Owner", "name == 'o1'"))
        }
        expectEqual(error?.code, .validationRelationshipDeniedDelete)
        expectEqual(error?.localizedDescription.contains("\"keeper\" of p1 of Thing"), true)
        try expectEqual(stack.count("Owner"), 3)
        // The batch deletes the keeper together with the thing that leads to it.
        try stack.execute(NSBatchDeleteRequest("Owner", "name IN {'o0', 'o1'}"))
        try expectEqual(names(stack, "Owner", "friends"), ["o2: "])
        try expectEqual(stack.problems(), [])
    }

    // MARK: - Through cascades

    /// Shelves with boxes, which may hold further boxes.
    ///
    /// Boxes are deleted with their shelf or outer box.
    ///
    /// A seal denies the deletion of its box. Where the store has files, contents of boxes are in separate files.
    private func modelOfShelves() -> NSManagedObjectModel {
        let shelf = GuideModel.entity("Shelf", NSManagedObject.self)
        let box = GuideModel.entity("Box", NSManagedObject.self)
        let seal = GuideModel.entity("Seal", NSManagedObject.self)
        for entity in [shelf, box, seal] { entity.properties = [GuideModel.attribute("name", .string)] }
        let content = GuideModel.attribute("content", .binaryData)
        content.allowsExternalBinaryDataStorage = true
        box.properties.append(content)
        GuideModel.relate(shelf, "boxes", .many(.cascadeDeleteRule), box, "shelf", .one(.nullifyDeleteRule))
        GuideModel.relate(box, "inner", .many(.cascadeDeleteRule), box, "outer", .one(.nullifyDeleteRule))
        GuideModel.relate(box, "seals", .many(.denyDeleteRule), seal, "box", .one(.nullifyDeleteRule))
        GuideModel.relate(shelf, "seals", .many(.cascadeDeleteRule), seal, "shelf", .one(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [shelf, box, seal]
        return model
    }

    /// Two shelves, `s0` and `s1`, each with a box that holds a sealed box.
    ///
    /// Only the seal in `s1` is deleted with its shelf.
    private func stackOfShelves(_ kind: StoreKind) throws -> Stack {
        let stack = try Stack(kind, model: modelOfShelves())
        let context = stack.context()
        try context.performAndWait {
            func make(_ entity: String, _ name: String, _ values: [String: Any]) -> NSManagedObject {
                let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
                object.setValue(name, forKey: "name")
                for (key, value) in values { object.setValue(value, forKey: key) }
                return object
            }
            for number in 0..<2 {
                let content = Data(repeating: UInt8(number), count: 200_000 + number)
                let shelf = make("Shelf", "s\(number)", [:])
                let outer = make("Box", "outer \(number)", ["shelf": shelf, "content": content])
                let inner = make("Box", "inner \(number)", ["outer": outer, "content": content])
                let seal = make("Seal", "seal \(number)", ["box": inner])
                if number == 1 { seal.setValue(shelf, forKey: "shelf") }
            }
            try context.save()
        }
        return stack
    }

    /// The boxes that a context finds, each with the size of its contents.
    private func boxes(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")).map { box in
                let content = box.value(forKey: "content") as? Data
                return "\(box.value(forKey: "name") ?? ""): \(content?.count ?? 0)"
            }.sorted()
        }
    }

    /// The number of files that the store has for large data.
    private func fileCount(_ stack: Stack) -> Int {
        let folder = stack.folder.appendingPathComponent(".store_SUPPORT/_EXTERNAL_DATA")
        return (try? FileManager.default.contentsOfDirectory(atPath: folder.path).count) ?? 0
    }

    @Test(arguments: StoreKind.allCases)
    func `a deny rule that cascades lead to refuses the whole batch, unless they lead to what it protects too`(
        _ kind: StoreKind
    ) throws {
        let stack = try stackOfShelves(kind)
        func counts() throws -> [Int] { try ["Shelf", "Box", "Seal"].map { try stack.count($0) } }
        let error = expectThrows(CocoaError.self) { try stack.execute(NSBatchDeleteRequest("Shelf")) }
        expectEqual(error?.code, .validationRelationshipDeniedDelete)
        expectEqual(error?.localizedDescription.contains("\"seals\" of Box"), true)
        try expectEqual(counts(), [2, 4, 2])
        try expectEqual(names(stack, "Box", "outer").prefix(2), ["inner 0: outer 0", "inner 1: outer 1"])
        try stack.execute(NSBatchDeleteRequest("Shelf", "name == 's1'"))
        try expectEqual(counts(), [1, 2, 1])
        expectThrows(CocoaError.self) { try stack.execute(NSBatchDeleteRequest("Shelf")) }
        try stack.execute(NSBatchDeleteRequest("Seal"))
        try stack.execute(NSBatchDeleteRequest("Shelf"))
        try expectEqual(counts(), [0, 0, 0])
        try expectEqual(stack.problems(), [])
    }

    @Test func `files of rows that cascades lead to go once the batch is committed, and stay if it is not`() throws {
        let stack = try stackOfShelves(.sqlite)
        let all = ["inner 0: 200000", "inner 1: 200001", "outer 0: 200000", "outer 1: 200001"]
        // A rule refuses this.
        expectThrows(CocoaError.self) { try stack.execute(NSBatchDeleteRequest("Shelf")) }
        expectEqual(fileCount(stack), 4)
        try stack.execute(NSBatchDeleteRequest("Seal"))
        // This fails at one of the last rows, after others have been deleted.
        try stack.pool.write { connection in
            try connection.execute(
                """
                CREATE TRIGGER stop BEFORE DELETE ON ZBOX WHEN OLD.ZNAME = 'inner 1'
                BEGIN SELECT RAISE(ABORT, 'stopped'); END
                """
            )
        }
        #expect(throws: (any Error).self) { try stack.execute(NSBatchDeleteRequest("Shelf")) }
        expectEqual(fileCount(stack), 4)
        try expectEqual(boxes(stack.context()), all)

        try stack.execute(NSBatchDeleteRequest("Shelf", "name == 's0'"))
        expectEqual(fileCount(stack), 2)
        try stack.pool.write { try $0.execute("DROP TRIGGER stop") }
        let pinned = stack.context("pinned")
        try pinned.inside { () throws in
            try pinned.setQueryGenerationFrom(.current)
            try expectEqual(pinned.count(for: NSFetchRequest<NSManagedObject>(entityName: "Box")), 2)
        }
        try stack.execute(NSBatchDeleteRequest("Shelf"))
        try expectEqual(stack.count("Box"), 0)
        // A context that holds the version before the batch still reads them.
        try expectEqual(boxes(pinned), ["inner 1: 200001", "outer 1: 200001"])
        expectEqual(fileCount(stack), 2)
        try pinned.inside { () throws in try pinned.setQueryGenerationFrom(nil) }
        expectEqual(fileCount(stack), 0)
        try expectEqual(stack.problems(), [])
    }
}
