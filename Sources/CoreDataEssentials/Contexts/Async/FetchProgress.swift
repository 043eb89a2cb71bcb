import Foundation
import StrataLocks
import StrataRows

/// The progress of a fetch.
///
/// See <doc:AsynchronousFetches>.
///
/// ```swift
/// let count = try await context.fetch(request, progress: { print($0.completedRows, "of", $0.expectedRows ?? 0) }) { $0.count }
/// ```
public struct FetchProgress: Sendable, Hashable {
    /// The rows that were read so far.
    public let completedRows: Int
    /// The number of rows to be read, counted in the same transaction; `nil` before they are counted.
    public let expectedRows: Int?
}

/// Updates a `Progress` with the numbers of a fetch.
///
/// The reading thread stores its numbers here, and a block in the context's scope transfers them. On Linux, no other
/// thread may use a `Progress` that code in the scope may be reading. There is only one such block at a time, however
/// fast rows come.
final class ProgressMirror: @unchecked Sendable {
    // @unchecked Sendable: `progress` is used inside the context's scope only; the rest is constant or behind a mutex.
    let progress: Progress
    private let context: NSManagedObjectContext
    private let waiting = Locked<FetchProgress?>(nil)

    /// Makes a child of the current progress; inside the context's scope.
    init(_ context: NSManagedObjectContext, _ estimate: Int?) {
        self.context = context
        progress = Progress(totalUnitCount: Int64(estimate ?? -1))
    }

    /// Takes the numbers of the reading thread; may be called on any thread.
    @Sendable func report(_ read: Int, _ expected: Int?) {
        let isFirst = waiting.withLock { waiting in
            defer { waiting = FetchProgress(completedRows: read, expectedRows: expected) }
            return waiting == nil
        }
        guard isFirst else { return }
        context.enqueueAlone { ConfinementScope.enter(self.context) { self.enterNumbers() } }
    }

    private func enterNumbers() {
        let numbers = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        guard let numbers, !progress.isFinished else { return }
        if let expected = numbers.expectedRows { progress.totalUnitCount = Int64(expected) }
        // The last unit is done only after the objects were made.
        let most = max(progress.totalUnitCount - 1, 0)
        progress.completedUnitCount = progress.isIndeterminate ? 0 : min(Int64(numbers.completedRows), most)
    }

    /// Marks the progress as finished or cancelled.
    static func end(_ progress: Progress, _ isCancelled: Bool) {
        guard !isCancelled else { return progress.cancel() }
        if progress.totalUnitCount < 1 { progress.totalUnitCount = 1 }
        progress.completedUnitCount = progress.totalUnitCount
    }
}
