import Foundation
import StrataRows
import Synchronization

/// How far a fetch is.
///
/// See <doc:AsynchronousFetches>.
///
/// ```swift
/// let count = try await context.fetch(request, progress: { print($0.completedRows, "of", $0.expectedRows ?? 0) }) { $0.count }
/// ```
public struct FetchProgress: Sendable, Hashable {
    /// The rows that were read so far.
    public let completedRows: Int
    /// The rows that will be read in all, as the same transaction counted them; `nil` until it has.
    public let expectedRows: Int?
}

/// Keeps a `Progress` in step with a fetch.
///
/// The reading thread leaves its numbers here, and a block in the context's scope enters them: on Linux nobody else
/// may touch a `Progress` that somebody may be looking at. One such block at a time is under way, however fast rows
/// come.
final class ProgressMirror: @unchecked Sendable {
    // @unchecked Sendable: `progress` is touched inside the context's scope only; the rest is constant or behind a
    // mutex.
    let progress: Progress
    private let context: NSManagedObjectContext
    private let waiting = Mutex<FetchProgress?>(nil)

    /// Makes a child of the current progress; inside the context's scope.
    init(_ context: NSManagedObjectContext, _ estimate: Int?) {
        self.context = context
        progress = Progress(totalUnitCount: Int64(estimate ?? -1))
    }

    /// Takes numbers; on any thread.
    @Sendable func report(_ read: Int, _ expected: Int?) {
        let isFirst = waiting.withLock { waiting in
            defer { waiting = FetchProgress(completedRows: read, expectedRows: expected) }
            return waiting == nil
        }
        guard isFirst else { return }
        context.queue.async { self.context.alone { ConfinementScope.enter(self.context) { self.enterNumbers() } } }
    }

    private func enterNumbers() {
        let numbers = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        guard let numbers, !progress.isFinished else { return }
        if let expected = numbers.expectedRows { progress.totalUnitCount = Int64(expected) }
        // All of it is done only when the objects have been made.
        let most = max(progress.totalUnitCount - 1, 0)
        progress.completedUnitCount = progress.isIndeterminate ? 0 : min(Int64(numbers.completedRows), most)
    }

    /// Enters that nothing more will come.
    static func end(_ progress: Progress, _ isCancelled: Bool) {
        guard !isCancelled else { return progress.cancel() }
        if progress.totalUnitCount < 1 { progress.totalUnitCount = 1 }
        progress.completedUnitCount = progress.totalUnitCount
    }
}
