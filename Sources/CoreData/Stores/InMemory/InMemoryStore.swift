import Foundation
import Synchronization

#if FaultPoints
import StrataLocks
#endif

/// A store that keeps its rows in memory, with the same behaviour as a SQLite store towards contexts: versions, unique
/// constraints, all-or-nothing saves.
///
/// Gone when it is removed from its coordinator. Any thread may use it.
final class InMemoryStore: NSPersistentStore, InMemoryRows, @unchecked Sendable {
    // @unchecked Sendable: all state of its own is constant, atomic or behind a mutex.

    private let contents = Mutex(InMemoryContents(model: nil))
    /// Whose turn it is to write or to reserve keys.
    ///
    /// No lock: who follows a batch is told amid it. What that works on is a copy, so that others can read meanwhile.
    private let turn: StoreTurn
    /// Whether another store has taken this one's place; set by whoever has the turn.
    private let isRetired = Atomic(false)

    required init(
        persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
        configurationName name: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) {
        turn = StoreTurn(options)
        super.init(persistentStoreCoordinator: root, configurationName: name, at: url, options: options)
    }

    override var type: String { NSInMemoryStoreType }

    override func loadMetadata() throws {
        guard let model = persistentStoreCoordinator?.managedObjectModel else { return }
        contents.withLock { $0 = InMemoryContents(model: model.frozen) }
        metadata = [
            NSStoreTypeKey: NSInMemoryStoreType,
            NSStoreUUIDKey: identifier ?? "",
            NSStoreModelVersionHashesKey: model.versionHashes(forConfigurationName: configurationName) ?? [:],
            NSStoreModelVersionIdentifiersKey: model.versionIdentifiers.compactMap { $0 as? String }.sorted(),
        ]
    }

    override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        throw CocoaError(
            .persistentStoreOpen,
            userInfo: [NSLocalizedDescriptionKey: "A store in memory has no metadata before it is added."]
        )
    }

    func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { contents.withLock { body($0) } }

    // MARK: - Writing

    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: Range<Int64>] {
        // Keys that were reserved beside a batch would be given once more when that replaces the contents.
        try turn.takeAlone {
            contents.withLock { contents in
                var result: [Int: Range<Int64>] = [:]
                for (root, count) in counts { result[root] = contents.reserve(count, root) }
                return result
            }
        }
    }

    func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict] {
        try writing { contents in
            // The new contents are made beside the old ones, so a refused save leaves nothing behind.
            var next = contents
            let conflicts = next.findVersionConflicts(changes)
            guard conflicts.isEmpty else { return conflicts }
            let result = next.apply(changes)
            let broken = next.findConstraintConflicts(changes, result.insertedKeys)
            guard broken.isEmpty else { return broken }
            // The rows are the context's own until here; from now on nobody changes them.
            didCommit(result)
            contents = next
            return []
        }
    }

    var takesBatches: Bool { true }

    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws {
        #if FaultPoints
        try FaultPoint.batchBegan.reach()
        #endif
        // Handlers are called before the contents are locked.
        let given = try InMemoryBatch.givenRows(of: batch)
        try turn.takeAlone {
            if isRetired.load(ordering: .relaxed) { throw closedError }
            var work = InMemoryBatch(batch, snapshot)
            // As in a save: what is refused leaves nothing behind.
            try work.run(given)
            #if FaultPoints
            try FaultPoint.batchWritten.reach()
            #endif
            contents.withLock { contents in
                didCommit(work.changes)
                contents = work.contents
            }
        }
    }

    func retire(_ body: () throws -> Void) throws {
        try turn.takeAlone {
            // Readers, as `body` is one, do not wait for this.
            try body()
            isRetired.store(true, ordering: .relaxed)
        }
    }

    private func writing<R: Sendable>(_ body: (inout InMemoryContents) throws -> R) throws -> R {
        try turn.takeAlone {
            if isRetired.load(ordering: .relaxed) { throw closedError }
            return try contents.withLock { try body(&$0) }
        }
    }

    func saveMetadata() throws {}

    func close() { contents.withLock { $0 = InMemoryContents(model: nil) } }
}
