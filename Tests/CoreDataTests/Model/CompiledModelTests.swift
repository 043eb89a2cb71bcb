import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Models in stores")
struct CompiledModelTests {
    /// The content of a store's model cache, or `nil` when it has none.
    private static func cache(of pair: AppleStores.Pair) throws -> Data? {
        let tables = try AppleStores.rows("SELECT name FROM sqlite_master WHERE name = 'Z_MODELCACHE'", in: pair)
        guard !tables.isEmpty else { return nil }
        return try AppleStores.rows("SELECT Z_CONTENT FROM Z_MODELCACHE", in: pair).first?.first as? Data
    }

    @Test(arguments: AppleStores.pairs)
    func `the model in a store has the store's hashes, and what its source has`(_ pair: AppleStores.Pair) throws {
        guard let data = try Self.cache(of: pair) else {
            // Frameworks before 2017 kept no copy.
            expect(pair.store.contains("SurfJournal"))
            return
        }
        let model = try NSManagedObjectModel(cachedModelData: data)
        let source = try AppleStores.model(pair)

        expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: try AppleStores.metadata(of: pair)))
        for (name, entity) in source.entitiesByName {
            let copy = try model.entity(name)
            expect(copy.superentity?.name == entity.superentity?.name && copy.isAbstract == entity.isAbstract)
            expectEqual(Set(copy.uniquenessConstraintNames), Set(entity.uniquenessConstraintNames))
            // One of the sources was put together from its store, which knows nothing of fetched properties.
            let persistent = { (entity: NSEntityDescription) in
                Set(entity.ownProperties.filter(\.isPersistent).map(\.name))
            }
            expectEqual(persistent(copy), persistent(entity))
            for (name, attribute) in entity.attributesByName {
                let other = try require(copy.attributesByName[name])
                expect(other.type == attribute.type && other.isOptional == attribute.isOptional)
                expectEqual(other.allowsExternalBinaryDataStorage, attribute.allowsExternalBinaryDataStorage)
            }
            for (name, relationship) in entity.relationshipsByName {
                let other = try require(copy.relationshipsByName[name])
                expect(other.deleteRule == relationship.deleteRule && other.isOrdered == relationship.isOrdered)
                expectEqual(other.inverseRelationship?.name, relationship.inverseRelationship?.name)
            }
        }
        try model.tryFreeze()
    }

    @Test(.enabled(if: AppleStores.has("books"), "the store of books is not here"))
    func `predicates, derivations, queries and configurations of the model in a store are read`() throws {
        let pair = try require(AppleStores.pairs.first { $0.store.contains("books-history") })
        let model = try NSManagedObjectModel(cachedModelData: try require(try Self.cache(of: pair)))
        let book = try model.entity("Book")

        let title = try require(book.attributesByName["title"])
        try require(title.validationPredicates.count == 2)
        expectEqual(title.validationWarnings.first as? String, "Title must have a length between 3 and 50 chars.")
        expect(title.validationPredicates.allSatisfy { $0.evaluate(with: "a good title") })
        expect(
            !title.validationPredicates[0].evaluate(with: "ti") && !title.validationPredicates[1].evaluate(with: "long")
        )
        let count = try require(book.attributesByName["pagesCount"] as? NSDerivedAttributeDescription)
        expectEqual(count.derivationText, "count:(pages)")
        let fetched = model.entities.flatMap(\.ownProperties).compactMap { $0 as? NSFetchedPropertyDescription }
        expectEqual(Set(fetched.map(\.name)), ["feedbacks", "favFeedbacks"])
        expect(fetched.allSatisfy { $0.fetchRequest?.entityName == "Feedback" && $0.fetchRequest?.predicate != nil })
        expect(fetched.contains { $0.fetchRequest?.sortDescriptors?.first?.key == "rating" })
        expectEqual(
            Set(model.configurations.dropFirst()),
            ["SampleConfigurationV2Part1", "SampleConfigurationV2Part2"]
        )
    }

    @Test func `the validation rules of the elements of a composite attribute are read`() throws {
        let zip = NSAttributeDescription()
        (zip.name, zip.type, zip.isOptional) = ("zip", .string, true)
        let address = NSCompositeAttributeDescription()
        (address.name, address.elements) = ("address", [zip])
        let entity = NSEntityDescription()
        entity.name = "Person"
        entity.properties = [address]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let archive = try Inflate.inflate(try require(model.cachedModelData()), limit: 1 << 20)

        let copy = NSManagedObjectModel()
        try copy.read(archive: try Self.adding("no zip is right", to: "zip", in: archive), isStrict: true)

        let read = try require(copy.entity("Person").attributesByName["address"] as? NSCompositeAttributeDescription)
        let element = try require(read.elements.first)
        expectEqual(element.validationPredicates, [NSPredicate(value: false)])
        expectEqual(element.validationWarnings.map { "\($0)" }, ["no zip is right"])
        let stack = try Stack(.memory, model: copy)
        try stack.inContext { context in
            let person = context.insert("Person", ["address": ["zip": "1"] as [String: Any]])
            let error = try #require(throws: CocoaError.self) { try context.save() }
            expectEqual(error.code, .managedObjectValidation)
            expect(error.localizedDescription.contains("no zip is right"), "\(error)")
            person.setValue(nil, forKey: "address")
            try context.save()
        }
    }

    /// An archive of a model in which a property has a rule that no value fulfils.
    private static func adding(_ warning: String, to name: String, in archive: Data) throws -> Data {
        var list = try BinaryPropertyList(archive)
        guard case .dictionary(var root)? = list[list.root],
            case .array(var objects)? = root["$objects"].flatMap({ list[$0] })
        else { throw BinaryPropertyList.Malformed() }
        func add(_ node: BinaryPropertyList.Node) -> Int {
            objects.append(list.append(node))
            return list.append(.uid(objects.count - 1))
        }
        func add(_ type: String, _ fields: [String: Int]) -> Int {
            let text = list.append(.string(type))
            let names = list.append(.array([text]))
            return add(
                .dictionary(
                    fields.merging(["$class": add(.dictionary(["$classname": text, "$classes": names]))]) { $1 }
                )
            )
        }
        func array(_ member: Int) -> Int { add("NSArray", ["NS.objects": list.append(.array([member]))]) }
        for object in objects {
            guard case .dictionary(var fields)? = list[object],
                case .uid(let number)? = fields["NSPropertyName"].flatMap({ list[$0] }),
                case .string(name)? = list[objects[number]]
            else { continue }
            fields["NSValidationPredicates"] = array(add("NSFalsePredicate", [:]))
            fields["NSValidationWarnings"] = array(add(.string(warning)))
            list.replace(object, with: .dictionary(fields))
        }
        root["$objects"] = list.append(.array(objects))
        _ = list.append(.dictionary(root))
        return list.encoded()
    }

    @Test func `m168 m187 compiled models are read, of a folder the current version`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).momd")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, part) in [("Old", "Bookmarks_V2"), ("New", "Bookmarks_V5")] {
            let pair = try require(AppleStores.pairs.first { $0.store.contains(part) })
            let archive = try Inflate.inflate(try require(try Self.cache(of: pair)), limit: 1 << 20)
            try archive.write(to: folder.appendingPathComponent("\(name).mom"))
        }
        let several = expectThrows(CocoaError.self) { try NSManagedObjectModel(reading: folder) }
        let info = try PropertyListSerialization.data(
            fromPropertyList: ["NSManagedObjectModel_CurrentVersionName": "New"],
            format: .xml,
            options: 0
        )
        try info.write(to: folder.appendingPathComponent("VersionInfo.plist"))

        let model = try require(NSManagedObjectModel(contentsOf: folder))
        let old = try NSManagedObjectModel(reading: folder.appendingPathComponent("Old.mom"))
        let checksums = try NSManagedObjectModel.__checksumsForVersionedModel(at: folder)

        expectEqual(several?.localizedDescription.contains("several versions"), true)
        expect(model.versionChecksum != old.versionChecksum)
        expectEqual(checksums, ["Old": old.versionChecksum, "New": model.versionChecksum])
    }

    @Test(arguments: DifferentialSeeds.all)
    func `a damaged model in a store is an error and never stops the program`(seed: UInt64) throws {
        let pair = try require(AppleStores.pairs.first { $0.store.hasPrefix("sync") })
        let data = try require(try Self.cache(of: pair))
        let archive = try Inflate.inflate(data, limit: 1 << 20)

        expectThrows(CocoaError.self) { try NSManagedObjectModel(cachedModelData: Data()) }
        expectThrows(CocoaError.self) { try NSManagedObjectModel(cachedModelData: data.dropLast(200)) }
        expectThrows(CocoaError.self) { try NSManagedObjectModel(cachedModelData: archive) }
        var random = SeededRandom(seed: seed)
        for _ in 0..<300 {
            var damaged = archive
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let model = NSManagedObjectModel()
            do {
                try model.read(archive: damaged, isStrict: false)
                try model.tryFreeze()
            } catch {
                expect(error is ModelError || error is CocoaError)
            }
        }
    }
}

