import CoreDataEssentials
import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// The stored results of a request, batch by batch, from one version of each store and with bounded memory.
    ///
    /// ```swift
    /// for try await batch in context.rows(for: NSFetchRequest<Venue>(entityName: "Venue"), batchSize: 500) {
    ///     for row in batch { print(row["name"] as? String ?? "") }
    /// }
    /// ```
    ///
    /// Use it for exports and other long loops. No objects are made, and no more than two batches are in memory: from the
    /// second batch on, the next one is read while the loop works with a batch. Whatever is saved meanwhile, the rows are
    /// those of the moment when the first batch was requested. Unsaved changes do not count, as in dictionary results. The
    /// context's queue is not occupied, and no thread waits for the loop; the batches take turns with the coordinator's
    /// other asynchronous fetches. To work with a batch as objects, fetch `SELF IN` its `objectID`s.
    ///
    /// A SQLite store keeps its version as long as the loop runs, so its write-ahead log grows with what is saved
    /// meanwhile. It has 16 connections for such loops and for pinned contexts; on PostgreSQL
    /// `NSPostgreSQLPinnedVersionsOption` sets the number. A PostgreSQL store keeps a version too,
    /// and the keys of the rows in memory. A file with another journal mode, and any other kind of store, loads all rows
    /// into memory with the first batch.
    ///
    /// If the context is pinned, the rows are those of the version that it is pinned to when this is called. The loop
    /// then keeps the keys of the rows in memory.
    ///
    /// May be called on any thread. Each loop reads again. A loop throws `CancellationError` when its task is
    /// cancelled, which interrupts the statement of SQLite or PostgreSQL. It throws `persistentStoreOperation` (134070)
    /// for a request that is not valid, for a sorted or limited request to several stores, and if there are too many
    /// loops. It also throws errors of the store.
    ///
    /// - Parameters:
    ///   - request: The request; a copy is made. Its result type and `includesPendingChanges` are ignored.
    ///   - batchSize: The number of rows to read at a time; the last batch may be smaller. Default 1000. Less than 1 stops
    ///     the program.
    /// - Returns: The sequence; nothing is read before a loop over it starts.
    public func rows<ResultType>(for request: NSFetchRequest<ResultType>, batchSize: Int = 1000) -> RowBatches {
        precondition(batchSize > 0, "CoreData: rows(for:batchSize:) needs a batch size of at least 1.")
        registerClass(ResultType.self, of: request.specification)
        return RowBatches(
            request: UncheckedBox((request.specification, request.affectedStores)),
            coordinator: persistentStoreCoordinator,
            generation: sharedGeneration,
            mayReadReplica: readsFromReplicas,
            batchSize: batchSize
        )
    }
}

/// The results of a request, batch by batch.
///
/// See ``NSManagedObjectContext/rows(for:batchSize:)``.
///
/// See <doc:AsynchronousFetches>.
///
/// ```swift
/// var names: [String] = []
/// for try await batch in context.rows(for: request, batchSize: 500) { names += batch.compactMap { $0["name"] as? String } }
/// ```
public struct RowBatches: AsyncSequence, Sendable {
    /// A batch; it is never empty.
    public typealias Element = [FetchedRow]

    // Unchecked: a copy, which never changes, of a request whose predicate and sort descriptors are immutable.
    let request: UncheckedBox<(FetchSpecification, [NSPersistentStore]?)>
    let coordinator: NSPersistentStoreCoordinator?
    let generation: PinnedGeneration?
    let mayReadReplica: Bool
    let batchSize: Int

    /// Starts a loop.
    ///
    /// - Returns: A new loop, for one task.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(loop: RowBatchLoop(self)) }

    /// One loop.
    ///
    /// Use it in one task.
    ///
    /// ```swift
    /// var batches = context.rows(for: request).makeAsyncIterator()
    /// while let batch = try await batches.next() { print(batch.count) }
    /// ```
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let loop: RowBatchLoop

        /// Returns the next batch.
        ///
        /// - Returns: `nil` at the end.
        /// - Throws: `CancellationError` when the task was cancelled, and errors of the store; the loop ends with that.
        public mutating func next() async throws -> [FetchedRow]? { try await loop.reader.next() }
    }
}
