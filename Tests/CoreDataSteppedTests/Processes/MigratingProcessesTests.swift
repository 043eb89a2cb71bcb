import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import StrataArchives
@testable import StrataSQLiteStore

/// Several processes open a store of an older version at once.
@Suite("Processes that migrate")
struct MigratingProcessesTests {
    private static func next() -> NSManagedObjectModel {
        let model = GuideModel.make()
        let attribute = NSAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = ("motto", .string, true)
        model.entitiesByName["City"]?.properties.append(attribute)
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        return model
    }

    private static var options: [AnyHashable: Any] {
        [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            NSPersistentHistoryTrackingKey: true, NSPersistentStoreTimeoutOption: 60,
        ]
    }

    /// Opens the store with the next version, and counts its cities.
    private static func visit(_ store: SharedStore) throws -> Int {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: next())
        try coordinator.addPersistentStore(type: .sqlite, at: store.url, options: options)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait {
            try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
        }
    }

    @Test func `all wait for the one that migrates, one migrates, and all find the store migrated`() async throws {
        let folder = try SharedFolder(.sqlite, signals: "ready")
        let store = folder.store
        do {
            let coordinator = try store.coordinator(options: [NSPersistentHistoryTrackingKey: true])
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                for number in 0..<50 { context.makeCity("City \(number)") }
                try context.save()
            }
            for added in coordinator.persistentStores { try coordinator.remove(added) }
        }
        // The test takes the turn, as if another process were in the middle of a migration.
        var turn: MigrationTurn? = try MigrationTurn(of: store.url, timeout: 1)

        async let other = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            store.signal("ready")
            let count = try MigratingProcessesTests.visit(store)
            expectEqual(count, 50)
        }
        await store.arrival(of: "ready")
        // This process opens the store too, with two coordinators on separate threads.
        let counts = Shared<[Int]>([])
        let group = DispatchGroup()
        for _ in 0..<2 {
            group.enter()
            Thread.detachNewThread {
                let count = (try? Self.visit(store)) ?? -1
                counts.update { $0.append(count) }
                group.leave()
            }
        }
        let waiting = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: store.url)
        expect(GuideModel.make().isConfiguration(withName: nil, compatibleWithStoreMetadata: waiting))
        expect(turn != nil)
        turn = nil
        _ = await other
        await withCheckedContinuation { continuation in
            group.notify(queue: .global()) { continuation.resume() }
        }
        expectEqual(counts.current, [50, 50])

        let model = Self.next()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(
            type: .sqlite,
            at: store.url,
            options: [NSPersistentHistoryTrackingKey: true]
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let count = try await context.perform {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            return (result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0
        }
        expectEqual(count, 2, "the save, and one migration")
        try expectEqual(StoreVerifier(storeURL: store.url, model: model).problems(), [])
        let names = try FileManager.default.contentsOfDirectory(atPath: store.folder)
        expect(!names.contains { $0.contains("migration") }, "\(names)")
    }

    @Test func `a turn ends with the process that has it`() async throws {
        let folder = try SharedFolder(.sqlite, signals: "taken")
        let store = folder.store
        async let other = #expect(processExitsWith: .signal(SIGKILL)) { [store = store as SharedStore] in
            let turn = try MigrationTurn(of: store.url, timeout: 1)
            withExtendedLifetime(turn) {
                store.signal("taken")
                kill(getpid(), SIGKILL)
            }
        }
        await store.arrival(of: "taken")
        _ = await other
        #expect(throws: Never.self) { _ = try MigrationTurn(of: store.url, timeout: 10) }
    }
}
