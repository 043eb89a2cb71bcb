import CoreDataEssentials
import StrataLocks
import StrataPredicates
import StrataRows

/// Option: a `Progress` that a migration of the store advances from 0 to its total, and that can cancel it.
///
/// Without the option the migration reports to the current `Progress` of the thread that adds the store, if there is
/// one. If the store is not migrated, then the progress is not changed. A cancelled migration throws
/// `migrationCancelled` (134120); the store is then as it was before, or at the end of a step. A migration in place
/// advances the progress table by table, and can be cancelled between two tables. An addition to Apple's API.
public let NSPersistentStoreMigrationProgressOption = "NSPersistentStoreMigrationProgressOption"

/// The progress of the migration of a store, one step after another, each from 0 to 1.
///
/// Only the thread that migrates uses it.
final class MigrationProgress {
    private static let stepUnits: Int64 = 1000
    private let progress: Progress
    private let cancellation = Cancellation()
    /// The number of steps that have ended.
    private var done: Int64 = 0

    private let report: ((Double) -> Void)?

    /// Begins a migration.
    ///
    /// - Parameters:
    ///   - options: The options of the store.
    ///   - report: Receives the finished part of the migration, from 0 to 1; `nil` for none.
    init(_ options: [AnyHashable: Any], report: ((Double) -> Void)? = nil) {
        self.report = report
        if let parent = options[NSPersistentStoreMigrationProgressOption] as? Progress {
            progress = Progress(parent: nil)
            if parent.totalUnitCount <= 0 { parent.totalUnitCount = 100 }
            parent.addChild(progress, withPendingUnitCount: parent.totalUnitCount - parent.completedUnitCount)
        } else {
            progress = Progress(parent: Progress.current())
        }
        progress.totalUnitCount = Self.stepUnits
    }

    /// Sets the number of steps, before the first step.
    func expect(steps: Int) {
        progress.totalUnitCount = Int64(max(steps, 1)) * Self.stepUnits
        done = 0
    }

    var isCancelled: Bool { currentCancellation.isCancelled }

    /// Records the progress of a step.
    ///
    /// - Throws: `migrationCancelled` (134120) if the migration was cancelled.
    func advance(to fraction: Double) throws {
        try throwIfCancelled()
        let units = Int64(min(max(fraction, 0), 1) * Double(Self.stepUnits))
        move(to: done * Self.stepUnits + units)
    }

    /// Records that a step has ended.
    func endStep() {
        done += 1
        move(to: done * Self.stepUnits)
    }

    func finish() { move(to: progress.totalUnitCount) }

    private func move(to units: Int64) {
        progress.completedUnitCount = min(units, progress.totalUnitCount)
        report?(Double(progress.completedUnitCount) / Double(progress.totalUnitCount))
    }

    func throwIfCancelled() throws { try currentCancellation.check() }

    private var currentCancellation: Cancellation {
        cancellation.following(progress, throwing: CocoaError(.migrationCancelled))
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