@Suite("Unpacking")
struct InflateTests {
    /// Data packed by zlib, in Base64, and what it unpacks to.
    private static let samples: [(packed: String, text: String)] = [
        // Empty; stored; fixed codes; a long run with fixed codes; own codes.
        ("AwA=", ""),
        ("AQMA/P9hYmM=", "abc"),
        ("S0xKBgA=", "abc"),
        ("S0wEAgA=", "aaaaa"),
        ("S0wcBaNgFAx3AAA=", String(repeating: "a", count: 1000)),
        (
            """
            ZY+7EYBACERbsQTvB1xBBiZGJnbvjMPbwItggN19HNd93s++HV8tWXvWydyyqSObxqRzY4gCl4aITfdsvLLiFI0xmUrCxkXJzWA1RSNyvaIb\
            VgOfIJOoCl+wGogqmaF/9SbywiTAMXFh2PApSocP0MDPiXJN2tIsx5LL0P6RghCWQMNe
            """, (0..<60).map { "entity\($0 * $0 % 97)" }.joined(separator: " ")
        ),
    ]

    @Test func `stored, fixed and own codes are unpacked`() throws {
        for sample in Self.samples {
            let packed = try require(Data(base64Encoded: sample.packed))
            expectEqual(String(decoding: try Inflate.inflate(packed, limit: 1 << 20), as: UTF8.self), sample.text)
        }
    }

    @Test func `the limit holds`() throws {
        let packed = try require(Data(base64Encoded: "S0wcBaNgFAx3AAA="))

        try expectEqual(Inflate.inflate(packed, limit: 1000).count, 1000)
        expectThrows(Inflate.Malformed.self) { try Inflate.inflate(packed, limit: 999) }
    }

    @Test(arguments: DifferentialSeeds.all)
    func `damaged data throws and never stops the program`(seed: UInt64) throws {
        expectThrows(Inflate.Malformed.self) { try Inflate.inflate(Data([0x07]), limit: 100) }
        var random = SeededRandom(seed: seed)
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...60, using: &random)
            let data = Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
            _ = try? Inflate.inflate(data, limit: 10_000)
        }
    }
}
