import Foundation
import StrataKeys
import Synchronization

/// The versions of a store that somebody holds on to: contexts that are pinned, and loops over rows.
///
/// Each keeps a process of the server, and old rows from being cleared away, so their number is limited. Any thread may use it.
final class HeldVersions: Sendable {
    private struct State {
        var held: [WeakVersion] = []
        /// How many are about to be held.
        var coming = 0
    }

    private struct WeakVersion {
        weak var version: PostgreSQLVersion?
        let since: ContinuousClock.Instant
    }

    private let most: Int
    private let state = Mutex(State())

    init(most: Int) { self.most = most }

    /// Holds on to the newest version.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - mayBeReplica: Whether a replica's version will do.
    ///   - limit: After how many seconds it is given up; `nil` for never.
    /// - Returns: The version.
    /// - Throws: `persistentStoreOperation` (134070) if there are too many; errors of the server.
    func hold(_ database: OpenDatabase, mayBeReplica: Bool, ageLimit limit: Double?) throws -> PostgreSQLVersion {
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
            try PostgreSQLBoundary.run(.reading, database.place) {
                try PostgreSQLVersion.newest(database, mayBeReplica: mayBeReplica, ageLimit: limit)
            }
        }
        // At once, so that nobody counts it twice.
        state.withLock { state in
            state.coming -= 1
            if case .success(let version) = version { state.held.append(WeakVersion(version: version, since: .now)) }
        }
        return try version.get()
    }

    /// How many there are, and for how long the oldest has been held.
    var figures: (count: Int, oldest: Duration?) {
        let held = state.withLock { $0.held.filter { $0.version != nil }.map(\.since) }
        return (held.count, held.min().map { .now - $0 })
    }

    /// Lets go of all of them, which cannot be read any more.
    func endAll() {
        for version in state.withLock({ $0.held.compactMap(\.version) }) { version.end() }
    }
}
