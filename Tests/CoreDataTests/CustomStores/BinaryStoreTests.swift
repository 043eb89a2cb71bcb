import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Binary stores")
struct BinaryStoreTests {
    private let scratch: ScratchFolder
    private var url: URL { scratch.file("guide.binary") }

    init() throws { scratch = try ScratchFolder() }

    private func open(
        _ model: NSManagedObjectModel = GuideModel.make(),
        _ options: [AnyHashable: Any]? = nil
    ) throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .binary, at: url, options: options)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    private func close(_ context: NSManagedObjectContext) throws {
        let coordinator = try require(context.persistentStoreCoordinator)
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    /// Saves a bar with a value for each attribute, and what it is related to; gives the URI of its ID.
    @discardableResult
    private func fill(_ context: NSManagedObjectContext) throws -> URL {
        try context.performAndWait {
            let bar = Bar(context: context)
            bar.name = "Zum Löwen 🦁"
            bar.price = -7
            bar.distance = 1.0 / 3
            bar.createdAt = Date(timeIntervalSinceReferenceDate: 700_000_000.123456)
            bar.favorite = true
            bar.rating = Decimal(string: "4.125")
            bar.code = UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")
            bar.site = URL(string: "https://example.org/?a=%20")
            bar.map = Data([0, 255, 3])
            bar.seats = .min
            bar.visits = .max
            bar.score = 0.1
            bar.colour = NSArray(array: ["red", 1])
            bar.beers = 12
            bar.note = "transient"
            let city = City(context: context)
            city.name = "Porto"
            bar.city = city
            bar.tags = Set(
                ["a", "b"].map { title in
                    let tag = Tag(context: context)
                    tag.title = title
                    return tag
                }
            )
            bar.photos = ["3", "1", "2"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
            let users = ["a@b", "c@d"].map { email in
                let user = User(context: context)
                user.email = email
                user.favourites = [bar]
                return user
            }
            users[0].boss = users[1]
            try context.save()
            return bar.objectID.uriRepresentation()
        }
    }

    @Test func `values of every type and relationships of every kind are there when the file is opened again`() throws {
        let first = try open()
        let uri = try fill(first)
        try close(first)
        let context = try open()

        try context.performAndWait {
            let id = try require(context.persistentStoreCoordinator?.managedObjectID(forURIRepresentation: uri))
            let bar = try require(try context.existingObject(with: id) as? Bar)
            expect(bar.name == "Zum Löwen 🦁" && bar.price == -7 && bar.distance == 1.0 / 3)
            expect(bar.createdAt == Date(timeIntervalSinceReferenceDate: 700_000_000.123456) && bar.favorite)
            expect(bar.rating == Decimal(string: "4.125") && bar.code?.uuidString.hasPrefix("E621E1F8") == true)
            expect(bar.site?.absoluteString == "https://example.org/?a=%20" && bar.map == Data([0, 255, 3]))
            expect(bar.seats == .min && bar.visits == .max && bar.score == 0.1 && bar.beers == 12)
            expect(bar.colour == NSArray(array: ["red", 1]) && bar.note == nil && bar.licence == nil)
            expect(bar.city?.name == "Porto" && bar.city?.venues == [bar])
            expect(bar.photos.map(\.title) == ["3", "1", "2"] && Set(bar.tags.map(\.title)) == ["a", "b"])
            expect(bar.fans.count == 2 && bar.fans.allSatisfy { $0.favourites == [bar] })
            expectEqual(Set(bar.fans.compactMap(\.boss?.email)), ["c@d"])
            // Fetches and constraints are the framework's.
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "ANY tags.title == 'a' AND city.name BEGINSWITH 'P'")
            try expectEqual(context.fetch(request), [bar])
            User(context: context).email = "a@b"
            expectThrows(CocoaError.self) { try context.save() }
        }
    }

    @Test func `the file is there once the store is added, and is the same store when it is added again`() throws {
        let first = try open()
        expect(FileManager.default.fileExists(atPath: url.path))
        let uuid = first.persistentStoreCoordinator?.persistentStores.first?.identifier
        let read = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .binary, at: url)
        expectEqual(read[NSStoreUUIDKey] as? String, uuid)
        expectEqual(read[NSStoreTypeKey] as? String, "Binary")
        expect(GuideModel.make().isConfiguration(withName: nil, compatibleWithStoreMetadata: read))
        try close(first)
        let second = try open()
        expectEqual(second.persistentStoreCoordinator?.persistentStores.first?.identifier, uuid)
        try fill(second)
        try close(second)
        let third = try open()
        try third.performAndWait {
            try expectEqual(third.count(for: NSFetchRequest<City>(entityName: "City")), 1)
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: scratch.folder.path), ["guide.binary"])
    }

    @Test func `a store that is read-only makes no file, and one without a folder is not added`() throws {
        let context = try open(GuideModel.make(), [NSReadOnlyPersistentStoreOption: true])
        try context.performAndWait {
            try expectEqual(context.count(for: NSFetchRequest<City>(entityName: "City")), 0)
        }
        expect(!FileManager.default.fileExists(atPath: url.path))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let nowhere = scratch.file("no/such/folder/guide.binary")
        expectThrows(CocoaError.self) { try coordinator.addPersistentStore(type: .binary, at: nowhere) }
        expectEqual(coordinator.persistentStores, [])
    }

    @Test func `a new file takes no other file's place`() throws {
        try fill(try open())
        let before = try Data(contentsOf: url)
        let error = expectThrows(CocoaError.self) {
            try BinaryStoreFile(metadata: [:], lastKey: 0, objects: []).write(to: url, replaces: false)
        }
        expectEqual(error?.code, .fileWriteFileExists)
        try expectEqual(Data(contentsOf: url), before)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: scratch.folder.path), ["guide.binary"])
    }

    @Test func `composite attributes are there when the file is opened again`() throws {
        let point = NSCompositeAttributeDescription()
        point.name = "point"
        point.elements = ["x", "y"].map { GuideModel.attribute($0, .double) }
        let home = NSCompositeAttributeDescription()
        home.name = "home"
        home.elements = [GuideModel.attribute("street", .string), point]
        func model(_ name: String = "home") throws -> NSManagedObjectModel {
            let entity = NSEntityDescription()
            entity.name = "Person"
            let composite = try require(home.copy() as? NSPropertyDescription)
            composite.name = name
            entity.properties = [composite]
            let model = NSManagedObjectModel()
            model.entities = [entity]
            return model
        }
        let first = try open(model())
        try first.performAndWait {
            let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: first)
            person.setValue(["street": "Elm", "point": ["x": 2.5]] as [String: Any], forKey: "home")
            try first.save()
        }
        try close(first)
        let context = try open(model())
        try context.performAndWait {
            let person = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Person")).first)
            let home = try require(person.value(forKey: "home") as? [String: Any])
            expect(home["street"] as? String == "Elm" && (home["point"] as? [String: Any])?["x"] as? Double == 2.5)
        }
        try close(context)
        // The name takes no part in the version hash; nothing may be lost for that.
        try expectEqual(model("address").entityVersionHashesByName, model().entityVersionHashesByName)
        let before = try Data(contentsOf: url)
        let error = expectThrows(CocoaError.self) { try open(model("address")) }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        expectEqual(error?.localizedDescription.contains("Person.home.point.x"), true)
        try expectEqual(Data(contentsOf: url), before)
        try close(open(model("address"), [NSIgnorePersistentStoreVersioningOption: true]))
    }

    @Test func `a file with version hashes of the former rule is read and saved to, and loses nothing`() throws {
        func model() throws -> NSManagedObjectModel {
            try NSManagedObjectModel.parsing(
                """
                <entity name="Person">
                    <attribute name="name" optional="YES" attributeType="String"/>
                    <composite name="home" optional="YES">
                        <attribute name="street" optional="YES" attributeType="String"/>
                    </composite>
                </entity>
                """
            )
        }
        let person = NSFetchRequest<NSManagedObject>(entityName: "Person")
        let first = try open(model())
        try first.performAndWait {
            let ada = NSEntityDescription.insertNewObject(forEntityName: "Person", into: first)
            ada.setValue("Ada", forKey: "name")
            ada.setValue("Elm", forKeyPath: "home.street")
            try first.save()
        }
        try close(first)
        let former = try require(VersionHash.formerHash(of: model().entity("Person")))
        try expect(former != model().entity("Person").versionHash)
        let file = try require(try BinaryStoreFile(contentsOf: url))
        var metadata = file.metadata
        metadata[NSStoreModelVersionHashesKey] = ["Person": former]
        try BinaryStoreFile(metadata: metadata, lastKey: file.lastKey, objects: file.objects).write(to: url)

        for street in ["Elm", "Oak"] {
            let context = try open(model())
            try context.performAndWait {
                let ada = try require(try context.fetch(person).first)
                expectEqual(ada.value(forKeyPath: "home.street") as? String, street)
                ada.setValue("Oak", forKeyPath: "home.street")
                try context.save()
            }
            try close(context)
        }
        let kept = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .binary, at: url)
        expectEqual(kept[NSStoreModelVersionHashesKey] as? [String: Data], ["Person": former])
    }

    @Test func `deletions and changes are written, and keys are never used again`() throws {
        var context = try open()
        let old = try fill(context)
        try context.performAndWait {
            for venue in try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")) { context.delete(venue) }
            try context.fetch(NSFetchRequest<City>(entityName: "City")).first?.name = "Rome"
            try context.save()
        }
        try close(context)
        context = try open()
        try context.performAndWait {
            try expectEqual(context.count(for: NSFetchRequest<Venue>(entityName: "Venue")), 0)
            try expectEqual(context.count(for: NSFetchRequest<Photo>(entityName: "Photo")), 0)
            try expectEqual(context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name), ["Rome"])
            let bar = Bar(context: context)
            try context.save()
            expect(bar.objectID.uriRepresentation() != old)
        }
    }

    @Test func `the metadata are those of the file`() throws {
        let context = try open()
        let coordinator = try require(context.persistentStoreCoordinator)
        let store = coordinator.persistentStores[0]
        expect(store.type == NSBinaryStoreType && NSPersistentStoreCoordinator.registeredStoreTypes["Binary"] != nil)
        coordinator.setMetadata(coordinator.metadata(for: store).merging(["mine": 5]) { $1 }, for: store)
        try fill(context)
        let uuid = store.identifier
        try close(context)

        let type = NSPersistentStoreCoordinator.self
        let read = try type.metadataForPersistentStore(type: .binary, at: url)
        expect(read["mine"] as? Int == 5 && read[NSStoreUUIDKey] as? String == uuid)
        expectEqual(read[NSStoreTypeKey] as? String, "Binary")
        expect(GuideModel.make().isConfiguration(withName: nil, compatibleWithStoreMetadata: read))
        try type.setMetadata(["mine": 6], type: .binary, at: url)
        let again = try require(try open().persistentStoreCoordinator).persistentStores[0]
        expect(again.identifier == uuid && again.metadata["mine"] as? Int == 6)
        let missing = expectThrows(CocoaError.self) {
            try type.metadataForPersistentStore(type: .binary, at: scratch.file("none"))
        }
        expectEqual(missing?.code, .fileReadNoSuchFile)
    }

    @Test func `a store of another version of the model is refused`() throws {
        try fill(try open())
        let model = GuideModel.make()
        model.entitiesByName["City"]?.properties.append(GuideModel.attribute("mayor", .string))
        let before = try Data(contentsOf: url)

        let error = expectThrows(CocoaError.self) { try open(model) }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        expectEqual(error?.localizedDescription.contains("City"), true)
        try expectEqual(Data(contentsOf: url), before)
        let lenient = try open(model, [NSIgnorePersistentStoreVersioningOption: true])
        try lenient.performAndWait { () throws in
            try expectEqual(lenient.count(for: NSFetchRequest<City>(entityName: "City")), 1)
        }
    }

    @Test func `a save that cannot be written leaves the context as it was, and succeeds later`() throws {
        let context = try open()
        try fill(context)
        let before = try Data(contentsOf: url)
        let aside = scratch.folder.appendingPathExtension("aside")
        try FileManager.default.moveItem(at: scratch.folder, to: aside)
        defer { try? FileManager.default.removeItem(at: aside) }
        try context.performAndWait {
            try context.fetch(NSFetchRequest<City>(entityName: "City")).first?.name = "Rome"
            expectThrows(CocoaError.self) { try context.save() }
            expectEqual(context.updatedObjects.count, 1)
        }
        try FileManager.default.moveItem(at: aside, to: scratch.folder)
        try expectEqual(Data(contentsOf: url), before)
        try context.performAndWait { try context.save() }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: scratch.folder.path), ["guide.binary"])
        let second = try open()
        try second.performAndWait { () throws in
            try expectEqual(second.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name), ["Rome"])
        }
    }

    @Test func `a store that is read-only is not written`() throws {
        try fill(try open())
        let context = try open(GuideModel.make(), [NSReadOnlyPersistentStoreOption: true])
        try context.performAndWait {
            try context.fetch(NSFetchRequest<City>(entityName: "City")).first?.name = "Rome"
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .fileWriteNoPermission)
        }
    }

    @Test func `a store is replaced by another, and destroyed`() throws {
        let context = try open()
        try fill(context)
        let copy = scratch.file("copy.binary")
        let coordinator = try require(context.persistentStoreCoordinator)
        try coordinator.replacePersistentStore(at: copy, withPersistentStoreFrom: url, type: .binary)
        try expectEqual(Data(contentsOf: copy), Data(contentsOf: url))
        try coordinator.destroyPersistentStore(at: url, type: .binary)
        expect(coordinator.persistentStores == [] && !FileManager.default.fileExists(atPath: url.path))
        try coordinator.destroyPersistentStore(at: url, type: .binary)

        let other = scratch.file("other")
        try Data("other".utf8).write(to: other)
        let refusal = expectThrows(CocoaError.self) {
            try coordinator.destroyPersistentStore(at: other, type: .binary)
        }
        expect(refusal?.code == .fileReadCorruptFile && FileManager.default.fileExists(atPath: other.path))
        let force: [AnyHashable: Any] = [NSPersistentStoreForceDestroyOption: true]
        try coordinator.destroyPersistentStore(at: other, type: .binary, options: force)
        expect(!FileManager.default.fileExists(atPath: other.path))
    }

    @Test func `a binary store is migrated to SQLite, and none is migrated to a binary one`() throws {
        let context = try open()
        try fill(context)
        let coordinator = try require(context.persistentStoreCoordinator)
        let moved = try coordinator.migratePersistentStore(
            coordinator.persistentStores[0],
            to: scratch.file("guide.sqlite"),
            type: .sqlite
        )
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = coordinator
        try reader.performAndWait {
            let bars = try reader.fetch(NSFetchRequest<Bar>(entityName: "Bar"))
            expect(bars.map(\.beers) == [12] && bars.first?.photos.map(\.title) == ["3", "1", "2"])
            expect(bars.first?.fans.count == 2 && bars.first?.colour == NSArray(array: ["red", 1]))
        }
        expectThrows(CocoaError.self) {
            try coordinator.migratePersistentStore(moved, to: scratch.file("back.binary"), type: .binary)
        }
        expectEqual(coordinator.persistentStores, [moved])
        expect(!FileManager.default.fileExists(atPath: scratch.file("back.binary").path))
    }

    @Test func `a file of a later version, and a value that cannot be decoded, are errors`() throws {
        try fill(try open())
        let whole = try require(try BinaryStoreFile(contentsOf: url))
        let damaged = whole.objects.map { object in
            var values = object.values
            if object.entity == "Bar" { values["colour"] = .data(Data([1, 2, 3])) }
            return BinaryStoreFile.Object(entity: object.entity, key: object.key, values: values, links: object.links)
        }
        try BinaryStoreFile(metadata: whole.metadata, lastKey: whole.lastKey, objects: damaged).write(to: url)
        let undecodable = expectThrows(CocoaError.self) { try open() }
        expectEqual(undecodable?.localizedDescription.contains("colour"), true)

        var list = BinaryPropertyList()
        let root = ["format": list.append(.string("StrataBinaryStore")), "version": list.append(.integer(2))]
        _ = list.append(.dictionary(root))
        try list.encoded().write(to: url)
        let later = expectThrows(CocoaError.self) { try open() }
        expectEqual(later?.code, .featureUnsupported)
    }

    @Test(arguments: DifferentialSeeds.all)
    func `a damaged file is an error and never stops the program`(seed: UInt64) throws {
        // One for all rounds: a model that was in use stays for as long as the process lives.
        let model = GuideModel.make()
        try fill(try open(model))
        let whole = try Data(contentsOf: url)
        var random = SeededRandom(seed: seed)
        for round in 0..<300 {
            var damaged = whole
            if round % 10 == 0 { damaged = damaged.prefix(Int.random(in: 0..<whole.count, using: &random)) }
            for _ in 0..<Int.random(in: 1...4, using: &random) where !damaged.isEmpty {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            try damaged.write(to: url)
            do {
                try close(try open(model))
            } catch {
                expect(error is CocoaError, "\(error)")
            }
        }
    }
}
