import Foundation
import StrataRows

/// How much of a server's memory a coordinator may take.
///
/// The number of connections is an option of each store, `NSPersistentStoreConnectionPoolMaxSizeKey`, and how long a call waits is
/// `NSPersistentStoreTimeoutOption`.
///
/// An addition to Apple's API.
///
/// See <doc:Operating>.
///
/// ```swift
/// coordinator.limits.contexts = 500
/// coordinator.limits.rowCacheBytes = 64 << 20
/// ```
public struct CoreDataLimits: Sendable, Equatable {
    /// The most contexts on the coordinator at a time, children not counted.
    ///
    /// Default 10,000. Requests of a context that was one too many when it was put on the coordinator throw
    /// `persistentStoreOperation` (134070), which `CoreDataFailure` calls `environment`: something keeps contexts, or the server should
    /// answer fewer requests at a time.
    public var contexts = 10_000
    /// The most bytes that each store's row cache may take with rows that no context holds.
    ///
    /// Default 32 MiB. Beyond it the rows go that were read first. Rows that contexts hold are shared by all of them and cost nothing more here.
    public var rowCacheBytes = RowCache.defaultLimit

    /// The defaults.
    public init() {}
}

extension NSPersistentStoreCoordinator {
    /// How much memory the coordinator may take.
    ///
    /// May be set and read on any thread, and counts from then on; a smaller cache is swept at once.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// coordinator.limits.rowCacheBytes = 64 << 20
    /// ```
    public var limits: CoreDataLimits {
        get {
            var limits = CoreDataLimits()
            limits.contexts = gate.contextLimit
            limits.rowCacheBytes = rowCacheLimit
            return limits
        }
        set {
            gate.contextLimit = newValue.contexts
            setRowCacheLimit(newValue.rowCacheBytes)
        }
    }

    /// The error for requests of a context that is one too many.
    func tooManyContexts(_ context: NSManagedObjectContext) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    """
                \(context.describedName) may not be used: the coordinator had more contexts than its limits.contexts of \
                \(gate.contextLimit) when it was made. Let go of contexts, or raise the limit.
                """
            ]
        ).marked(.environment)
    }
}
