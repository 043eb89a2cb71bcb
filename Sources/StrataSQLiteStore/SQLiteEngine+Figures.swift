import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

// The state of the engine: whether it answers, how busy it is, and how it would answer a fetch.

extension SQLiteEngine {
    package func check(timeout: Double) throws { try check(timeout: timeout, measuring: DiskSpace.room(in:)) }

    /// Checks whether the store answers, and whether it can be written to, unless it is read-only.
    ///
    /// - Parameters:
    ///   - timeout: The most seconds to wait for a connection and for locks.
    ///   - measure: Measures the file system of a folder.
    /// - Throws: Errors of reading, and `fileWriteOutOfSpace` for a volume without free space.
    package func check(timeout: Double, measuring measure: (String) -> DiskSpace.Room?) throws {
        let file = try openFile()
        try SQLiteBoundary.run(.reading, at: file.url) {
            try file.pool.requireFilesInPlace()
            try file.pool.read(timeout: timeout) { connection in
                try file.modelGuard.requireSame(connection, isNewest: false)
                let uuid = try connection.strings("SELECT Z_UUID FROM Z_METADATA ORDER BY Z_VERSION LIMIT 1").first
                let known = [file.metadata.uuid, metadata.uuid]
                guard let uuid, known.contains(uuid) else { throw SQLiteBoundary.replaced(file.url) }
            }
        }
        guard !isReadOnly, case .file(let path) = file.pool.location else { return }
        let folder = URL(fileURLWithPath: path).resolvingSymlinksInPath().deletingLastPathComponent().path
        guard let room = measure(folder), room.isUsedUp else { return }
        throw SQLiteBoundary.cocoaError(
            describing: SQLiteError(
                code: .full,
                message: "\(room.available) bytes are free in \(folder)",
                operation: .write
            ),
            while: .saving,
            at: file.url
        )
    }

    package func checkpoint(timeout: Double) throws {
        let file = try openFile()
        guard !isReadOnly, case .file = file.pool.location else { return }
        // The log is copied as far as readers allow. The last program that closes the file truncates it; others
        // continue it.
        _ = try SQLiteBoundary.run(.saving, at: file.url) { try file.pool.checkpoint(.passive, timeout: timeout) }
    }

    package var figures: EngineFigures? {
        guard let file = try? openFile() else { return nil }
        var figures = EngineFigures()
        figures.readers = file.pool.readerCount
        figures.readerLimit = file.pool.options.maximumReaders
        figures.waitingReaders = file.pool.waitingReaders
        figures.waitingWriters = file.pool.waitingWriters
        (figures.pinnedVersions, figures.oldestPin) = held
        if case .file = file.pool.location {
            figures.fileSize = StoreFigures.size(of: file.url.path)
            figures.logSize = StoreFigures.size(of: file.url.path + "-wal")
        }
        return figures
    }

    package func explanation(of plan: FetchPlan, _ answer: ExplainedAnswer) throws -> ExplainedStatement? {
        let file = try openFile()
        guard let entity = file.mapping.entity(plan.layout) else { return nil }
        return try SQLiteBoundary.run(.reading, at: file.url) {
            let sql = try file.queries.text(of: plan, for: entity, as: answer)
            return try file.pool.read { connection in
                try file.modelGuard.requireSame(connection, isNewest: false)
                return ExplainedStatement(sql: sql, sqliteSteps: try connection.queryPlan(sql))
            }
        }
    }

    /// Adds the time that a write has waited for its turn.
    func addWait(_ lease: borrowing WriteLease) {
        let waited = lease.connection.leaseWait
        if waited > 0 { OperationTally.current?.pointee.writerWait += Int64(waited * 1e9) }
    }

    /// Adds the time of a write, and that of checkpoints since the last one.
    func stopTiming(_ start: Int64?, _ file: OpenSQLiteStore) {
        guard start != nil else { return }
        OperationTally.stopTiming(start)
        guard let tally = OperationTally.current else { return }
        tally.pointee.checkpointTime += file.pool.takeCheckpointTime()
        guard let failure = file.pool.takeCheckpointFailure() else { return }
        tally.pointee.checkpointErrorCode =
            SQLiteBoundary.cocoaError(describing: failure, while: .saving, at: file.url).code.rawValue
    }
}

extension ExplainedStatement {
    /// Reads the names of indexes and scanned tables in SQLite's plan.
    ///
    /// Its lines have the forms `SEARCH t0 USING INDEX name (column=?)` and `SCAN t0`. `SEARCH t0` alone is a scan that
    /// ends at the first row that matches.
    fileprivate init(sql: String, sqliteSteps plan: [String]) {
        var indexes: [String] = []
        var scanned: [String] = []
        for step in plan {
            let words = step.split(separator: " ").map(String.init)
            if let place = words.firstIndex(of: "INDEX"), words.indices.contains(place + 1) {
                let name = words[place + 1]
                if !indexes.contains(name) { indexes.append(name) }
            } else if words.first == "SCAN" && words.count > 1 || words.first == "SEARCH" && words.count == 2,
                !step.contains(" VIRTUAL TABLE ")
            {
                scanned.append(Self.table(of: words[1], in: sql) ?? words[1])
            }
        }
        self.init(sql: sql, plan: plan, indexes: indexes, scannedTables: scanned)
    }

    /// The table of an alias in a statement.
    private static func table(of alias: String, in sql: String) -> String? {
        let words = sql.split(whereSeparator: { " (),".contains($0) })
        for place in words.indices.dropFirst(2) where words[place] == alias && words[place - 1] == "AS" {
            return String(words[place - 2])
        }
        return nil
    }
}
