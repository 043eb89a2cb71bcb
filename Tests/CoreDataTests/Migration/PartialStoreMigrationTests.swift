import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

/// Migrations by objects of stores that hold a part of their model: the other entities have no objects there.
@Suite("Migration of a part of a model by objects")
struct PartialStoreMigrationTests {
    /// The versions; `Top` and `C` are in no store of the configuration "Local".
    private static let sketches = [
        "Top abstract: t String, old String\nL(Top): n String, size Int32\nM(L): m String\nC: n String, gone String",
        "Top abstract: t String\nL(Top): n String, width{size} Int32\nM(L): m String\nC: n String, x Int32",
    ]

    private static func model(_ version: Int) -> NSManagedObjectModel {
        let model = ModelSketch.model(sketches[version - 1])
        let members = ["L", "M"].compactMap { model.entitiesByName[$0] }
        model.setEntities(members, forConfigurationName: "Local")
        return model
    }

    private static func use<R>(
        _ url: URL,
        _ version: Int,
        _ type: NSPersistentStore.StoreType,
        configuration: String? = "Local",
        options: [AnyHashable: Any]? = nil,
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model(version))
        let store = try coordinator.addPersistentStore(
            type: type,
            configuration: configuration,
            at: url,
            options: options
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let result = Result { try context.performAndWait { try body(context) } }
        try coordinator.remove(store)
        return try result.get()
    }

    /// A store of the first version with the configuration.
    private func filled(_ type: NSPersistentStore.StoreType) throws -> (folder: ScratchFolder, url: URL) {
        let folder = try ScratchFolder()
        let url = folder.file("partial.store")
        try Self.use(url, 1, type) { context in
            context.make("L", "a", ["size": 1, "t": "top"])
            context.make("M", "b", ["size": 2, "m": "m"])
            try context.save()
        }
        return (folder, url)
    }

    private static let result = ["L a t=top width=1", "M b m=m t=- width=2"]

    private static func lines(_ context: NSManagedObjectContext) throws -> [String] {
        try ["L", "M"].flatMap { name in
            let request = NSFetchRequest<NSManagedObject>(entityName: name)
            request.includesSubentities = false
            let keys = ["t", "width"]
            return try context.fetch(request).map { object in
                let values = ((name == "M" ? ["m"] : []) + keys).map { "\($0)=\(object.value(forKey: $0) ?? "-")" }
                return ([name, object.value(forKey: "n") as? String ?? ""] + values).joined(separator: " ")
            }
        }
    }

    private static func drop(_ url: URL, _ type: NSPersistentStore.StoreType) {
        if StoreKind.isPostgreSQL, type == StoreKind.postgreSQL.type { DatabaseTexts.drop(url) }
    }

    @Test(arguments: [StoreKind.migrating.type, .binary])
    func `a mapping model for the whole model migrates what the store holds`(_ type: NSPersistentStore.StoreType) throws
    {
        let (folder, url) = try filled(type)
        defer { Self.drop(url, type) }
        let mapping = try NSMappingModel.inferredMappingModel(
            forSourceModel: Self.model(1),
            destinationModel: Self.model(2)
        )
        mapping.entityMappings.first { $0.name == "IEM_Transform_C" }?.sourceExpression = NSExpression(
            format:
                "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"C\", \"n != nil\"), $manager.sourceContext, NO)"
        )
        let manager = NSMigrationManager(sourceModel: Self.model(1), destinationModel: Self.model(2))

        try expectEqual(
            manager.migrateInPlace(
                StorePlace(url: url, type: type.rawValue, options: nil),
                mapping,
                from: "Local",
                to: "Local"
            ),
            true
        )

        try expectEqual(Self.use(url, 2, type) { try Self.lines($0) }, Self.result)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: [StoreKind.migrating.type, .binary], [true, false])
    func `the store is migrated to a place for the whole model, in each way`(
        _ type: NSPersistentStore.StoreType,
        _ usesSQL: Bool
    ) throws {
        let (folder, url) = try filled(type)
        let place = folder.file("whole.store")
        defer { for url in [url, place] { Self.drop(url, type) } }
        let mapping = try NSMappingModel.inferredMappingModel(
            forSourceModel: Self.model(1),
            destinationModel: Self.model(2)
        )
        let manager = NSMigrationManager(sourceModel: Self.model(1), destinationModel: Self.model(2))
        manager.usesStoreSpecificMigrationManager = usesSQL

        try manager.migrateStore(from: url, type: type, mapping: mapping, to: place, type: type)

        try Self.use(place, 2, type, configuration: nil) { context in
            try expectEqual(Self.lines(context), Self.result)
            try expectEqual(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "C")), 0)
        }
    }

    @Test func `an inferred migration of a binary store looks at what the store holds`() throws {
        let (folder, url) = try filled(.binary)
        let references = [1, 2].map { version in
            let model = Self.model(version)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let stages = NSStagedMigrationManager([NSLightweightMigrationStage(references: references)])
        let options: [AnyHashable: Any] = [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            NSPersistentStoreStagedMigrationManagerOptionKey: stages,
        ]

        try expectEqual(Self.use(url, 2, .binary, options: options) { try Self.lines($0) }, Self.result)
        try expectEqual(Self.use(url, 2, .binary) { try Self.lines($0) }, Self.result)
        withExtendedLifetime(folder) {}
    }

    @Test func `losses are counted in the entities that the store holds`() throws {
        let (folder, url) = try filled(.binary)
        let stack = try MigrationStack.source(
            model: Self.model(1),
            configuration: "Local",
            type: NSBinaryStoreType,
            at: url,
            options: nil
        )
        defer { stack.close() }
        let destination = ModelSketch.model("Top abstract: old String\nL(Top): n String, size Int32\nM(L): m String")
        let mapping = InferredMapping(
            from: stack.model.storedEntities(forConfigurationName: "Local") ?? [],
            to: destination.entities
        )

        let losses = try LossyMigration.losses(mapping, in: stack)

        expectEqual(losses.map { "\($0.entity).\($0.property ?? "-")" }, ["L.t"])
        withExtendedLifetime(folder) {}
    }

    @Test func `a policy sees the registered objects of a store with a part of the model`() throws {
        let type = StoreKind.migrating.type
        let (folder, url) = try filled(type)
        defer { Self.drop(url, type) }
        NSEntityMigrationPolicy.register(RegisteredObjectsPolicy.self)
        let mapping = NSMappingModel()
        mapping.entityMappings = [
            LibraryVersions.entity("L", "L", attributes: ["n": "$source.n", "t": "$source.t", "width": "$source.size"])
        ]
        mapping.entityMappings[0].entityMigrationPolicyClassName = "RegisteredObjectsPolicy"
        let manager = NSMigrationManager(sourceModel: Self.model(1), destinationModel: Self.model(2))

        _ = try manager.migrateInPlace(
            StorePlace(url: url, type: type.rawValue, options: nil),
            mapping,
            from: "Local",
            to: "Local"
        )

        expectEqual(manager.userInfo?["registered"] as? Int, 1)
        try expectEqual(Self.use(url, 2, type) { try Self.lines($0) }, Array(Self.result.prefix(1)))
        withExtendedLifetime(folder) {}
    }
}

/// Notes the number of registered objects.
final class RegisteredObjectsPolicy: NSEntityMigrationPolicy {
    override func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        manager.userInfo = ["registered": manager.destinationContext.registeredObjects.count]
    }
}
