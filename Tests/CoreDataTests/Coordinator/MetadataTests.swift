import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Metadata of stores")
struct MetadataTests {
    @Test(arguments: StoreKind.allCases)
    func `a store shows its type, its identifier and the hashes of its model`(kind: StoreKind) throws {
        let stack = try Stack(kind)
        let store = try require(stack.coordinator.persistentStores.first)

        let metadata = stack.coordinator.metadata(for: store)

        expectEqual(metadata[NSStoreTypeKey] as? String, store.type)
        expectEqual(metadata[NSStoreUUIDKey] as? String, store.identifier)
        let hashes = metadata[NSStoreModelVersionHashesKey] as? [String: Data]
        expectEqual(hashes, stack.coordinator.managedObjectModel.entityVersionHashesByName)
        expect(
            stack.coordinator.managedObjectModel.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `an application's keys are kept, and written with the next save`(kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let store = try require(stack.coordinator.persistentStores.first)
        var metadata = stack.coordinator.metadata(for: store)
        metadata["lastImport"] = 42

        stack.coordinator.setMetadata(metadata, for: store)
        expectEqual(stack.coordinator.metadata(for: store)["lastImport"] as? Int, 42)

        let context = stack.context()
        try await context.perform {
            City(context: context).name = "Rome"
            try context.save()
        }
        expectEqual(stack.coordinator.metadata(for: store)["lastImport"] as? Int, 42)
        if kind == .sqlite {
            let read = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: stack.storeURL)
            expectEqual(read["lastImport"] as? Int, 42)
            expectEqual(read[NSStoreUUIDKey] as? String, store.identifier)
        }
    }

    /// The save may have written them before it failed.
    @Test(arguments: StoreKind.databases, [true, false])
    func `an application's keys that a failed save has not stored are written by the next save`(
        kind: StoreKind,
        failsLate: Bool
    ) throws {
        let stack = try Stack(kind)
        let store = try require(stack.coordinator.persistentStores.first)
        func stored() throws -> Int? {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: kind.type, at: stack.storeURL)["round"]
                as? Int
        }
        let context = stack.context()
        for round in 1...2 {
            // The one fails at the row, and the other at the metadata or at the commit.
            try stack.sql(
                """
                CREATE TRIGGER held BEFORE \(failsLate ? "INSERT ON Z_METADATA" : "INSERT ON ZCITY")
                BEGIN SELECT RAISE(ABORT, 'held'); END
                """,
                postgreSQL: """
                    CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'held'; END $$;
                    CREATE \(failsLate ? "CONSTRAINT TRIGGER held AFTER" : "TRIGGER held BEFORE") INSERT ON city
                    \(failsLate ? "DEFERRABLE INITIALLY DEFERRED" : "") FOR EACH ROW EXECUTE FUNCTION hold()
                    """
            )
            var metadata = stack.coordinator.metadata(for: store)
            metadata["round"] = round
            stack.coordinator.setMetadata(metadata, for: store)
            try context.performAndWait {
                City(context: context).name = "Rome"
                expectThrows(CocoaError.self) { try context.save() }
                try stack.sql("DROP TRIGGER held", postgreSQL: "DROP TRIGGER held ON city; DROP FUNCTION hold()")
                try expectEqual(stored(), round == 1 ? nil : round - 1)
                try context.save()
            }
            try expectEqual(stored(), round)
            try expectEqual(stack.count("City"), round)
        }
    }

    @Test func `the metadata of a closed SQLite store can be read and changed`() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("guide.sqlite")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        let identifier = store.identifier
        try coordinator.remove(store)

        var metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
        metadata["owner"] = "nobody"
        try NSPersistentStoreCoordinator.setMetadata(metadata, type: .sqlite, at: url)

        let opened = try coordinator.addPersistentStore(type: .sqlite, at: url)
        expectEqual(coordinator.metadata(for: opened)["owner"] as? String, "nobody")
        expectEqual(opened.identifier, identifier)
    }

    @Test func `metadata of what is no store is an error`() throws {
        let scratch = try ScratchFolder()
        let text = scratch.file("letter.txt")
        try Data("Dear reader, this is no database at all, however long it may be.".utf8).write(to: text)
        expectThrows(CocoaError.self) {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: text)
        }
        expectThrows(CocoaError.self) {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: scratch.file("missing"))
        }
        expect(!FileManager.default.fileExists(atPath: scratch.file("missing").path))
    }

    @Test(arguments: StoreKind.allCases)
    func `a store of one configuration has the hashes of its entities only`(_ kind: StoreKind) throws {
        let scratch = try ScratchFolder()
        let model = GuideModel.make()
        model.setEntities([try require(model.entitiesByName["City"])], forConfigurationName: "Cities")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)

        let store = try coordinator.addPersistentStore(type: kind.type, configuration: "Cities", at: scratch.file("c"))

        let hashes = coordinator.metadata(for: store)[NSStoreModelVersionHashesKey] as? [String: Data]
        expectEqual(hashes?.keys.sorted(), ["City"])
    }

    @Test(arguments: [true as any Sendable, "YES", 1, "true"])
    func `read-only may be asked for in each way that an option may be written`(_ value: any Sendable) throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(
            type: .inMemory,
            at: scratch.file("m"),
            options: [NSReadOnlyPersistentStoreOption: value]
        )
        expect(store.isReadOnly)
    }
}
