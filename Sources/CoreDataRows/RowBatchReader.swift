import CoreDataEssentials
import StrataLocks
import StrataRows

/// Holds the reader of one loop, and stops it when the loop is gone.
final class RowBatchLoop: Sendable {
    let reader: RowBatchReader

    init(_ sequence: RowBatches) { reader = RowBatchReader(sequence) }

    deinit { reader.stop() }
}

/// Reads the batches of one loop, each on a thread of the coordinator.
///
/// From the second batch on, the next one is read while the loop works with a batch. A program that wants the first batch
/// only has no use for that.
final class RowBatchReader: Sendable {
    private typealias Batch = Result<[FetchedRow]?, any Error>

    private struct Part {
        let store: OpenStore
        let cursor: any RowCursor

        func next(_ count: Int) throws -> [FetchedRow] {
            let base = store.base
            if let pages = try cursor.nextPages(count, for: base) { return FetchedRow.rows(in: pages) }
            return try cursor.next(count).map { FetchedRow($0, base) }
        }
    }

    private enum Position {
        case unopened
        /// The parts that have not been read to their end, the current one last.
        case open([Part])
        case ended
    }

    /// The state of the waits between the loop and the thread that reads.
    private struct Turns {
        /// Whether a batch is being read.
        var isReading = false
        /// The task that waits for this batch.
        var answer: (@Sendable (Batch) -> Void)?
        /// A batch that was read before the loop asked for it.
        var ahead: Batch?
        /// How many batches the loop has asked for.
        var asked = 0
    }

    private let sequence: RowBatches
    private let control = FetchControl()
    private let turns = Locked(Turns())
    private let position = Locked(UncheckedBox(Position.unopened))
    // Unchecked: only one read at a time uses a cursor, and it has taken the cursor out of `position`.

    init(_ sequence: RowBatches) {
        self.sequence = sequence
        control.mayReadReplica = sequence.mayReadReplica
    }

    /// Ends a read that is under way; there are no more batches.
    func stop() { control.cancellation.cancel() }

    func next() async throws -> [FetchedRow]? {
        guard let coordinator = sequence.coordinator else {
            throw FetchPlanner.refused("The context has no persistentStoreCoordinator to read from.")
        }
        return try await withTaskCancellationHandler {
            try await withAnswer { self.ask(coordinator, $0) }.get()
        } onCancel: {
            control.cancellation.cancel()
        }
    }

    // MARK: - Taking turns with the reading thread

    private func ask(_ coordinator: NSPersistentStoreCoordinator, _ answer: @escaping @Sendable (Batch) -> Void) {
        let (ready, mustRead) = turns.withLock { turns -> (Batch?, Bool) in
            turns.asked += 1
            guard let ready = turns.ahead else {
                turns.answer = answer
                defer { turns.isReading = true }
                return (nil, !turns.isReading)
            }
            turns.ahead = nil
            turns.isReading = ready.isFollowed
            return (ready, ready.isFollowed)
        }
        if mustRead { submit(coordinator) }
        guard let ready else { return }
        // The task may have been cancelled after the batch was read.
        answer(control.cancellation.isCancelled ? .failure(CancellationError()) : ready)
    }

    private func submit(_ coordinator: NSPersistentStoreCoordinator) {
        coordinator.asynchronousReads.submit { self.readBatch(coordinator) }
    }

    private func readBatch(_ coordinator: NSPersistentStoreCoordinator) {
        let batch = Batch { try self.read(coordinator) }
        let (answer, mustRead) = turns.withLock { turns -> ((@Sendable (Batch) -> Void)?, Bool) in
            guard let answer = turns.answer else {
                turns.ahead = batch
                turns.isReading = false
                return (nil, false)
            }
            turns.answer = nil
            turns.isReading = turns.asked > 1 && batch.isFollowed
            return (answer, turns.isReading)
        }
        if mustRead { submit(coordinator) }
        answer?(batch)
    }

    // MARK: - Reading

    private func read(_ coordinator: NSPersistentStoreCoordinator) throws -> [FetchedRow]? {
        // The loop counts as ended during the read; if the read fails, it stays so.
        let position = position.withLock { position in
            defer { position = UncheckedBox(.ended) }
            return position
        }
        do {
            try control.cancellation.check()
            var parts: [Part]
            switch position.value {
            case .unopened: parts = try open(coordinator)
            case .open(let open): parts = open
            case .ended: return nil
            }
            while let part = parts.last {
                let rows = try part.next(sequence.batchSize)
                guard rows.isEmpty else {
                    let rest = UncheckedBox(Position.open(parts))
                    self.position.withLock { $0 = rest }
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

extension Result where Success == [FetchedRow]? {
    /// Whether there may be a batch after this one.
    fileprivate var isFollowed: Bool {
        if case .success(.some) = self { true } else { false }
    }
}
