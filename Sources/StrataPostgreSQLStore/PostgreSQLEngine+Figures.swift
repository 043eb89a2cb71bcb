import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows

// The state of the engine: whether its server answers, and how busy it is.

extension PostgreSQLEngine {
    package func check(timeout: Double) throws {
        let database = try openDatabase()
        try PostgreSQLBoundary.run(.reading, place) {
            do {
                try check(database, timeout)
            } catch let error as PostgreSQLError where error.kind == .connection {
                // A connection that was not used for a while was lost.
                database.pool.closeIdle()
                try check(database, timeout)
            }
        }
    }

    private func check(_ database: OpenDatabase, _ timeout: Double) throws {
        let connection = try database.pool.take(waiting: timeout, opening: timeout)
        defer { database.pool.give(back: connection) }
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
        figures.historyAge = watcher.withLock { $0 }.map { .now - $0.lastSeen }
        return figures
    }
}
