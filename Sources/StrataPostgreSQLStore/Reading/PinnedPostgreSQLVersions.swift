import Foundation
import StrataKeys
import StrataLocks

/// The versions of a store that are held: by contexts that are pinned to them, and by loops over rows.
///
/// Each version keeps a process of the server, and keeps old rows from being removed, so their number is limited. Any
/// thread may use it.
final class PinnedPostgreSQLVersions: Sendable {
    private struct State {
        var held: [WeakVersion] = []
        /// The number of versions that are about to be held.
        var coming = 0
    }

    private struct WeakVersion {
        weak var version: PinnedPostgreSQLVersion?
        let since: ContinuousClock.Instant
    }

    private let most: Int
    private let state = Locked(State())

    init(most: Int) { self.most = most }

    /// Holds the newest version.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - mayBeReplica: Whether it may be a replica's version.
    ///   - limit: The number of seconds after which the version ends; `nil` for never.
    /// - Returns: The version.
    /// - Throws: `persistentStoreOperation` (134070) if there are too many, or if the server keeps the tables elsewhere; errors of the server.
    func hold(_ database: OpenPostgreSQLStore, mayBeReplica: Bool, ageLimit limit: Double?) throws
        -> PinnedPostgreSQLVersion
    {
        guard database.form != .shardedBySchema else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "No context can be pinned to a version of the store \(database.place): its server is sharded by schema, and a transaction there sees what others commit meanwhile."
                ]
            ).marked(.environment)
        }
        let isAllowed = state.withLock { state in
            state.held.removeAll { $0.version == nil }
            guard state.held.count + state.coming < most else { return false }
            state.coming += 1
            return true
        }
        guard isAllowed else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(database.place) holds \(most) versions already, each on a connection of its own. Unpin contexts, let go of their query generation tokens, end loops over rows, or allow more with NSPostgreSQLPinnedVersionsOption."
                ]
            )
        }
        let version = Result {
            try PostgreSQLBoundary.run(.reading, at: database.place) {
                try PinnedPostgreSQLVersion.newest(database, mayBeReplica: mayBeReplica, ageLimit: limit)
            }
        }
        // Both numbers change at once, so that a version is not counted twice.
        state.withLock { state in
            state.coming -= 1
            if case .success(let version) = version { state.held.append(WeakVersion(version: version, since: .now)) }
        }
        return try version.get()
    }

    /// The number of versions, and how long the oldest has been held.
    var figures: (count: Int, oldest: Duration?) {
        let held = state.withLock { $0.held.filter { $0.version != nil }.map(\.since) }
        return (held.count, held.min().map { .now - $0 })
    }

    /// Ends all versions, which cannot be read any more.
    func endAll() {
        for version in state.withLock({ $0.held.compactMap(\.version) }) { version.end() }
    }
}
