import StrataPredicates
import StrataRows

/// Option: a `Progress` that a migration of the store moves on, from 0 to its total, and by which it can be cancelled.
///
/// Without it the migration reports to the current `Progress` of the thread that adds the store, if there is one. A store that is not
/// migrated leaves it as it is. A cancelled migration throws `migrationCancelled` (134120); the store is as it was before, or at the
/// end of a step. In place the progress moves on table by table, and is cancelled between two of them. An addition to Apple's API.
public let NSPersistentStoreMigrationProgressOption = "NSPersistentStoreMigrationProgressOption"

/// How far the migration of a store is: one step after another, each from 0 to 1.
///
/// Used by the thread that migrates.
final class MigrationProgress {
    private static let stepUnits: Int64 = 1000
    private let progress: Progress
    /// The steps that are done.
    private var done: Int64 = 0

    /// - Parameter options: Those of the store.
    init(_ options: [AnyHashable: Any]) {
        if let parent = options[NSPersistentStoreMigrationProgressOption] as? Progress {
            progress = Progress(parent: nil)
            if parent.totalUnitCount <= 0 { parent.totalUnitCount = 100 }
            parent.addChild(progress, withPendingUnitCount: parent.totalUnitCount - parent.completedUnitCount)
        } else {
            progress = Progress(parent: Progress.current())
        }
        progress.totalUnitCount = Self.stepUnits
    }

    /// Says how many steps there are, before the first.
    func expect(steps: Int) {
        progress.totalUnitCount = Int64(max(steps, 1)) * Self.stepUnits
        done = 0
    }

    var isCancelled: Bool { progress.isCancelled }

    /// Notes how far a step is.
    ///
    /// - Throws: `migrationCancelled` (134120) if nobody wants the migration any more.
    func advance(to fraction: Double) throws {
        try throwIfCancelled()
        let units = Int64(min(max(fraction, 0), 1) * Double(Self.stepUnits))
        progress.completedUnitCount = min(done * Self.stepUnits + units, progress.totalUnitCount)
    }

    /// Notes that a step is done.
    func endStep() {
        done += 1
        progress.completedUnitCount = min(done * Self.stepUnits, progress.totalUnitCount)
    }

    func finish() { progress.completedUnitCount = progress.totalUnitCount }

    func throwIfCancelled() throws {
        if progress.isCancelled { throw CocoaError(.migrationCancelled) }
    }

    /// The error of a migration that was cancelled.
    static func cancelled(_ url: URL) -> CocoaError {
        CocoaError.described(
            .migrationCancelled,
            userInfo: [
                NSLocalizedDescriptionKey: "The migration of the store \(url.placeName) was cancelled.",
                NSFilePathErrorKey: url.placeName,
            ]
        )
    }
}
