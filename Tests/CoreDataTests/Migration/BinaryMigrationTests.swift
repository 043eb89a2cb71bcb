import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// Migrations of a store that is one file: it is read and written as a whole, and migrated object by object.
@Suite("Migration of binary stores")
struct BinaryMigrationTests {
    private let scratch: ScratchFolder
    private let folder: URL
    private let models: [NSManagedObjectModel]
    private var url: URL { scratch.file("shop.binary") }

    /// Makes a folder with two versions.
    ///
    /// The second renames an attribute and adds a required one.
    init() throws {
        scratch = try ScratchFolder()
        let folder = scratch.file("Shop.xcdatamodeld")
        let attributes = [
            "<attribute name=\"n\" optional=\"YES\" attributeType=\"String\"/>",
            """
            <attribute name=\"name\" optional=\"YES\" attributeType=\"String\" elementID=\"n\"/>
            <attribute name=\"price\" attributeType=\"Integer 16\" defaultValueString=\"7\"/>
            """,
        ]
        models = try attributes.enumerated().map { index, attributes in
            let version = folder.appendingPathComponent("Shop \(index + 1).xcdatamodel")
            try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
            let text = """
                <?xml version="1.0" encoding="UTF-8"?><model><entity name="A">\(attributes)
                <relationship name="next" optional="YES" maxCount="1" destinationEntity="A" inverseName="before" inverseEntity="A"/>
                <relationship name="before" optional="YES" maxCount="1" destinationEntity="A" inverseName="next" inverseEntity="A"/>
                </entity></model>
                """
            try Data(text.utf8).write(to: version.appendingPathComponent("contents"))
            return try require(NSManagedObjectModel(contentsOf: version))
        }
        self.folder = folder
    }

    private func use<R>(
        _ version: Int,
        _ options: [AnyHashable: Any] = [:],
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: models[version - 1])
        let store = try coordinator.addPersistentStore(
            ofType: NSBinaryStoreType,
            configurationName: nil,
            at: url,
            options: options
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let result = Result { try context.performAndWait { try body(context) } }
        try coordinator.remove(store)
        return try result.get()
    }

    private var migrating: [AnyHashable: Any] {
        AgingStore.migrating.merging([NSPersistentStoreAllowsProgressiveMigrationOption: folder]) { $1 }
    }

    private func fill() throws {
        try use(1) { context in
            let first = context.insert("A", ["n": "first"])
            first.setValue(context.insert("A", ["n": "second"]), forKey: "next")
            try context.save()
        }
    }

    @Test func `m015 a binary store is migrated object by object when it is added`() throws {
        try fill()
        let before = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .binary, at: url)
        try use(2, migrating) { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "A")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let objects = try context.fetch(request)
            expectEqual(objects.map { $0.value(forKey: "name") as? String }, ["first", "second"])
            expectEqual(objects.map { $0.value(forKey: "price") as? Int }, [7, 7])
            expect(objects[0].value(forKey: "next") as? NSManagedObject === objects[1])
            objects[0].setValue("changed", forKey: "name")
            try context.save()
        }
        // The migrated store needs no option any more.
        try expectEqual(use(2) { try $0.all("A").count }, 2)
        let after = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .binary, at: url)
        expectEqual(after[NSStoreUUIDKey] as? String, before[NSStoreUUIDKey] as? String)
        expectEqual(after[NSStoreModelVersionHashesKey] as? [String: Data], models[1].entityVersionHashesByName)
        let files = try FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path)
        expectEqual(files.sorted(), ["Shop.xcdatamodeld", "shop.binary"], "nothing is left over")
    }

    @Test func `a binary store that is not to be migrated, or cannot be, is refused and stays as it is`() throws {
        try fill()
        let before = try Data(contentsOf: url)
        for options in [[:], AgingStore.migrating, migrating.merging([NSReadOnlyPersistentStoreOption: true]) { $1 }] {
            let error = expectThrows(CocoaError.self) { try use(2, options) { _ in } }
            expect([134100, 134130].contains(error?.errorCode), "\(String(describing: error))")
            try expectEqual(Data(contentsOf: url), before)
        }
    }

    @Test func `a binary store is copied before its migration`() throws {
        try fill()
        let backups = scratch.file("backups")
        let before = try Data(contentsOf: url)
        try use(2, migrating.merging([NSPersistentStoreMigrationBackupFolderOption: backups]) { $1 }) { _ in }
        let copies = try FileManager.default.contentsOfDirectory(at: backups, includingPropertiesForKeys: nil)
        try expectEqual(copies.map { try Data(contentsOf: $0) }, [before])
    }

    /// M-14: the program takes responsibility for the agreement of the layouts.
    @Test(arguments: [StoreKind.migrating])
    func `m014 without the check of versions a store is opened as it is, and not migrated`(_ kind: StoreKind)
        throws
    {
        let store = try AgingStore(kind)
        let named = { (modifier: String) in
            "<entity name=\"A\" versionHashModifier=\"\(modifier)\"><attribute name=\"n\" optional=\"YES\" attributeType=\"String\"/></entity>"
        }
        try store.use(named("1")) { $0.insert("A", ["n": "kept"]) }
        let ignoring: [AnyHashable: Any] = [NSIgnorePersistentStoreVersioningOption: true]
        try store.use(named("2"), ignoring) { context throws in
            try expectEqual(context.all("A").map { $0.value(forKey: "n") as? String }, ["kept"])
        }
        // The store has kept its version, so nothing was migrated.
        try store.use(named("1"), [NSMigratePersistentStoresAutomaticallyOption: false]) { context throws in
            try expectEqual(context.all("A").count, 1)
        }
        // A layout that differs leads to an error when the rows are read, or when the store is opened.
        let other = "<entity name=\"A\"><attribute name=\"other\" optional=\"YES\" attributeType=\"String\"/></entity>"
        expectThrows(CocoaError.self) {
            try store.use(other, ignoring) { try $0.all("A").first?.value(forKey: "other") }
        }
        try expectEqual(store.use(named("1")) { try $0.all("A").count }, 1)
    }
}
