import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// The occasions on which a store is migrated, its former version, and other users of it.
@Suite("Opening stores of other versions")
struct MigrationOpeningTests {
    private let old = "A: n String"
    private let new = "A: n String, size Int32=5\nAA: n String"

    private func filled() throws -> AgingStore {
        let store = try AgingStore()
        try store.use(ModelSketch.model(old)) { context in
            context.make("A", "a1")
            try context.save()
        }
        return store
    }

    private func coordinator(_ sketch: String) -> NSPersistentStoreCoordinator {
        NSPersistentStoreCoordinator(managedObjectModel: ModelSketch.model(sketch))
    }

    @Test(arguments: [
        [:], [NSInferMappingModelAutomaticallyOption: true], [NSMigratePersistentStoresAutomaticallyOption: false],
    ])
    func `m002 m004 without the option a store of another version is refused and untouched`(_ options: [String: Bool])
        throws
    {
        let store = try filled()
        let before = try Data(contentsOf: store.url)
        let coordinator = coordinator(new)
        let error = try #require(throws: CocoaError.self) {
            try coordinator.addPersistentStore(type: .sqlite, at: store.url, options: options)
        }
        expectEqual(error.code, .persistentStoreIncompatibleVersionHash)
        expect(error.userInfo["metadata"] is [String: Any])
        expect(coordinator.persistentStores.isEmpty)
        try expectEqual(Data(contentsOf: store.url), before)
    }

    @Test func `m003 without inference only mapping models count`() throws {
        let store = try filled()
        let error = try #require(throws: CocoaError.self) {
            try coordinator(new).addPersistentStore(
                type: .sqlite,
                at: store.url,
                options: [NSMigratePersistentStoresAutomaticallyOption: true]
            )
        }
        expectEqual(error.code, .migrationMissingMappingModel)
        expect(error.userInfo["sourceModel"] is NSManagedObjectModel)
        expect(error.userInfo["destinationModel"] is NSManagedObjectModel)
    }

    @Test func `m006 the descriptions of containers migrate by default`() throws {
        let store = try filled()
        let description = NSPersistentStoreDescription(url: store.url)
        expect(description.shouldMigrateStoreAutomatically)
        expect(description.shouldInferMappingModelAutomatically)
        let container = NSPersistentContainer(name: "aging", managedObjectModel: ModelSketch.model(new))
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { failure = $1 }
        expect(failure == nil)
        let context = container.newBackgroundContext()
        let shown = try context.performAndWait { try context.dump() }
        expectEqual(shown, ["A a1 size=5"])
        let copy = try require(description.copy() as? NSPersistentStoreDescription)
        copy.shouldMigrateStoreAutomatically = false
        copy.shouldInferMappingModelAutomatically = false
        expectEqual(copy.options[NSMigratePersistentStoresAutomaticallyOption], NSNumber(value: false))
        expect(!copy.shouldMigrateStoreAutomatically)
        expect(!copy.shouldInferMappingModelAutomatically)
    }

    @Test func `m006 a description that says so does not migrate`() throws {
        let store = try filled()
        let description = NSPersistentStoreDescription(url: store.url)
        description.shouldMigrateStoreAutomatically = false
        let container = NSPersistentContainer(name: "aging", managedObjectModel: ModelSketch.model(new))
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { failure = $1 }
        expectEqual((failure as? CocoaError)?.code, .persistentStoreIncompatibleVersionHash)
    }

    @Test func `m012 without a source model it says which entities are unknown`() throws {
        let store = try filled()
        let writer = try Connection(path: store.url.path, access: .readWrite)
        try writer.execute("DELETE FROM Z_MODELCACHE")
        writer.close()
        let before = try store.contents()
        let error = try #require(throws: CocoaError.self) { try store.use(ModelSketch.model(new)) { _ in } }
        expectEqual(error.code, .migrationMissingSourceModel)
        expectEqual(error.userInfo["URL"] as? URL, store.url)
        expect(error.userInfo["metadata"] is [String: Any])
        expect(error.localizedDescription.contains("no model has A ("))
        try expectEqual(store.contents(), before)
    }

    @Test func `m013 a read-only store is not migrated`() throws {
        let store = try filled()
        let before = try store.contents()
        let error = try #require(throws: CocoaError.self) {
            try store.use(ModelSketch.model(new), [NSReadOnlyPersistentStoreOption: true]) { _ in }
        }
        expectEqual(error.code, .persistentStoreIncompatibleVersionHash)
        expectEqual((error.userInfo["reason"] as? String)?.contains("read-only"), true)
        try expectEqual(store.contents(), before)
    }

    @Test func `m019 other stores of the coordinator stay`() throws {
        let store = try filled()
        let coordinator = coordinator("A: n Date")
        let other = try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(type: .sqlite, at: store.url, options: AgingStore.migrating)
        }
        expectEqual(coordinator.persistentStores, [other])
    }

    @Test func `m171 m178 of several that come at once exactly one migrates, and all open the store`() async throws {
        let store = try filled()
        let before = try store.number("SELECT COUNT(*) FROM ZA")
        let url = store.url
        let shown = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let aging = NSPersistentStoreCoordinator(
                        managedObjectModel: ModelSketch.model("A: n String, size Int32=5\nAA: n String")
                    )
                    try aging.addPersistentStore(type: .sqlite, at: url, options: AgingStore.migrating)
                    let context = NSManagedObjectContext(.privateQueue)
                    context.persistentStoreCoordinator = aging
                    return try await context.perform { try context.dump() }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        expectEqual(shown, Array(repeating: ["A a1 size=5"], count: 8))
        try expectEqual(store.number("SELECT COUNT(*) FROM ZA"), before)
        try expectEqual(store.problems(ModelSketch.model(new)), [])
    }

    @Test func `m173 a store that is open with the old model neither reads nor writes any more`() throws {
        let store = try filled()
        let coordinator = coordinator(old)
        try coordinator.addPersistentStore(type: .sqlite, at: store.url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let pinned = NSManagedObjectContext(.privateQueue)
        pinned.persistentStoreCoordinator = coordinator
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        let (mine, shown) = try context.performAndWait {
            (try require(context.all("A").first), try pinned.performAndWait { try pinned.dump() })
        }
        expectEqual(shown, ["A a1"])
        try store.use(ModelSketch.model(new)) { context in
            context.make("AA", "aa1")
            try context.save()
        }
        let contents = try store.contents()
        context.performAndWait {
            let reading = expectThrows(CocoaError.self) { try context.all("A") }
            expectEqual(reading?.code, .persistentStoreIncompatibleVersionHash)
            mine.setValue("mine", forKey: "n")
            let saving = expectThrows(CocoaError.self) { try context.save() }
            let cause = saving?.userInfo[NSUnderlyingErrorKey] as? CocoaError
            expectEqual(cause?.code, .persistentStoreIncompatibleVersionHash)
            let batch = NSBatchUpdateRequest(entityName: "A")
            batch.propertiesToUpdate = ["n": "all"]
            let updating = expectThrows(CocoaError.self) { try context.execute(batch) }
            expectEqual(updating?.code, .persistentStoreIncompatibleVersionHash)
        }
        coordinator.persistentStores[0].metadata["mine"] = 1
        try expectEqual(store.contents(), contents, "nothing was written")
        let held = try pinned.performAndWait { try pinned.dump() }
        expectEqual(held, ["A a1"], "a version that is held on to stays readable")
    }

    @Test func `m173 a save that comes before any read is refused too`() throws {
        let store = try filled()
        let coordinator = coordinator(old)
        try coordinator.addPersistentStore(type: .sqlite, at: store.url)
        try store.use(ModelSketch.model(new)) { _ in }
        let contents = try store.contents()
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.performAndWait {
            context.make("A", "a2")
            let saving = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(saving?.code, .persistentStoreIncompatibleVersionHash)
        }
        try expectEqual(store.contents(), contents)
    }

    @Test func `m087 m172 waiting for a writer longer than the timeout is an error that says so`() throws {
        let store = try filled()
        let writer = try Connection(path: store.url.path, access: .readWrite)
        try writer.execute("BEGIN IMMEDIATE")
        defer { writer.close() }
        let error = try #require(throws: CocoaError.self) {
            try store.use(ModelSketch.model(new), [NSPersistentStoreTimeoutOption: 0.2]) { _ in }
        }
        expectEqual(error.code, .persistentStoreTimeout)
        try writer.execute("ROLLBACK")
        let shown = try store.use(ModelSketch.model(new)) { try $0.dump() }
        expectEqual(shown, ["A a1 size=5"])
    }

    @Test func `m124 the history goes on, with a transaction of the migration`() throws {
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        let store = try AgingStore()
        try store.use(ModelSketch.model("B: n String, x Int16, y Int16\nC: n String"), options) { context in
            let b = context.make("B", "b1")
            context.make("C", "c1")
            try context.save()
            b.setValue(1, forKey: "y")
            try context.save()
        }
        let model = ModelSketch.model("A: n String\nB: n String, a Int16, renamed{y} Int16")
        try store.use(model, options) { context in
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try require(try context.execute(request) as? NSPersistentHistoryResult)
            let transactions = try require(result.result as? [NSPersistentHistoryTransaction])
            expectEqual(
                transactions.map { $0.changes?.count ?? 0 },
                [1, 1, 0],
                "what names the removed entity is gone"
            )
            let author = transactions.last?.author ?? ""
            expect(author.hasPrefix("com.apple.coredata.schemamigrator: lightweight migration from model with digest"))
            let update = try require(transactions[1].changes?.first)
            expectEqual(update.changedObjectID.entity.name, "B")
            expectEqual(update.updatedProperties?.map(\.name), ["renamed"])
            context.make("B", "b2")
            try context.save()
        }
        try expectEqual(store.problems(model), [])
    }

    @Test func `m124 the history names the same properties, beside relationships to one entity and to several`() throws
    {
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        let targets = "H: n String\nP: n String\nQ(P):\n"
        let store = try AgingStore()
        let first = ModelSketch.model(targets + "B: n String, home -> H, link -> P, x Int16, y Int16")
        try store.use(first, options) { context in
            let b = context.make("B", "b1")
            let values: [(String, Any)] = [
                ("home", context.make("H", "h1")), ("link", context.make("Q", "q1")), ("x", 1), ("y", 2), ("n", "b2"),
            ]
            try context.save()
            for (name, value) in values {
                b.setValue(value, forKey: name)
                try context.save()
            }
        }
        let model = ModelSketch.model(
            "A: n String\n" + targets + "B: n String, aim -> P, home -> H, place{link} -> P, w Int16, x Int16, y Int16"
        )
        try store.use(model, options) { context in
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            request.resultType = .changesOnly
            let result = try require(try context.execute(request) as? NSPersistentHistoryResult)
            let changes = try require(result.result as? [NSPersistentHistoryChange]).filter { $0.changeType == .update }
            expectEqual(
                changes.map { ($0.updatedProperties ?? []).map(\.name) },
                [["home"], ["place"], ["x"], ["y"], ["n"]]
            )
        }
        try expectEqual(store.problems(model), [])
    }

    @Test func `m180 an older program infers its way back`() throws {
        let store = try filled()
        try store.use(ModelSketch.model(new)) { _ in }
        let shown = try store.use(ModelSketch.model(old)) { try $0.dump() }
        expectEqual(shown, ["A a1"])
        try expectEqual(store.problems(ModelSketch.model(old)), [])
    }
}
