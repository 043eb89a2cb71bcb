import CoreData
import Expectations
import Foundation
import StrataLocks
import StrataMemoryStore
import StrataRows
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials

/// A commit is in the store, and its rows are not yet in the row cache.
@Suite("Between a commit and its publication")
struct PendingCommitTests {
    private let coordinator: NSPersistentStoreCoordinator
    private let engine: LateEngine
    private let writer: NSManagedObjectContext
    /// The IDs of the city *Before*, of another city, and of the first one's venue.
    private let ids: (city: NSManagedObjectID, other: NSManagedObjectID, venue: NSManagedObjectID)

    init() throws {
        coordinator = try LateStore.coordinator()
        engine = try require(coordinator.openStores.first?.rows as? LateEngine)
        let writer = NSManagedObjectContext(.privateQueue)
        self.writer = writer
        writer.persistentStoreCoordinator = coordinator
        ids = try writer.performAndWait {
            let (city, other, venue) = (City(context: writer), City(context: writer), Venue(context: writer))
            (city.name, other.name, venue.name) = ("Before", "Other", "Forum")
            venue.city = city
            try writer.save()
            return (city.objectID, other.objectID, venue.objectID)
        }
    }

    private func context(in parent: NSManagedObjectContext? = nil) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        if let parent { context.parent = parent } else { context.persistentStoreCoordinator = coordinator }
        return context
    }

    private func storedNames(_ context: NSManagedObjectContext) throws -> [String] {
        let request = NSFetchRequest<NSDictionary>(entityName: "City")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["name"]
        return try context.fetch(request).compactMap { $0["name"] as? String }.sorted()
    }

    /// Saves another name, and runs `body` between the commit and the publication.
    private func saveName(during body: @escaping @Sendable () throws -> Void) throws {
        engine.whenCommitted(body)
        try writer.performAndWait {
            let city = try require(try writer.existingObject(with: ids.city) as? City)
            city.name = "After"
            try writer.save()
        }
        expect(engine.hasRun)
    }

    @Test func `a look-up shows what a fetch of dictionaries has shown, and other rows come from the cache`() throws {
        try saveName {
            let reader = context()
            try reader.performAndWait {
                try expectEqual(storedNames(reader), ["After", "Other"])
                engine.resetReads()
                try expectEqual((reader.existingObject(with: ids.city) as? City)?.name, "After")
                expectEqual(engine.reads, 1)
                try expectEqual((reader.existingObject(with: ids.other) as? City)?.name, "Other")
                expectEqual(engine.reads, 1)
            }
        }
        // Afterwards the cache has the row.
        engine.resetReads()
        let reader = context()
        try reader.performAndWait {
            try expectEqual((reader.existingObject(with: ids.city) as? City)?.name, "After")
        }
        expectEqual(engine.reads, 0)
    }

    @Test func `a fault with a row that was fetched before the commit, or during it, shows the new row`() throws {
        let early = context()
        let fetched = try early.performAndWait { try early.fetch(NSFetchRequest<City>(entityName: "City")) }
        let venue = try early.performAndWait { try require(try early.existingObject(with: ids.venue) as? Venue) }
        nonisolated(unsafe) let faults = (fetched, venue)
        try saveName {
            early.performAndWait {
                expect(faults.0.allSatisfy(\.isFault))
                expectEqual(Set(faults.0.map(\.name)), ["After", "Other"])
                expectEqual(faults.1.city?.name, "After")
            }
            let late = context()
            try late.performAndWait {
                let cities = try late.fetch(NSFetchRequest<City>(entityName: "City"))
                expectEqual(Set(cities.map(\.name)), ["After", "Other"])
            }
        }
        early.performAndWait { expectEqual(Set(faults.0.map(\.name)), ["After", "Other"]) }
    }

    @Test func `a row that was fetched before the commit is not kept for a fault that is read after it`() throws {
        let reader = context()
        let held = Locked<[NSManagedObjectID]>([])
        // The fetch is made while the save is about to commit, and the faults are read after the commit.
        engine.beforeCommit {
            try reader.performAndWait {
                let cities = try reader.fetch(NSFetchRequest<City>(entityName: "City"))
                expect(cities.allSatisfy(\.isFault))
                reader.userInfo["cities"] = cities
                held.withLock { $0 = cities.map(\.objectID) }
            }
        }
        try saveName {
            try reader.performAndWait {
                let names = try held.withLock { $0 }.map { try require(reader.object(with: $0) as? City).name }
                expectEqual(Set(names), ["After", "Other"])
            }
        }
    }

    @Test func `a block without lazy reads may read a row again that a save replaces`() throws {
        let reader = context()
        reader.raisesOnFault = true
        try saveName {
            try reader.performAndWait {
                let cities = try reader.fetch(NSFetchRequest<City>(entityName: "City"))
                expectEqual(Set(cities.map(\.name)), ["After", "Other"])
            }
        }
        let early = context()
        early.raisesOnFault = true
        let faults = try early.performAndWait { try early.fetch(NSFetchRequest<City>(entityName: "City")) }
        nonisolated(unsafe) let cities = faults
        engine.whenCommitted { try early.performAndWait { expectEqual(Set(cities.map(\.name)), ["Later", "Other"]) } }
        try writer.performAndWait {
            let city = try require(try writer.existingObject(with: ids.city) as? City)
            city.name = "Later"
            try writer.save()
        }
        expect(engine.hasRun)
    }

    @Test func `a child and a refresh show the new row`() throws {
        let parent = context()
        let read = try parent.performAndWait { try require(try parent.existingObject(with: ids.city) as? City) }
        nonisolated(unsafe) let city = read
        parent.performAndWait { expectEqual(city.name, "Before") }
        try saveName {
            let child = context(in: context())
            try child.performAndWait {
                try expectEqual((child.existingObject(with: ids.city) as? City)?.name, "After")
            }
            parent.performAndWait {
                // Values that were read stay until the program refreshes them.
                expectEqual(city.name, "Before")
                parent.refresh(city, mergeChanges: false)
                expectEqual(city.name, "After")
            }
        }
    }

    @Test func `a deleted row is not found`() throws {
        engine.whenCommitted {
            let reader = context()
            try reader.performAndWait {
                try expectEqual(storedNames(reader), ["Other"])
                expectThrows(CocoaError.self) { _ = try reader.existingObject(with: ids.city) }
            }
        }
        try writer.performAndWait {
            writer.delete(try writer.existingObject(with: ids.city))
            try writer.save()
        }
        expect(engine.hasRun)
        let reader = context()
        reader.performAndWait { expectThrows(CocoaError.self) { _ = try reader.existingObject(with: ids.city) } }
    }

    @Test(arguments: [NSBatchUpdateRequestResultType.statusOnlyResultType, .updatedObjectIDsResultType])
    func `what a batch has changed is read`(_ type: NSBatchUpdateRequestResultType) throws {
        engine.whenCommitted {
            let reader = context()
            try reader.performAndWait {
                try expectEqual(storedNames(reader), ["After", "Other"])
                engine.resetReads()
                try expectEqual((reader.existingObject(with: ids.city) as? City)?.name, "After")
                try expectEqual((reader.existingObject(with: ids.other) as? City)?.name, "Other")
                // This store lists the rows of each batch.
                expectEqual(engine.reads, 1)
            }
        }
        let update = NSBatchUpdateRequest(entityName: "City")
        update.predicate = NSPredicate(format: "name == 'Before'")
        update.propertiesToUpdate = ["name": "After"]
        update.resultType = type
        try writer.performAndWait { _ = try writer.execute(update) }
        expect(engine.hasRun)
    }

    @Test func `after a commit that has failed, the cache has the rows as before`() throws {
        engine.failNext()
        try writer.performAndWait {
            let city = try require(try writer.existingObject(with: ids.city) as? City)
            city.name = "After"
            expectThrows(CocoaError.self) { try writer.save() }
        }
        engine.resetReads()
        let reader = context()
        try reader.performAndWait {
            try expectEqual((reader.existingObject(with: ids.city) as? City)?.name, "Before")
        }
        expectEqual(engine.reads, 0)
    }
}

