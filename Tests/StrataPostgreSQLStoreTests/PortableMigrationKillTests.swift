import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataMigration
@testable import StrataPostgreSQLStore

/// A migration of a portable store is cut off from its server at each of its statements.
@Suite("Killed migrations of portable PostgreSQL stores", .enabled(if: Server.isThere && Compiler.isThere))
struct PortableMigrationKillTests {
    /// Who comes after the process that was killed.
    enum Successor: String, CaseIterable, Sendable {
        /// One that does the same migration.
        case same
        /// One that migrates to another version.
        case other
        /// One that has the old model, and writes.
        case old
    }

    /// Each of the three successors comes after every so many statements; all of them were tried.
    private static let step = 7

    /// Migrates a store through a proxy that cuts the connection after some statements.
    ///
    /// - Returns: The number of statements.
    @discardableResult
    private func migrate(_ url: URL, cutAfter count: Int = .max, byObjects: Bool = false) throws -> Int {
        let proxy = try CutProxy(to: url, after: count)
        defer { proxy.close() }
        let store = PortableCities(url: proxy.url)
        // Nobody reaches the server after the cut, so nobody waits long for it.
        let options: [AnyHashable: Any] = count == .max ? [:] : [NSPersistentStoreTimeoutOption: 0.3]
        do {
            if byObjects { try migrateObjects(proxy.url, options) } else { try store.migrate(to: 2, options) }
        } catch  where count < .max {}
        return proxy.count.withLock { $0 }
    }

    private func migrateObjects(_ url: URL, _ options: [AnyHashable: Any]) throws {
        let (first, second) = (PortableCities.model(1), PortableCities.model(2))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        let manager = NSMigrationManager(sourceModel: first, destinationModel: second)
        _ = try manager.migrateInPlace(
            StorePlace(url: url, type: NSPersistentStore.StoreType.postgreSQL.rawValue, options: options),
            mapping,
            from: nil,
            to: nil
        )
    }

