import Foundation
import StrataLocks
import StrataPostgreSQL

/// The connection on which the watchers of many stores of a server look in turn.
///
/// It is opened with the first look, and closed when no watcher exists any more. Nothing wakes its watchers for the commits of other processes, so
/// they look once a second.
final class SharedWatchConnection: Sendable {
    private let pool: ConnectionPool

    private init(_ pool: ConnectionPool) { self.pool = pool }

    deinit { pool.close() }

    private struct WeakReference: Sendable {
        weak let connection: SharedWatchConnection?
    }

    private static let shared = Locked<[String: WeakReference]>([:])

    /// How many seconds a look may wait for the other watchers and for the server.
    private static let patience = 10.0

    /// The connection of all watchers of a database.
    static func of(_ target: ConnectionTarget) -> SharedWatchConnection {
        // Poolers, users and everything else that a URL can say have to be the same.
        shared.withLock { shared in
            if let known = shared[target.url]?.connection { return known }
            shared = shared.filter { $0.value.connection != nil }
            let new = SharedWatchConnection(OpenPostgreSQLStore.pool(target, size: 1, timeout: patience))
            shared[target.url] = WeakReference(connection: new)
            return new
        }
    }

    /// Runs `body` with the connection, which sees the schema of a store.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - body: Looks at the store.
    /// - Returns: The result of `body`.
    /// - Throws: ``PostgreSQLError``, and the errors of `body`.
    func withConnection<R>(to database: OpenPostgreSQLStore, _ body: (Connection) throws -> R) throws -> R {
        if database.form == .portable { return try database.pool.withConnection(body) }
        // Behind a pooler each transaction sets the schema of the store that its connection was opened for.
        let isPooled = try pool.withConnection { $0.isPooled }
        if isPooled { return try database.pool.withConnection(body) }
        return try pool.withConnection { connection in
            let target = database.pool.target
            // The statement means no table of a store.
            connection.showsNow("")
            try OpenPostgreSQLStore.takeOver(connection, for: target, timeout: Self.patience)
            connection.showsNow(target.schema)
            return try body(connection)
        }
    }
}
