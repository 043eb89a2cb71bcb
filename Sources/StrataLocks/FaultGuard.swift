#if FaultPoints
import Synchronization

/// Guards of the library that tests can switch off, to see that somebody notices.
///
/// Only builds with the package trait `FaultPoints` have the switch (see `FaultPoint`).
package enum FaultGuard: String, CaseIterable, Sendable {
    /// A save that finds another version of a row than it has read is refused.
    case versionCheck = "no-version-check"
    /// The row cache forgets the rows that a batch has changed.
    case batchInvalidation = "no-invalidation"
    /// Contexts that follow are told of saves.
    case mergeDelivery = "no-merge"
    /// A migration is one transaction.
    case migrationTransaction = "no-migration-transaction"
    /// Who comes to migrate a store looks whether somebody else was first.
    case migrationCheck = "no-migration-check"
    /// Who has lost the answer to a commit asks what has become of it.
    case doubtResolution = "no-doubt-resolution"
    /// A context saves nothing that may have been computed from values that could not be read.
    case failedReadGuard = "no-failed-read-guard"
    /// A file that was moved or replaced while it is open is not written to.
    case filePlaceCheck = "no-file-place-check"
    /// An inferred migration drops values only if that is allowed.
    case lossCheck = "no-loss-check"
    /// A save that brings back a row finds out that others have brought it back first (SQLite and in memory).
    case revivalCheck = "no-revival-check"
    /// A context whose save has ended in doubt asks what has become of it before it saves again.
    case doubtAsking = "no-doubt-asking"

    // Those of the engine for PostgreSQL.

    /// Savers lock rows in the order of their keys.
    case lockOrder = "no-lock-order"
    /// What a save relies on stays as it is until it has committed.
    case relianceLock = "no-reliance-lock"
    /// A save finds out that what it leads to is gone.
    case targetCheck = "no-target-check"
    /// The version that a save gives to a row has random bits of the save.
    case versionMarks = "no-version-marks"
    /// Keys are taken from the sequence before they are handed out.
    case keyBlocks = "no-key-blocks"
    /// Who gives numbers to transactions keeps others from it.
    case numberingLock = "no-numbering-lock"
    /// Who has a store open looks for what others have saved.
    case changeWatching = "no-change-watching"
    /// Others are woken up by a save, and need not wait until they look by themselves.
    case wakeUp = "no-wake-up"
    /// A cancel has arrived before somebody else uses its connection.
    case cancelSettling = "no-cancel-settling"
    /// An answer that takes several statements is of one moment.
    case commonSnapshot = "no-common-snapshot"
    /// A replica answers when it has what was saved here.
    case replicaWait = "no-replica-wait"
    /// The row cache goes by versions, and not by when it was told of them.
    case publicationOrder = "no-publication-order"

    private static let off = Atomic(0)

    private var bit: Int { 1 << Self.allCases.firstIndex(of: self)! }

    /// Switches it off, for as long as the process lives.
    package func switchOff() { _ = Self.off.bitwiseOr(bit, ordering: .relaxed) }

    /// Whether it is switched off.
    package var isOff: Bool { Self.off.load(ordering: .relaxed) & bit != 0 }
}
#endif