    /// Whether a store has the second version of the model by now.
    private func isMigrated(_ store: PortableCities) throws -> Bool {
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .postgreSQL, at: store.url)
        return PortableCities.model(2).isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
    }

    @Test(arguments: Successor.allCases)
    func `after a kill at any statement another process finds every row once`(_ successor: Successor) throws {
        let (whole, proxy) = (try PortableProxy(every: nil), try PortableProxy(every: nil))
        try PortableCities(url: whole.url).fill()
        let count = try migrate(whole.url)
        expect(count > 60, "\(count)")
        let store = PortableCities(url: proxy.url)
        let first = successor.rawValue.count
        for cut in stride(from: first, to: count, by: Self.step) {
            try store.fill()
            let before = try store.contents(1)
            try migrate(proxy.url, cutAfter: cut)
            try store.endLease()
            let wasMigrated = try isMigrated(store)
            switch successor {
            case .same:
                try store.migrate(to: 2)
                try expectEqual(store.contents(2), before, "cut after \(cut) of \(count)")
                try store.requireSound(2)
            case .other:
                try store.migrate(to: 3)
                try store.requireSound(3)
            case .old where wasMigrated:
                try expectEqual(store.contents(2), before, "cut after \(cut) of \(count)")
                try store.requireSound(2)
            case .old:
                try store.use(1) { context in
                    let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                    city.setValue("Rees", forKey: "name")
                    try context.save()
                }
                let after = try store.contents(1)
                expectEqual(after.count, before.count + 2, "cut after \(cut) of \(count)")
                try store.requireSound(1)
                try store.migrate(to: 2)
                try expectEqual(store.contents(2), after, "cut after \(cut) of \(count)")
                try store.requireSound(2)
            }
            try PostgreSQLStore.destroyStore(at: proxy.direct, options: nil)
            try expectEqual(proxy.number("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), 0)
        }
    }

    @Test func `after a kill at any statement of a migration by objects another process finds every row once`() throws {
        let (whole, proxy) = (try PortableProxy(every: nil), try PortableProxy(every: nil))
        try PortableCities(url: whole.url).fill()
        let count = try migrate(whole.url, byObjects: true)
        let store = PortableCities(url: proxy.url)
        // Each takes ten seconds, because the stores of the migration wait for the server to give back their leases. Most statements are those that make
        // and read objects, which do nothing to the old store.
        for cut in [count / 4, count / 2] + [60, 45, 30, 20, 10, 3].map({ count - $0 }) {
            try store.fill()
            let rows = try store.contents(1).filter { !$0.contains("/") }
            try migrate(proxy.url, cutAfter: cut, byObjects: true)
            try store.endLease()
            if try !isMigrated(store) {
                try expectEqual(store.contents(1).filter { !$0.contains("/") }, rows, "cut after \(cut) of \(count)")
                try migrateObjects(proxy.url, [:])
            }
            try store.use(2) { _ in }
            try expectEqual(store.contents(2).filter { !$0.contains("/") }, rows, "cut after \(cut) of \(count)")
            try store.requireSound(2)
            try PostgreSQLStore.destroyStore(at: proxy.direct, options: nil)
        }
    }

    @Test func `a program that has the store open writes again when the process that migrates has died`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let old = try store.open(1)
        defer { TrialTests.close(old) }
        let cut = try CutProxy(to: proxy.url)
        let held = try HeldMigration(cut.url, timeout: 0.5)
        cut.close()
        let save = Errand {
            try TrialTests.perform(old) { context in
                TrialTests.insertCity("Rees", venues: 0, context)
                try context.save()
            }
        }
        usleep(300_000)
        // The lease has not ended yet.
        try expect(store.generations().pending != nil)
        try store.endLease()
        try save.wait()
        expectThrows((any Error).self) { try held.finish() }
        try store.use(1) { _ in }
        try store.requireSound(1)
        try expectEqual(store.contents(1).filter { $0.hasPrefix("City") }.count, 4)
    }

    @Test func `a store is destroyed with all that a killed migration has left`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let cut = try CutProxy(to: proxy.url)
        let held = try HeldMigration(cut.url, timeout: 0.5)
        cut.close()
        expectThrows((any Error).self) { try held.finish() }
        try expect(store.tables().count > PortableCities.tables(1, number: 0).count)
        try PostgreSQLStore.destroyStore(at: proxy.url, options: nil)
        try expectEqual(
            proxy.number("SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"),
            0
        )
    }

    // MARK: - The lease

    @Test func `the lease is renewed during a long step`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let held = try HeldMigration(proxy.url)
        try store.endLease()
        let live =
            "SELECT count(*) FROM strata_lease WHERE name = '\(ShapeLease.name)' AND seen > \(HistoryQueries.now) - \(ShapeLease.duration)"
        try expectEqual(proxy.number(live), 0)
        try waitUntil { try proxy.number(live) == 1 }
        try held.finish()
        try store.requireSound(2)
    }

    @Test func `a process that was taken for dead, and goes on, changes nothing any more`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let before = try store.contents(1)
        let held = try HeldMigration(proxy.url)
        // Nothing renews the lease before the next process takes it.
        try proxy.session().command("BEGIN; UPDATE strata_lease SET seen = 0, holder = '\(UUID())'; COMMIT")
        try store.use(1) { context in
            TrialTests.insertCity("Rees", venues: 0, context)
            try context.save()
        }
        try store.migrate(to: 2)
        let after = try store.contents(2)
        expectEqual(after.count, before.count + 2)
        // The tables from which it copies have gone. It finds that the store has the new version already.
        try held.finish()
        try expectEqual(store.contents(2), after)
        try store.requireSound(2)
    }

    @Test func `a process that was taken for dead does not bring back what has been deleted since`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let held = try HeldMigration(proxy.url)
        // The old tables stay, because another session reads them.
        let reader = try proxy.session()
        try reader.command("BEGIN; SELECT count(*) FROM city; SELECT count(*) FROM venue; SELECT count(*) FROM tag")
        try proxy.session().command("BEGIN; UPDATE strata_lease SET seen = 0, holder = '\(UUID())'; COMMIT")
        try store.migrate(to: 2, [NSPersistentStoreTimeoutOption: 1])
        try store.use(2) { context in
            for name in ["City", "Venue", "Tag"] {
                for object in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: name)) {
                    context.delete(object)
                }
            }
            try context.save()
        }
        let after = try store.contents(2)
        try held.finish()
        try expectEqual(store.contents(2), after)
        try reader.command("COMMIT")
        try store.use(2) { _ in }
        try store.requireSound(2)
    }

    @Test func `who waits for a migration to another version does not go on with its tables`() throws {
        let proxy = try PortableProxy(every: 0)
        let store = PortableCities(url: proxy.url)
        try store.fill()
        let held = try HeldMigration(proxy.url)
        let other = Errand { try store.migrate(to: 3) }
        // It has found the lease taken, and waits for it.
        try waitUntil {
            try proxy.number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO strata_lease%'") == 1
        }
        try proxy.session().command("BEGIN; UPDATE strata_lease SET seen = 0, holder = '\(UUID())'; COMMIT")
        try other.wait()
        func names() throws -> [[String]] {
            try store.use(3) { context in
                try [("City", "title"), ("Venue", "name"), ("Tag", "name")].map { entity, key in
                    try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
                        .compactMap { $0.value(forKey: key) as? String }.sorted()
                }
            }
        }
        let after = try names()
        expectEqual(after.map(\.count), [3, 6, 3])
        // It finds that another process was first, and changes nothing.
        try held.finish()
        try expectEqual(names(), after)
        try store.requireSound(3)
    }
}
