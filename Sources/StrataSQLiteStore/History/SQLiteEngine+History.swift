import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

extension SQLiteEngine: HistoryStore {
    package var hasHistory: Bool { (try? openFile().history) != nil }

    package var recordsHistory: Bool { (try? openFile().history?.isRecording) ?? false }

    package func lastHistoryNumber() throws -> Int64 { try readHistory { try $0.lastNumber() } }

    package func lastGivenHistoryNumber() throws -> Int64? {
        let file = try openFile()
        return try SQLiteBoundary.run(.reading, at: file.url) {
            try file.pool.read(isSnapshot: true) { connection in
                guard try !HistorySchema.isPresent(in: SQLCatalog(connection)) else {
                    return try HistoryCounters.last(.transaction, connection)
                }
                return try connection.firstInt64(
                    SQL("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(HistorySchema.Counter.transaction.rawValue)")
                )
            }
        }
    }

    package func beginHistory(after number: Int64) throws {
        let file = try openFile()
        try SQLiteBoundary.run(.saving, at: file.url) {
            try file.pool.write { connection in
                // The number in between stays without a transaction, so that the last place of the other history is not
                // directly before this one.
                try HistoryCounters.advance(.transaction, to: number + 2, connection)
                // Without the option, only the number is written: with tables, the file would be read-only for programs
                // that do not record.
                guard try HistorySchema.isPresent(in: SQLCatalog(connection)) else { return }
                try HistoryCounters.recordMigration(connection)
            }
        }
    }

    /// Checks the file first, so that a restoration counts before the restored history is read.
    package var historySetBacks: UInt64 {
        guard let file = try? openFile() else { return 0 }
        _ = try? lastHistoryNumber()
        return UInt64(file.modelGuard.restorationCount)
    }

    package func history(_ query: HistoryQuery) throws -> [HistoryRecord] { try readHistory { try $0.records(query) } }

    package func historyCount(_ query: HistoryQuery) throws -> Int { try readHistory { try $0.count(query) } }

    package func deleteHistory(_ bound: HistoryBound) throws -> Int {
        try writeHistory { try HistoryPurge(connection: $0).purge(before: bound) }
    }

    package func pickOutOfHistory(_ places: [HistoryPlace]) throws -> Int {
        try writeHistory { try HistoryPurge(connection: $0).pickOut(places.map(\.number)) }
    }

    package func historyConsumers() throws -> [HistoryConsumerRecord] {
        try readHistory { try HistoryConsumers(connection: $0.connection).all() }
    }

    package func setHistoryConsumer(_ name: String, to place: HistoryPlace) throws {
        let number = place.number
        let file = try openFile()
        let history = try history(of: file)
        try writeHistory { connection in
            let consumers = HistoryConsumers(connection: connection)
            let queries = HistoryQueries(file: file, history: history, connection: connection)
            // A known consumer may be late. That changes nothing.
            if try consumers.isKnown(name) {
                try queries.requireReached(number)
            } else {
                try queries.requireCovered(number)
            }
            try consumers.set(name, to: number)
        }
    }

    package func removeHistoryConsumer(_ name: String) throws {
        try writeHistory { try HistoryConsumers(connection: $0).remove(name) }
    }

    package func purgeHistory(consumersLiveSince time: Double) throws -> Int {
        try writeHistory { try HistoryConsumers(connection: $0).purge(liveSince: time) }
    }

    private func readHistory<R>(_ body: (HistoryQueries) throws -> R) throws -> R {
        let file = try openFile()
        let history = try history(of: file)
        return try OperationTally.timingStore {
            try SQLiteBoundary.run(.reading, at: file.url) {
                try file.pool.read(isSnapshot: true) { connection in
                    try file.modelGuard.requireSame(connection, isNewest: false)
                    return try body(HistoryQueries(file: file, history: history, connection: connection))
                }
            }
        }
    }

    /// Changes the history's tables in a separate transaction.
    ///
    /// - Throws: `persistentStoreSave` (134030) for a store that may not be written.
    func writeHistory<R>(_ body: (Connection) throws -> R) throws -> R {
        let file = try openFile()
        _ = try history(of: file)
        guard !isReadOnly else {
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [NSLocalizedDescriptionKey: "The store \(file.url.path) is read-only."]
            )
        }
        return try SQLiteBoundary.run(.saving, at: file.url, for: SQLiteBoundary.waiter) {
            try file.pool.write { connection in
                try file.modelGuard.requireSame(connection)
                return try body(connection)
            }
        }
    }

    private func history(of file: OpenSQLiteStore) throws -> HistoryMapping {
        if let history = file.history { return history }
        throw CocoaError.described(
            .persistentStoreUnsupportedRequestType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(file.url.path) has no history: open it with NSPersistentHistoryTrackingKey."
            ]
        )
    }
}
