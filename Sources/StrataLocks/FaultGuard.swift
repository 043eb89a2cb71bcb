import Synchronization

/// Guards of the library that tests can switch off, to see that a missing guard is noticed.
///
/// Only builds with the package trait `FaultPoints` have the switch (see ``FaultPoint``). In other builds a guard is an
/// empty value, and ``isOff`` is inlined as the constant `false`.
///
/// ```swift
/// if FaultGuard.versionCheck.isOff { return }
/// ```
public struct FaultGuard: Equatable, Sendable {
    /// A save that finds another version of a row than it has read is refused.
    @inlinable public static var versionCheck: Self { named("no-version-check") }
    /// The row cache forgets the rows that a batch has changed.
    @inlinable public static var batchInvalidation: Self { named("no-invalidation") }
    /// Contexts that follow are notified of saves.
    @inlinable public static var mergeDelivery: Self { named("no-merge") }
    /// A migration is one transaction.
    @inlinable public static var migrationTransaction: Self { named("no-migration-transaction") }
    /// A migration checks whether another process has already migrated the store.
    @inlinable public static var migrationCheck: Self { named("no-migration-check") }
    /// A save whose commit was not answered asks for the outcome.
    @inlinable public static var doubtResolution: Self { named("no-doubt-resolution") }
    /// A context does not save anything that may have been computed from values that could not be read.
    @inlinable public static var failedReadGuard: Self { named("no-failed-read-guard") }
    /// A file that was moved or replaced while it is open is not written to.
    @inlinable public static var filePlaceCheck: Self { named("no-file-place-check") }
    /// An inferred migration drops values only if that is allowed.
    @inlinable public static var lossCheck: Self { named("no-loss-check") }
    /// A save that brings a row back notices that others have brought it back first (SQLite and in memory).
    @inlinable public static var revivalCheck: Self { named("no-revival-check") }
    /// A context whose save has ended in doubt asks for the outcome before it saves again.
    @inlinable public static var doubtAsking: Self { named("no-doubt-asking") }

    /// A value that is no number is not valid, since no store keeps it.
    @inlinable public static var numberCheck: Self { named("no-number-check") }
    /// Rows that are read after a file was set back have other versions than those that were read before (SQLite).
    @inlinable public static var restorationMark: Self { named("no-restoration-mark") }
    /// A file into which the contents of another store have come is refused (SQLite).
    @inlinable public static var storeCheck: Self { named("no-store-check") }

    /// A worker ends a job only if no other worker has taken it.
    @inlinable public static var jobCheck: Self { named("no-job-check") }

    // The guards of the engine for PostgreSQL.

    /// Savers lock rows in the order of their keys.
    @inlinable public static var lockOrder: Self { named("no-lock-order") }
    /// The rows that a save relies on stay as they are until it has committed.
    @inlinable public static var relianceLock: Self { named("no-reliance-lock") }
    /// A save notices that an object to which it leads has gone.
    @inlinable public static var targetCheck: Self { named("no-target-check") }
    /// The version that a save gives to a row has random bits of the save.
    @inlinable public static var versionMarks: Self { named("no-version-marks") }
    /// A server that was started again may have lost saves, so that cached rows do not count any more.
    @inlinable public static var runCheck: Self { named("no-run-check") }
    /// Keys are taken from the sequence before they are handed out.
    @inlinable public static var keyBlocks: Self { named("no-key-blocks") }
    /// A session that gives numbers to transactions keeps other sessions from doing so.
    @inlinable public static var numberingLock: Self { named("no-numbering-lock") }
    /// An open store looks for the saves of other processes.
    @inlinable public static var changeWatching: Self { named("no-change-watching") }
    /// A save wakes others up, so that they need not wait until they look by themselves.
    @inlinable public static var wakeUp: Self { named("no-wake-up") }
    /// A cancel request has arrived before another operation uses the connection.
    @inlinable public static var cancelSettling: Self { named("no-cancel-settling") }
    /// A result that takes several statements is of one moment.
    @inlinable public static var commonSnapshot: Self { named("no-common-snapshot") }
    /// A replica answers only when it has the saves of this process.
    @inlinable public static var replicaWait: Self { named("no-replica-wait") }
    /// The row cache goes by versions, and not by the order in which it was notified of them.
    @inlinable public static var publicationOrder: Self { named("no-publication-order") }

    #if FaultPoints
    /// The name on the command line of `stress`.
    package let rawValue: String

    private static let off = Atomic(0)

    @usableFromInline
    init(name: String) { rawValue = name }

    /// All guards.
    package static var allCases: [FaultGuard] {
        [
            .versionCheck, .batchInvalidation, .mergeDelivery, .migrationTransaction, .migrationCheck,
            .doubtResolution, .failedReadGuard, .filePlaceCheck, .lossCheck, .revivalCheck, .doubtAsking,
            .numberCheck, .restorationMark, .storeCheck, .jobCheck, .lockOrder, .relianceLock, .targetCheck,
            .versionMarks, .runCheck, .keyBlocks, .numberingLock, .changeWatching, .wakeUp, .cancelSettling,
            .commonSnapshot,
            .replicaWait, .publicationOrder,
        ]
    }

    private var bit: Int {
        guard let index = Self.allCases.firstIndex(of: self) else {
            fatalError("\(rawValue) is missing in the list of guards.")
        }
        return 1 << index
    }

    /// Whether it is among those that are switched off.
    @usableFromInline var isSwitchedOff: Bool {
        let off = Self.off.load(ordering: .relaxed)
        return off != 0 && off & bit != 0
    }
    #else
    package var rawValue: String { "" }

    @inlinable
    init() {}

    package static var allCases: [FaultGuard] { [] }
    #endif

    /// The guard of that name; `nil` if there is none, as in a build without the switch.
    package init?(rawValue: String) {
        guard let found = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = found
    }

    /// A guard.
    @inlinable
    @inline(__always)
    static func named(_ name: @autoclosure () -> String) -> FaultGuard {
        #if FaultPoints
        FaultGuard(name: name())
        #else
        FaultGuard()
        #endif
    }

    /// Switches it off, for as long as the process lives.
    package func switchOff() {
        #if FaultPoints
        _ = Self.off.bitwiseOr(bit, ordering: .relaxed)
        #endif
    }

    /// Whether it is switched off.
    @inlinable
    @inline(__always)
    public var isOff: Bool {
        #if FaultPoints
        isSwitchedOff
        #else
        false
        #endif
    }
}
