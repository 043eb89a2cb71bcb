import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@Suite("Reports of a PostgreSQL store about itself", .enabled(if: Server.isThere))
struct HealthTests {
    @Test func `a store whose server is gone, or silent, fails the check`() async throws {
        let server = try PrivateServer()
        let proxy = try FaultProxy(to: server.url)
        defer { proxy.close() }
        let place = try require(URL(string: "\(proxy.url.absoluteString)&schema=shop"))
        let stack = try ServerStack(place)
        try stack.insert("Rome")
        let checks = try await stack.coordinator.check()
        expectEqual(checks.count, 1)
        // Sessions that the server has ended meanwhile do not make the check fail.
        proxy.setOpen(false)
        proxy.setOpen(true)
        try await expectEqual(stack.coordinator.check().count, 1)

        proxy.setOpen(false)
        proxy.isSilent.withLock { $0 = true }
        proxy.setOpen(true)
        let late = await expectThrows(CocoaError.self) {
            _ = try await stack.coordinator.check(within: .milliseconds(200))
        }
        expectEqual(late?.code, .persistentStoreTimeout)
        try server.halt()
        proxy.isSilent.withLock { $0 = false }
        proxy.setOpen(false)
        let gone = await expectThrows(CocoaError.self) { _ = try await stack.coordinator.check(within: .seconds(5)) }
        expect(gone != nil)
    }

    @Test func `a store that another has replaced fails the check`() async throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url)
        try stack.insert("Rome")
        try server.connection().command("UPDATE strata_store SET uuid = 'another'")
        let error = await expectThrows(CocoaError.self) { _ = try await stack.coordinator.check() }
        expectEqual(error?.code, .persistentStoreOperation)
    }

    @Test func `an open store whose schema was dropped and made anew saves nothing into the new one`()
        async throws
    {
        let server = try PrivateServer()
        let place = try require(URL(string: "\(server.url.absoluteString)&schema=shop"))
        let stack = try ServerStack(place)
        try stack.insert("Rome")
        let context = stack.context()
        try context.performAndWait {
            let city = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
            city.setValue("Roma", forKey: "name")
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue("Bari", forKey: "name")
        }
        try server.connection().command("DROP SCHEMA shop CASCADE")
        let new = try ServerStack(place)
        try new.insert("Kiel")

        context.performAndWait {
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreOperation)
            expect(context.hasChanges)
        }
        let reader = stack.context()
        reader.performAndWait {
            let error = expectThrows(CocoaError.self) {
                _ = try reader.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
            }
            expectEqual(error?.code, .persistentStoreOperation)
        }
        let check = await expectThrows(CocoaError.self) { _ = try await stack.coordinator.check() }
        expectEqual(check?.code, .persistentStoreOperation)
        try expectEqual(new.cities(), ["Kiel"])
    }

    @Test func `connections and pinned versions are counted`() throws {
        let pinned = try PinnedStack([NSPersistentStoreConnectionPoolMaxSizeKey: 3])
        try pinned.stack.insert("Rome")
        let before = try require(pinned.stack.coordinator.statistics().stores.first?.pool)
        expect(before.readers == 1 && before.readerLimit == 3 && before.waitingReaders == 0)
        expect(before.pinnedVersions == 0 && before.oldestPin == nil)
        let context = pinned.stack.context()
        try context.performAndWait {
            try context.setQueryGenerationFrom(.current)
            _ = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City"))
        }
        let after = try require(pinned.stack.coordinator.statistics().stores.first?.pool)
        expect(after.pinnedVersions == 1 && (after.oldestPin ?? .zero) > .zero)
        withExtendedLifetime(context) {}
    }
}
