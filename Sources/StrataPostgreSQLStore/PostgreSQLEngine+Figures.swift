import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows

// The state of the engine: whether its server answers, and how busy it is.

extension PostgreSQLEngine {
    package func check(timeout: Double) throws {
        let database = try openDatabase()
        try PostgreSQLBoundary.run(.reading, at: place) {
            // Some servers end transactions that only read in favour of others.
            try database.pool.repeatingConflicts {
                // A connection that was not used for a while may have been lost.
                try database.pool.withConnection(within: timeout, repeatedIf: { $0.kind == .connection }) {
                    try check($0, to: database, timeout: timeout)
                }
            }
        }
    }

    private func check(_ connection: Connection, to database: OpenPostgreSQLStore, timeout: Double) throws {
        connection.patience = timeout
        try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
        try database.requireSame(try StoreMetadata.read(connection, place))
        try connection.commit()
    }

    package var figures: EngineFigures? {
        guard let database = try? openDatabase() else { return nil }
        var figures = EngineFigures()
        figures.readers = database.pool.usedCount + database.pool.idleCount
        figures.readerLimit = database.pool.size
        figures.waitingReaders = database.pool.waiterCount
        (figures.pinnedVersions, figures.oldestPin) = database.versions.figures
        figures.server =
            switch database.form {
            case .oneNode: .oneNode
            case .shardedBySchema: .shardedBySchema
            case .portable: .portable
            }
        figures.historyAge = watcher.withLock { $0 }.map { .now - $0.lastSeen }
        return figures
    }
}
