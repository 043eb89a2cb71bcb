import CoreData
import StrataLocks

/// Runs work again if another context, or another process, got in its way.
final class Retrying: Sendable {
    static let mostAttempts = 20

    private let repeats = Locked(0)

    /// The number of times that work had to be run again.
    var count: Int { repeats.withLock { $0 } }

    /// Runs `work`, and runs it again as long as it fails because of a conflict.
    ///
    /// `work` must read the store anew each time: the objects that it left in its context are stale after a conflict.
    func callAsFunction<Result: Sendable>(_ work: () async throws -> Result) async throws -> Result {
        for attempt in 1..<Self.mostAttempts {
            do {
                return try await work()
            } catch let error where Self.isConflict(error) {
                repeats.withLock { $0 += 1 }
                // If two contexts collided and both started over at once, they would collide again.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...5 * attempt)))
            }
        }
        return try await work()
    }

    /// Whether `error` means that the store has changed under a save, or was busy, so that another try may help.
    static func isConflict(_ error: any Error) -> Bool {
        switch (error as? CocoaError)?.code {
        case .managedObjectConstraintMerge, .managedObjectMerge, .persistentStoreSaveConflicts, .persistentStoreTimeout:
            true
        default:
            false
        }
    }
}
