import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows

// The state of the engine: whether its server answers, and how busy it is.

extension PostgreSQLEngine {
    package func check(timeout: Double) throws {
        let database = try openDatabase()
        try PostgreSQLBoundary.run(.reading, at: place) {
            // A connection that was not used for a while may have been lost.
            try database.pool.withConnection(within: timeout, repeatedIf: { $0.kind == .connection }) { connection in
                connection.patience = timeout
                try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
                try database.requireSame(try StoreMetadata.read(connection, place))
                try connection.commit()
            }
        }
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
