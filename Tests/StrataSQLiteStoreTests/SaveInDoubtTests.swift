import Expectations
import Foundation
import StrataLocks
import StrataMemoryStore
import StrataRows
import TestSupport
import Testing

@testable import CoreData

@Suite("A save in doubt")
struct SaveInDoubtTests {
    @Test(arguments: [true, false])
    func `the changes stay unsaved, the error says so, and what is read then is what is stored`(isCommitted: Bool)
        throws
    {
        let coordinator = try DoubtfulStore.coordinator()
        let engine = try require(coordinator.openStores.first?.rows as? DoubtfulEngine)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let id = try context.performAndWait {
            let city = City(context: context)
            city.name = "Before"
            try context.save()
            city.name = "After"
            return city.objectID
        }
        engine.doubt(afterCommitting: isCommitted)

        let error = context.performAndWait { expectThrows(CocoaError.self) { try context.save() } }

        expectEqual(error?.code, .persistentStoreSave)
        expectEqual(error?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID, DoubtfulEngine.identifier)
        expect(error?.affectedStores?.first as? DoubtfulStore != nil)
        try context.performAndWait {
            expect(context.hasChanges)
            expectEqual(context.updatedObjects.map(\.objectID), [id])
        }
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = coordinator
        try reader.performAndWait {
            let stored = try require(try reader.existingObject(with: id) as? City)
            expectEqual(stored.name, isCommitted ? "After" : "Before")
        }
    }

    @Test func `whoever reads anew after the doubt can save again`() throws {
        let coordinator = try DoubtfulStore.coordinator()
        let engine = try require(coordinator.openStores.first?.rows as? DoubtfulEngine)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Before"
            try context.save()
            city.name = "After"
            engine.doubt(afterCommitting: true)
            expectThrows(CocoaError.self) { try context.save() }

            context.refresh(city, mergeChanges: true)
            city.population = 7
            try context.save()

            expectEqual(city.name, "After")
            expect(!context.hasChanges)
        }
    }
}

/// A store whose engine may lose the answer to a save.
private final class DoubtfulStore: NSPersistentStore, EngineStore, @unchecked Sendable {
    // @unchecked Sendable: `opened` is behind its mutex.
    private let opened = StrataLocks.Mutex<DoubtfulEngine?>(nil)

    var engine: any RowStore { get throws { try require(opened.withLock { $0 }) } }

    override func loadMetadata() throws {
        let model = try require(persistentStoreCoordinator?.managedObjectModel)
        opened.withLock { $0 = DoubtfulEngine(model.frozen.schema) }
        metadata = [NSStoreTypeKey: "Doubtful", NSStoreUUIDKey: identifier ?? ""]
    }

    static func coordinator() throws -> NSPersistentStoreCoordinator {
        NSPersistentStoreCoordinator.registerStoreClass(DoubtfulStore.self, forStoreType: "Doubtful")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(type: .init(rawValue: "Doubtful"), at: URL(fileURLWithPath: "/dev/null"))
        return coordinator
    }
}

/// Rows in memory, and saves that end in doubt when somebody asks for it.
private final class DoubtfulEngine: InMemoryRows {
    static let identifier = UUID()

    private struct LostAnswer: Error {}

    private let inner: MemoryEngine
    /// Whether the next save is committed before its answer is lost; `nil` for no doubt.
    private let doubts = StrataLocks.Mutex<Bool?>(nil)

    init(_ schema: Schema) { inner = MemoryEngine(schema, timeout: 10) }

    func doubt(afterCommitting isCommitted: Bool) { doubts.withLock { $0 = isCommitted } }

    let place = "far away"
    let takesBatches = false

    func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { inner.withContents(body) }

    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] { try inner.reserveKeys(counts) }

    func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict] {
        let doubt = doubts.withLock { doubts in
            defer { doubts = nil }
            return doubts
        }
        guard let doubt else { return try inner.save(changes, didCommit: didCommit) }
        if doubt {
            // The rows of the change set stay the context's.
            var copy = changes
            copy.updated = changes.updated.map {
                RowUpdate(row: $0.row.copy(), baseVersion: $0.baseVersion, changed: $0.changed)
            }
            _ = try inner.save(copy) { copy.settle($0) }
        }
        throw SaveInDoubt(identifier: Self.identifier, reason: LostAnswer())
    }

    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws {}

    func close() { inner.close() }
}
