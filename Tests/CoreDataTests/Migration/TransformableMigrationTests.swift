import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

/// Values of transformable attributes in migrations by objects: none is lost silently.
@Suite("Transformable values in migrations")
struct TransformableMigrationTests {
    private static let known = "NSSecureUnarchiveFromData"
    private static let unknown = "NobodyKnowsThisTransformer"

    private static func model(_ transformer: String, _ more: String = "") throws -> NSManagedObjectModel {
        try NSManagedObjectModel.parsing(
            """
            <entity name="A" representedClassName="NSManagedObject"><attribute name="n" attributeType="String" optional="YES"/>
            <attribute name="blob" attributeType="Transformable" optional="YES" valueTransformerName="\(transformer)"/>
            \(more)</entity>
            """
        )
    }

    private static let text = "<attribute name=\"text\" attributeType=\"String\" optional=\"YES\"/>"
    private static let data = "<attribute name=\"data\" attributeType=\"Binary\" optional=\"YES\"/>"

    private func filled() throws -> AgingStore {
        let store = try AgingStore(.migrating)
        try store.use(Self.model(Self.known)) { context in
            context.make("A", "a", ["blob": "value" as NSString])
            context.make("A", "b")
            try context.save()
        }
        return store
    }

    /// Migrates a store to another place, and returns the values there, as a program sees them that knows the transformer.
    private func migrate(
        _ store: AgingStore,
        from source: String,
        to destination: String,
        more: String = "",
        type: NSPersistentStore.StoreType? = nil,
        _ attributes: [String: String],
        policy: String? = nil
    ) throws -> [String] {
        let place = store.scratch.file("new-\(UUID().uuidString).store")
        let type = type ?? store.kind.type
        defer { if store.kind == .postgreSQL, type == store.kind.type { DatabaseTexts.drop(place) } }
        let mapping = NSMappingModel()
        mapping.entityMappings = [
            LibraryVersions.entity("A", "A", attributes: attributes.merging(["n": "$source.n"]) { $1 })
        ]
        mapping.entityMappings[0].entityMigrationPolicyClassName = policy
        do {
            try NSMigrationManager(sourceModel: Self.model(source), destinationModel: Self.model(destination, more))
                .migrateStore(from: store.url, type: store.kind.type, mapping: mapping, to: place, type: type)
        } catch {
            expect(!FileManager.default.fileExists(atPath: place.path))
            throw error
        }
        return try LibraryMove.change(place, try Self.model(Self.known, more), type: type) { context in
            try context.all("A").map { object in
                "\(object.value(forKey: "n") ?? "-") \(object.value(forKey: "blob") ?? "-")"
            }.sorted()
        }
    }

    @Test func `a plain copy keeps the bytes of a value that cannot be read`() throws {
        let store = try filled()

        for destination in [Self.unknown, Self.known] {
            try expectEqual(
                migrate(store, from: Self.unknown, to: destination, ["blob": "$source.blob"]),
                ["a value", "b -"]
            )
        }
    }

    @Test(arguments: [
        ("text", "$source.blob.description"), ("text", "uppercase:($source.blob)"), ("data", "$source.blob"),
        ("blob", "TERNARY($source.blob == nil, \"none\", $source.blob)"),
    ])
    func `an expression that needs a value that cannot be read is an error`(_ property: String, _ text: String) throws {
        let store = try filled()

        let error = try #require(throws: CocoaError.self) {
            try migrate(store, from: Self.unknown, to: Self.known, more: Self.text + Self.data, [property: text])
        }

        expectEqual(error.code, .migration)
        expectEqual(error.userInfo["property"] as? String, property)
        expect(error.localizedDescription.contains("\"blob\""), "\(error)")
    }

    @Test func `a store that keeps values and no bytes refuses a value that cannot be read`() throws {
        let store = try filled()

        let error = try #require(throws: CocoaError.self) {
            try migrate(store, from: Self.unknown, to: Self.known, type: .binary, ["blob": "$source.blob"])
        }

        expectEqual(error.code, .migration)
        try expectEqual(
            migrate(store, from: Self.known, to: Self.known, type: .binary, ["blob": "$source.blob"]),
            ["a value", "b -"]
        )
    }

    @Test func `a value that is not needed need not be readable`() throws {
        try expectEqual(migrate(filled(), from: Self.unknown, to: Self.known, [:]), ["a -", "b -"])
    }

    @Test(arguments: [nil, "BlobPolicy"])
    func `a value that the new transformer does not take is an error`(_ policy: String?) throws {
        let store = try filled()
        NSEntityMigrationPolicy.register(BlobPolicy.self)
        ValueTransformer.setValueTransformer(RefusingTransformer(), forName: .init("RefusingTransformer"))

        let error = try #require(throws: CocoaError.self) {
            try migrate(
                store,
                from: Self.known,
                to: "RefusingTransformer",
                policy == nil ? ["blob": "$source.blob"] : [:],
                policy: policy
            )
        }

        expectEqual(error.code, .managedObjectValidation)
        expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "blob")
    }

    @Test func `a value that cannot be read in a composite attribute is an error`() throws {
        func model(_ transformer: String) -> NSManagedObjectModel {
            let blob = NSAttributeDescription()
            (blob.name, blob.type, blob.isOptional, blob.valueTransformerName) = (
                "blob", .transformable, true, transformer
            )
            let whole = NSCompositeAttributeDescription()
            (whole.name, whole.isOptional, whole.elements) = ("whole", true, [blob])
            let entity = NSEntityDescription()
            entity.name = "A"
            entity.properties = [whole]
            let model = NSManagedObjectModel()
            model.entities = [entity]
            return model
        }
        let store = try AgingStore(.migrating)
        try store.use(model(Self.known)) { context in
            context.insert("A", ["whole": ["blob": "value"] as [String: Any]])
            try context.save()
        }
        let place = store.scratch.file("new.store")
        let mapping = NSMappingModel()
        mapping.entityMappings = [LibraryVersions.entity("A", "A", attributes: ["whole": "$source.whole"])]
        let type = store.kind.type

        let error = try #require(throws: CocoaError.self) {
            try NSMigrationManager(sourceModel: model(Self.unknown), destinationModel: model(Self.known))
                .migrateStore(from: store.url, type: type, mapping: mapping, to: place, type: type)
        }

        expectEqual(error.code, .migration)
        expect(error.localizedDescription.contains("\"whole.blob\""), "\(error)")
    }
}

/// Gives each object a value that its attribute's transformer may refuse.
final class BlobPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        let made = manager.destinationInstances(forEntityMappingName: "AToA", sourceInstances: [sInstance])
        for object in made { object.setValue("value" as NSString, forKey: "blob") }
    }
}

/// Takes no value.
final class RefusingTransformer: ValueTransformer {
    override func transformedValue(_ value: Any?) -> Any? { nil }
    override func reverseTransformedValue(_ value: Any?) -> Any? { nil }
}
