import CoreData

/// Mapping models: mutated ones, compiled or not, and ones that must be refused for one reason.
///
/// If a mapping model can be read, then a migration uses it, which must succeed, or fail with an error and leave no
/// store.
struct HostileMappings {
    private let run: Run
    private let source: NSManagedObjectModel
    private let destination: NSManagedObjectModel
    private let store: URL
    private let compiled: Data

    /// Makes the two versions of the model, a store of the first version, and a compiled mapping model.
    init(_ run: Run) throws {
        self.run = run
        let folder = run.folder.appendingPathComponent("mappings")
        for (name, extra) in [
            ("One", ""), ("Two", "<attribute name=\"size\" optional=\"YES\" attributeType=\"Integer 32\"/>"),
        ] {
            let version = folder.appendingPathComponent("\(name).xcdatamodel")
            try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
            let text = """
                <model><entity name="Item"><attribute name="name" optional="YES" attributeType="String"/>\(extra)
                <relationship name="next" optional="YES" maxCount="1" destinationEntity="Item"/></entity></model>
                """
            try Data(text.utf8).write(to: version.appendingPathComponent("contents"))
        }
        source = try NSManagedObjectModel(reading: folder.appendingPathComponent("One.xcdatamodel"))
        destination = try NSManagedObjectModel(reading: folder.appendingPathComponent("Two.xcdatamodel"))
        for entity in source.entities + destination.entities { entity.managedObjectClassName = "NSManagedObject" }
        store = folder.appendingPathComponent("store.sqlite")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: source)
        let added = try coordinator.addPersistentStore(type: .sqlite, at: store)
        let context = coordinator.context()
        try context.performAndWait {
            let items = (0..<3).map { number in
                let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                item.setValue("item \(number)", forKey: "name")
                return item
            }
            items[0].setValue(items[2], forKey: "next")
            try context.save()
        }
        try coordinator.remove(added)
        compiled = try ArchivedMappingModel.archive()
    }

    // MARK: - Inputs

    private static func text(_ path: String = "Two.xcdatamodel", _ name: String = "name", _ members: String = "z2")
        -> String
    {
        """
        <database>
        <object type="XDDEVMAPPINGMODEL" id="z1"><attribute name="sourcemodelpath">One.xcdatamodel</attribute>\
        <attribute name="destinationmodelpath">\(path)</attribute><relationship name="entitymappings" idrefs="\(members)"/></object>
        <object type="XDDEVENTITYMAPPING" id="z2"><attribute name="name">ItemToItem</attribute>\
        <attribute name="sourcename">Item</attribute><attribute name="destinationname">Item</attribute>\
        <attribute name="autogenerateexpression">1</attribute><attribute name="mappingnumber">1</attribute>\
        <attribute name="sourcefilterpredicatestring">name != "none"</attribute>\
        <relationship name="attributemappings" idrefs="z3"/><relationship name="relationshipmappings" idrefs="z4"/></object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z3"><attribute name="name">\(name)</attribute>\
        <attribute name="sourcekeypath">name</attribute></object>
        <object type="XDDEVRELATIONSHIPMAPPING" id="z4"><attribute name="name">next</attribute>\
        <attribute name="sourcekeypath">next</attribute><attribute name="sourcemappingname">ItemToItem</attribute></object>
        </database>
        """
    }

    /// Reads a mapping model with changed characters or bytes, and migrates by it.
    func readMutated(_ number: Int, _ stream: inout SeededStream) throws {
        if stream.chance(0.5) {
            return try read(Data(Hostile.mutated(Self.text(), &stream).utf8), number, "a mutated mapping model", nil)
        }
        var data = compiled
        for _ in 0...stream.below(5) { data[stream.below(data.count)] = UInt8(stream.below(256)) }
        if stream.chance(0.2) { data = data.prefix(stream.below(data.count)) }
        try read(data, number, "a mutated compiled mapping model", nil)
    }

    /// Reads a mapping model that contradicts itself, or a file that is no mapping model.
    func readWrong(_ number: Int, _ stream: inout SeededStream) throws {
        let corrupt = CocoaError.Code.fileReadCorruptFile
        let many = String(repeating: "z2 ", count: 1 + stream.skewed(3_000))
        let wrong: [(String, Data, CocoaError.Code?)] = [
            ("an empty file", Data(), corrupt), ("half of an archive", compiled.prefix(compiled.count / 2), corrupt),
            ("an archive of a list", try Self.archive([1, 2]), corrupt),
            ("an archive of a model", try Self.archive(["NSEntityMappings": []]), corrupt),
            ("a file without a mapping model", Data("<database/>".utf8), corrupt),
            ("an entity of XML", Data("<!DOCTYPE d [<!ENTITY a \"b\">]>\(Self.text())".utf8), corrupt),
            ("a model outside of its folder", Data(Self.text("../../One.xcdatamodel").utf8), corrupt),
            ("a model that is not there", Data(Self.text("Three.xcdatamodel").utf8), .fileReadNoSuchFile),
            ("a mapping that is named often", Data(Self.text("Two.xcdatamodel", "name", many).utf8), nil),
            ("an attribute that is not there", Data(Self.text("Two.xcdatamodel", "none").utf8), nil),
            ("a relationship for an attribute", Data(Self.text("Two.xcdatamodel", "next").utf8), nil),
        ]
        let (name, data, code) = stream.pick(wrong)
        let isObedient = run.isSabotaged("obedient")
        try read(isObedient ? Data(Self.text().utf8) : data, number, "a mapping model with \(name)", code)
    }

    private static func archive(_ value: NSObject) throws -> Data {
        try NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: false)
    }

    private static func archive(_ value: [Int]) throws -> Data { try archive(value as NSArray) }
    private static func archive(_ value: [String: [Int]]) throws -> Data { try archive(value as NSDictionary) }

    // MARK: - Using them

    private func read(_ data: Data, _ number: Int, _ name: String, _ demanded: CocoaError.Code?) throws {
        let file = run.folder.appendingPathComponent("mappings/mapping-\(number)")
        defer { unlink(file.path) }
        try data.write(to: file)
        do {
            let mapping = try NSMappingModel(reading: file)
            run.count("mappings-read")
            if let demanded { run.find("input \(number): \(name) was read, not refused with \(demanded.rawValue)") }
            migrate(by: mapping, number, name)
        } catch let error as CocoaError {
            run.count("mappings-refused")
            if let demanded, error.code != demanded {
                run.find("input \(number): \(name) gave \(describe(error)), not \(demanded.rawValue)")
            }
        }
    }

    private func migrate(by mapping: NSMappingModel, _ number: Int, _ name: String) {
        let place = run.folder.appendingPathComponent("mappings/migrated-\(number).sqlite")
        defer { for suffix in ["", "-wal", "-shm"] { unlink(place.path + suffix) } }
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        do {
            try manager.migrateStore(from: store, type: .sqlite, mapping: mapping, to: place, type: .sqlite)
            run.count("mappings-carried-out")
        } catch is CocoaError {
            run.count("migrations-refused")
            if FileManager.default.fileExists(atPath: place.path) {
                run.find("input \(number): \(name) has left a store though it failed")
            }
        } catch { run.find("input \(number): \(name) gave \(describe(error))") }
    }
}