/// A store whose saves and batches are in it some time before they are reported.
private final class LateStore: NSPersistentStore, EngineStore, @unchecked Sendable {
    // @unchecked Sendable: a mutex guards `opened`.
    private let opened = Locked<LateEngine?>(nil)

    var engine: any RowStore { get throws { try require(opened.withLock { $0 }) } }

    override func loadMetadata() throws {
        let model = try require(persistentStoreCoordinator?.managedObjectModel)
        opened.withLock { $0 = LateEngine(model.frozen.schema) }
        metadata = [NSStoreTypeKey: "Late", NSStoreUUIDKey: identifier ?? ""]
    }

    static func coordinator() throws -> NSPersistentStoreCoordinator {
        NSPersistentStoreCoordinator.registerStoreClass(LateStore.self, forStoreType: "Late")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(type: .init(rawValue: "Late"), at: URL(fileURLWithPath: "/dev/null"))
        return coordinator
    }
}

/// Rows in memory; a test chooses what happens right before and right after the next commit.
private final class LateEngine: InMemoryRows {
    private struct Steps {
        var before: (@Sendable () throws -> Void)?
        var after: (@Sendable () throws -> Void)?
        var fails = false
        var reads = 0
    }

    private let inner: MemoryEngine
    private let steps = Locked(Steps())

