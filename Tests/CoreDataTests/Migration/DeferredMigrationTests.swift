import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import StrataSQLiteStore

/// Migrations that put off work which only tidies up.
@Suite("Deferred migrations")
struct DeferredMigrationTests {
    private let old = "A: n String, gone String, b -> B\nB: n String, old Int32, kept Int32 | unique old"
    private let new = "A: n String\nB: n String, kept Int32"
    private let key = NSPersistentStoreDeferredLightweightMigrationOptionKey

    private func deferred() throws -> AgingStore {
        let store = try AgingStore()
        try store.use(ModelSketch.model(old)) { context in
            let b = context.make("B", "b1", ["old": 1, "kept": 2])
            context.make("A", "a1", ["gone": "secret", "b": b])
            try context.save()
        }
        return store
    }

    private func columns(_ store: AgingStore, _ table: String) throws -> Set<String> {
        Set(try store.strings("SELECT name FROM pragma_table_info('\(table)')"))
    }

    @Test func `m152 m153 m156 m157 the store opens with leftovers, which do not show`() throws {
        let store = try deferred()
        try store.use(ModelSketch.model(new), [key: true]) { context in
            let file = context.persistentStoreCoordinator?.persistentStores.first
            expectEqual(file?.metadata[key] as? Bool, true)
            let shown = try context.dump()
            expectEqual(shown, ["A a1", "B b1 kept=2"])
            // The old constraint no longer applies.
            for name in ["b2", "b3"] { context.make("B", name, ["kept": 3]) }
            try context.save()
        }
        try expect(columns(store, "ZA").contains("ZGONE"))
        try expectEqual(store.strings("SELECT name FROM sqlite_schema WHERE name LIKE '%UNIQUE%'"), [])
        try expectEqual(StoreVerifier(storeURL: store.url, model: ModelSketch.model(new)).problems(), [])
    }

    @Test func `m154 m158 m159 a task tidies up one table, and the last takes the sign away`() throws {
        let store = try deferred()
        try store.use(ModelSketch.model(new), [key: true]) { context in
            let coordinator = try require(context.persistentStoreCoordinator)
            let file = try require(coordinator.persistentStores.first)
            try coordinator.finishDeferredLightweightMigrationTask()
            expectEqual(file.metadata[key] as? Bool, true)
            let leftovers = try columns(store, "ZA").contains("ZGONE") != columns(store, "ZB").contains("ZOLD")
            expect(leftovers)
            context.make("A", "a2")
            try context.save()
            try coordinator.finishDeferredLightweightMigrationTask()
            expect(file.metadata[key] == nil)
            let shown = try context.dump()
            expectEqual(shown, ["A a1", "A a2", "B b1 kept=2"])
            try coordinator.finishDeferredLightweightMigrationTask()
            try coordinator.finishDeferredLightweightMigration()
        }
        try expectEqual(store.problems(ModelSketch.model(new)), [])
        try expect(NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: store.url)[key] == nil)
    }

    @Test func `m158 the work is finished after the store was closed`() throws {
        let store = try deferred()
        try store.use(ModelSketch.model(new), [key: true]) { _ in }
        try store.use(ModelSketch.model(new)) { context in
            try context.persistentStoreCoordinator?.finishDeferredLightweightMigration()
        }
        try expectEqual(store.problems(ModelSketch.model(new)), [])
    }

    @Test func `m160 a new attribute does not revive the values of a leftover`() throws {
        let store = try deferred()
        try store.use(ModelSketch.model(new), [key: true]) { _ in }
        let third = "A: n String, gone String\nB: n String, kept Int32"
        try store.use(ModelSketch.model(third), [key: true]) { context in
            let shown = try context.dump()
            expectEqual(shown, ["A a1 gone=-", "B b1 kept=2"])
        }
    }

    @Test func `m153 a migration that leaves nothing behind sets no sign`() throws {
        let store = try deferred()
        let more = "A: n String, gone String, b -> B, more String\nB: n String, old Int32, kept Int32 | unique old"
        try store.use(ModelSketch.model(more), [key: true]) { context in
            let file = context.persistentStoreCoordinator?.persistentStores.first
            expect(file?.metadata[key] == nil)
        }
        try expectEqual(store.problems(ModelSketch.model(more)), [])
    }
}