/// A compiled mapping model in the form in which it is archived.
///
/// Archives can only contain classes of the top level.
final class ArchivedMappingModel: NSObject, NSCoding {
    override init() { super.init() }
    init?(coder: NSCoder) { nil }
    func encode(with coder: NSCoder) {
        coder.encode(NSArray(object: ArchivedEntityMapping()), forKey: "NSEntityMappings")
    }

    static func archive() throws -> Data {
        let archiver = NSKeyedArchiver(requiringSecureCoding: false)
        archiver.setClassName("NSMappingModel", for: ArchivedMappingModel.self)
        archiver.setClassName("NSEntityMapping", for: ArchivedEntityMapping.self)
        archiver.setClassName("NSPropertyMapping", for: ArchivedPropertyMapping.self)
        archiver.encode(ArchivedMappingModel(), forKey: NSKeyedArchiveRootObjectKey)
        archiver.finishEncoding()
        return archiver.encodedData
    }
}

/// An entity mapping in the archive.
final class ArchivedEntityMapping: NSObject, NSCoding {
    override init() { super.init() }
    init?(coder: NSCoder) { nil }

    func encode(with coder: NSCoder) {
        coder.encode("ItemToItem" as NSString, forKey: "NSMappingName")
        coder.encode("Item" as NSString, forKey: "NSSourceEntityName")
        coder.encode("Item" as NSString, forKey: "NSDestinationEntityName")
        coder.encode(5, forKey: "NSMappingType")
        coder.encode(NSArray(object: ArchivedPropertyMapping("name")), forKey: "NSAttributeMappings")
        coder.encode(NSArray(object: ArchivedPropertyMapping("next")), forKey: "NSRelationshipMappings")
    }
}

/// A property mapping in the archive.
final class ArchivedPropertyMapping: NSObject, NSCoding {
    private let name: String

    init(_ name: String) { self.name = name }
    init?(coder: NSCoder) { nil }
    func encode(with coder: NSCoder) { coder.encode(name as NSString, forKey: "NSDestinationPropertyName") }
}
