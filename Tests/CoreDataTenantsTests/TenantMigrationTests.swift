import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

/// The migration of all tenants of a folder.
@Suite("Migration of tenants")
struct TenantMigrationTests {
    private let scratch: ScratchFolder
    private var folder: TenantFolder { TenantFolder(scratch.file("tenants")) }

    init() throws { scratch = try ScratchFolder() }

    private func container(version: Int, migratesByItself: Bool = true) -> TenantContainer {
        TenantContainer(managedObjectModel: TenantSupport.model(version: version), at: folder) { container, _ in
            container.persistentStoreDescriptions[0].shouldMigrateStoreAutomatically = migratesByItself
        }
    }

    private func ranks(_ tenant: Tenant) throws -> [Int] {
        let context = tenant.container.newBackgroundContext()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
                .compactMap { $0.value(forKey: "rank") as? Int }
        }
    }

    @Test func `all stores are migrated, one that cannot be is reported, and a repetition continues`() async throws {
        do {
            let old = container(version: 1)
            for name in ["a", "b", "c", "d"] { try TenantSupport.add(name, to: try await old.create(name)) }
            try await old.close()
        }
        let sound = try Data(contentsOf: folder.url.appendingPathComponent("b.sqlite"))
        let broken = Data("this is no database, and never was one".utf8)
        try broken.write(to: folder.url.appendingPathComponent("b.sqlite"))

        let tenants = container(version: 2, migratesByItself: false)
        expectEqual(await TenantSupport.code { _ = try await tenants.tenant("a") }, 134_100)
        let steps = Locked<[String]>([])
        let report = try await tenants.migrate { step in
            let result = (try? step.result.get()).map { "\($0)" } ?? "failed"
            steps.withLock { $0.append("\(step.number)/\(step.count) \(step.name) \(result)") }
        }
        expectEqual(steps.withLock { $0 }, ["1/4 a true", "2/4 b failed", "3/4 c true", "4/4 d true"])
        expectEqual(report.migrated, ["a", "c", "d"])
        expectEqual(report.unchanged, [])
        expectEqual(Array(report.failures.keys), ["b"])
        expectEqual(try Data(contentsOf: folder.url.appendingPathComponent("b.sqlite")), broken)
        expectEqual(tenants.statistics().open, 0)

        try sound.write(to: folder.url.appendingPathComponent("b.sqlite"))
        let acme = try await tenants.tenant("a")
        let second = try await tenants.migrate()
        expectEqual(second.migrated, ["b"])
        expectEqual(second.unchanged, ["a", "c", "d"])
        expect(second.failures.isEmpty)
        for name in ["a", "b", "c", "d"] {
            let tenant = try await tenants.tenant(name)
            expectEqual(try TenantSupport.texts(tenant), [name])
            expectEqual(try ranks(tenant), [7])
        }
        withExtendedLifetime(acme) {}
    }

    @Test func `a cancelled migration ends after the store that is being migrated, and continues later`() async throws {
        do {
            let old = container(version: 1)
            for name in ["a", "b", "c"] { _ = try await old.create(name) }
            try await old.close()
        }
        let tenants = container(version: 2)
        let task = Task {
            try await tenants.migrate { step in
                if step.name == "b" { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        do {
            _ = try await task.value
            Issue.record("it was not cancelled")
        } catch is CancellationError {}
        let rest = try await tenants.migrate()
        expectEqual(rest.unchanged, ["a", "b"])
        expectEqual(rest.migrated, ["c"])
    }

    @Test func `one that asks for a tenant during its migration waits for the end`() async throws {
        do {
            let old = container(version: 1)
            try TenantSupport.add("a1", to: try await old.create("a"))
            try await old.close()
        }
        let gate = DispatchSemaphore(value: 0)
        let calls = Locked(0)
        let tenants = TenantContainer(managedObjectModel: TenantSupport.model(version: 2), at: folder) { _, _ in
            // The migration comes first.
            guard
                calls.withLock({ calls in
                    calls += 1
                    return calls
                }) == 1
            else { return }
            gate.wait()
        }
        async let report = tenants.migrate()
        try await TenantSupport.wait { calls.withLock { $0 } == 1 }
        let caller = onThread { expectEqual(try TenantSupport.texts(try tenants.tenantAndWait("a")), ["a1"]) }
        try await TenantSupport.wait { tenants.waitingCount("a") >= 1 }
        gate.signal()
        expectEqual(try await report.migrated, ["a"])
        try caller.join()
        expectEqual(tenants.statistics().failed, 0)
    }
}
