import CoreDataEssentials
import Foundation
import StrataLocks
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
    /// Use it for exports and other long loops. No objects are made, and no more than one batch is in memory. Whatever
    /// is saved meanwhile, the rows are those of the moment when the first batch was requested. Unsaved changes do not
    /// count, as in dictionary results. Neither the context's queue nor a thread is occupied; the batches take turns
    /// with the coordinator's other asynchronous fetches. To work with a batch as objects, fetch `SELF IN` its
    /// `objectID`s.
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
    fileprivate let request: UncheckedBox<(FetchSpecification, [NSPersistentStore]?)>
    fileprivate let coordinator: NSPersistentStoreCoordinator?
    fileprivate let generation: PinnedGeneration?
    fileprivate let mayReadReplica: Bool
    fileprivate let batchSize: Int

    /// Starts a loop.
    ///
    /// - Returns: A new loop, for one task.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: RowBatchReader(self)) }

    /// One loop.
    ///
    /// Use it in one task.
    ///
    /// ```swift
    /// var batches = context.rows(for: request).makeAsyncIterator()
    /// while let batch = try await batches.next() { print(batch.count) }
    /// ```
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: RowBatchReader

        /// Returns the next batch.
        ///
        /// - Returns: `nil` at the end.
        /// - Throws: `CancellationError` when the task was cancelled, and errors of the store; the loop ends with that.
        public mutating func next() async throws -> [FetchedRow]? { try await reader.next() }
    }
}

/// Reads the batches of one loop, each on a thread of the coordinator.
private final class RowBatchReader: Sendable {
    private struct Part {
        let store: OpenStore
        let cursor: any RowCursor

        func next(_ count: Int) throws -> [FetchedRow] {
            let base = store.base
            if let packed = try cursor.nextPacked(count) { return packed.map { FetchedRow($0, base) } }
            return try cursor.next(count).map { FetchedRow($0, base) }
        }
    }

    private enum State {
        case unopened
        /// The parts that have not been read to their end, the current one last.
        case open([Part])
        case ended
    }

    private let sequence: RowBatches
    private let control = FetchControl()
    private let state = Locked(UncheckedBox(State.unopened))
    // Unchecked: only one read at a time uses a cursor, and it has taken the cursor out of `state`.

    init(_ sequence: RowBatches) {
        self.sequence = sequence
        control.mayReadReplica = sequence.mayReadReplica
    }

    func next() async throws -> [FetchedRow]? {
        guard let coordinator = sequence.coordinator else {
            throw FetchPlanner.refused("The context has no persistentStoreCoordinator to read from.")
        }
        return try await withTaskCancellationHandler {
            try await withAnswer { answer in
                coordinator.asynchronousReads.submit { answer(Result { try self.read(coordinator) }) }
            }.get()
        } onCancel: {
            control.cancellation.cancel()
        }
    }

    private func read(_ coordinator: NSPersistentStoreCoordinator) throws -> [FetchedRow]? {
        // The loop counts as ended during the read; if the read fails, it stays so.
        let state = state.withLock { state in
            defer { state = UncheckedBox(.ended) }
            return state
        }
        do {
            try control.cancellation.check()
            var parts: [Part]
            switch state.value {
            case .unopened: parts = try open(coordinator)
            case .open(let open): parts = open
            case .ended: return nil
            }
            while let part = parts.last {
                let rows = try part.next(sequence.batchSize)
                guard rows.isEmpty else {
                    let rest = UncheckedBox(State.open(parts))
                    self.state.withLock { $0 = rest }
                    return rows
                }
                parts.removeLast()
            }
            return nil
        } catch {
            throw control.cancellation.isCancelled ? CancellationError() : error
        }
    }

    private func open(_ coordinator: NSPersistentStoreCoordinator) throws -> [Part] {
        try coordinator.followingMoves { try openOnce(coordinator) }
    }

    private func openOnce(_ coordinator: NSPersistentStoreCoordinator) throws -> [Part] {
        let (specification, affected) = sequence.request.value
        var plan = try FetchPlanner(model: coordinator.frozenModel).plan(specification)
        let pinned = try sequence.generation?.stores()
        let stores = try pinned?.stores(for: plan, affected) ?? coordinator.openStores(for: plan, affected)
        guard stores.count < 2 || (plan.sort == nil && plan.limit == 0 && plan.offset == 0) else {
            throw FetchPlanner.refused(
                "rows(for:) does not sort, limit or offset what comes from several stores; set affectedStores to one."
            )
        }
        plan.control = control
        return try stores.reversed().map {
            try coordinator.willRead(StoreRead(.fetch, plan.layout, predicate: specification.predicate))
            return try Part(store: $0, cursor: $0.reader.cursor(for: plan.asked(ofStore: $0.number)))
        }
    }
}
