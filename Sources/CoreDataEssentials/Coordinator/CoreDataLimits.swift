import Foundation
import StrataRows

/// The limits of the memory that a coordinator uses on a server.
///
/// Other limits are options of each store: `NSPersistentStoreConnectionPoolMaxSizeKey` limits the number of
/// connections, and `NSPersistentStoreTimeoutOption` limits the time that a call waits.
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
    /// The maximum number of contexts on the coordinator at a time, without children.
    ///
    /// Default 10,000. If a context exceeded the limit when it was put on the coordinator, then its requests throw
    /// `persistentStoreOperation` (134070), which `CoreDataFailure` classifies as `environment`. Either the program
    /// keeps contexts too long, or the server should answer fewer requests at a time.
    public var contexts = 10_000
    /// The maximum number of bytes of rows that no context uses, for each store's row cache.
    ///
    /// Default 32 MiB. Beyond it, the rows that were read first are removed first. Rows that contexts use are shared by
    /// them and need no further memory here.
    public var rowCacheBytes = RowCache.defaultLimit

    /// The defaults.
    public init() {}
}

extension NSPersistentStoreCoordinator {
    /// The limits of the memory that the coordinator uses.
    ///
    /// May be set and read on any thread. A new value takes effect at once; a cache that is larger is reduced.
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

    /// The error for requests of a context that exceeded the limit.
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
