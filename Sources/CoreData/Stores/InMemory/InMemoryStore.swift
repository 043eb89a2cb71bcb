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
    // @unchecked Sendable: all state of its own is behind mutexes.

    private let contents = Mutex(InMemoryContents(model: nil))
    /// Whether another store has taken this one's place.
    ///
    /// Held by whoever writes or reserves keys, for as long as that takes; what a batch works on is a copy, so that others
    /// can read meanwhile.
    private let isRetired = Mutex(false)

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
        isRetired.withLock { _ in
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
        try isRetired.withLock { isRetired in
            if isRetired { throw closedError }
            // Who follows the batch is told amid it, and may read.
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
        try isRetired.withLock { isRetired in
            // Readers, as `body` is one, do not wait for this.
            try body()
            isRetired = true
        }
    }

    private func writing<R>(_ body: (inout InMemoryContents) throws -> sending R) throws -> sending R {
        try isRetired.withLock { isRetired in
            if isRetired { throw closedError }
            return try contents.withLock { try body(&$0) }
        }
    }

    func saveMetadata() throws {}

    func close() { contents.withLock { $0 = InMemoryContents(model: nil) } }
}