    let place = "late"
    let takesBatches = true

    init(_ schema: Schema) { inner = MemoryEngine(schema, timeout: 10) }

    func beforeCommit(_ body: @escaping @Sendable () throws -> Void) { steps.withLock { $0.before = body } }
    func whenCommitted(_ body: @escaping @Sendable () throws -> Void) { steps.withLock { $0.after = body } }
    func failNext() { steps.withLock { $0.fails = true } }

    /// Whether the chosen steps have been taken.
    var hasRun: Bool { steps.withLock { $0.before == nil && $0.after == nil } }

    /// The number of rows that were looked up by their keys.
    var reads: Int { steps.withLock { $0.reads } }
    func resetReads() { steps.withLock { $0.reads = 0 } }

    func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { inner.withContents(body) }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        steps.withLock { $0.reads += 1 }
        return try inner.row(forKey: key, in: layout)
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row] {
        steps.withLock { $0.reads += keys.count }
        return try inner.rows(forKeys: keys, in: layout, control: control)
    }

    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] { try inner.reserveKeys(counts) }

    func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        let steps = takeSteps()
        willCommit(StoreSaveResult())
        try steps.before?()
        if steps.fails { throw CocoaError(.persistentStoreSave) }
        // The rows of the change set stay with the context.
        var copy = changes
        copy.inserted = changes.inserted.map { $0.copy() }
        copy.updated = changes.updated.map {
            RowUpdate(row: $0.row.copy(), baseVersion: $0.baseVersion, changed: $0.changed)
        }
        var result = StoreSaveResult()
        let conflicts = try inner.save(copy) {
            result = $0
            copy.settle($0)
        }
        guard conflicts.isEmpty else { return conflicts }
        try steps.after?()
        didCommit(result)
        return []
    }

    func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        let steps = takeSteps()
        var changes = BatchChanges()
        try inner.execute(
            batch,
            willCommit: { _ in },
            didCommit: {
                changes = $0
                willCommit($0)
            }
        )
        try steps.after?()
        didCommit(changes)
    }

    private func takeSteps() -> Steps {
        steps.withLock { steps in
            defer { (steps.before, steps.after, steps.fails) = (nil, nil, false) }
            return steps
        }
    }

    func close() { inner.close() }
}
