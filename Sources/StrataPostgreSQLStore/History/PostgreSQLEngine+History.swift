import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows

extension PostgreSQLEngine: HistoryStore {
    package var hasHistory: Bool { (try? openDatabase().recordsHistory) ?? false }

    package var recordsHistory: Bool { hasHistory && !isReadOnly }

    package func lastHistoryNumber() throws -> Int64 { try readHistory { try $0.lastNumber() } }

    package func lastHistoryPlace() throws -> HistoryPlace { try readHistory { try $0.lastPlace() } }

    package var historySetBacks: UInt64 { setBacks.load(ordering: .acquiring) }

    package func lastGivenHistoryNumber() throws -> Int64? {
        // Transactions without a number will get the next ones.
        try unnumbered(
            "SELECT last + (SELECT pg_catalog.count(*) FROM strata_transaction WHERE number IS NULL) FROM strata_history"
        )
    }

    /// The last number, even if there are transactions without a number.
    func lastNumberSoFar() throws -> Int64 { try unnumbered("SELECT last FROM strata_history") ?? 0 }

    /// Reads the history without giving numbers.
    private func unnumbered(_ sql: String) throws -> Int64? {
        let database = try openDatabase()
        return try PostgreSQLBoundary.run(.reading, at: database.place) {
            try database.pool.reading { connection in
                try database.requireSame(connection)
                return try connection.query(sql).firstInt64
            }
        }
    }

    package func beginHistory(after number: Int64) throws {
        let database = try openDatabase()
        try PostgreSQLBoundary.run(.saving, at: database.place) {
            try database.pool.writing { connection in
                try database.requireSame(connection)
                try connection.command("BEGIN ISOLATION LEVEL READ COMMITTED")
                // One number stays without a transaction, so that the last place of the other history is not directly
                // before this one.
                try connection.query(
                    """
                    INSERT INTO strata_history AS h (last, purged) VALUES ($1, 0)
                    ON CONFLICT (singleton) DO UPDATE SET last = GREATEST(h.last, excluded.last)
                    """,
                    [.int8(number + 2)]
                )
                try connection.query(
                    """
                    INSERT INTO strata_transaction (number, id, time, author, process)
                    VALUES ($1, $2, \(HistoryQueries.now), $3, $4)
                    """,
                    [
                        .int8(number + 2), .uuid(UUID()), .text(HistoryAuthor.migrationByObjects),
                        .text(ProcessInfo.processInfo.processName),
                    ]
                )
                try connection.commit()
            }
        }
        database.recordHistory()
    }

    package func hasWritten(_ number: Int64) -> Bool { ownTransactions.withLock { $0.contains(number) } }

    package func forgetOwnTransactions() { ownTransactions.withLock { $0 = OwnTransactions() } }

    package func history(_ query: HistoryQuery) throws -> [HistoryRecord] {
        let records = try readHistory { try $0.records(query) }
        ownTransactions.withLock { own in
            for transaction in records.map(\.transaction) {
                if let identifier = transaction.identifier { own.add(transaction.number, of: identifier) }
            }
        }
        return records
    }

    package func historyCount(_ query: HistoryQuery) throws -> Int { try readHistory { try $0.count(query) } }

    package func pickOutOfHistory(_ places: [HistoryPlace]) throws -> Int {
        // A server that has lost these transactions may have given their numbers to others.
        let identifiers = places.compactMap(\.transaction)
        return try writeHistory { connection, queries -> Int in
            let beginning = try queries.beginning().number
            var count = 0
            for start in stride(from: 0, to: identifiers.count, by: WorkSize.pickedTransactions) {
                var picked = PostgreSQLArray(.uuid)
                for identifier in identifiers[start...].prefix(WorkSize.pickedTransactions) {
                    picked.append(.uuid(identifier))
                }
                try connection.query(
                    "DELETE FROM strata_change WHERE seq IN (SELECT seq FROM strata_transaction WHERE id = ANY($1))",
                    [.array(picked)]
                )
                count += try connection.query("DELETE FROM strata_transaction WHERE id = ANY($1)", [.array(picked)])
                    .changeCount
            }
            if count > 0 {
                try connection.query("UPDATE strata_history SET purged = $1 WHERE purged = 0", [.int8(beginning)])
            }
            return count
        }
    }

    package func deleteHistory(_ bound: HistoryBound) throws -> Int {
        let end = try writeHistory { connection, _ in try Self.end(of: bound, connection) }
        return try purge { _ in end }
    }

    package func historyConsumers() throws -> [HistoryConsumerRecord] {
        try readHistory { history in
            try history.connection.query("SELECT name, number, seen FROM strata_consumer ORDER BY name").rows.map {
                HistoryConsumerRecord(name: $0.string(0), number: $0.int64(1), lastSeen: $0.double(2))
            }
        }
    }

    package func setHistoryConsumer(_ name: String, to place: HistoryPlace) throws {
        try writeHistory { connection, queries in
            // A known consumer may be late, which changes nothing.
            let known = try connection.query("SELECT 1 FROM strata_consumer WHERE name = $1", [.text(name)])
            if known.rowCount > 0 {
                try queries.requireReached(place.number, place.transaction)
            } else {
                try queries.requireCovered(place.number, place.transaction)
            }
            // The number never decreases, because several readers may share the name, and one of them may be slower.
            try connection.query(
                """
                INSERT INTO strata_consumer AS c (name, number, seen) VALUES ($1, $2, \(HistoryQueries.now)) ON CONFLICT (name)
                DO UPDATE SET number = GREATEST(c.number, excluded.number), seen = GREATEST(c.seen, excluded.seen)
                """,
                [.text(name), .int8(place.number)]
            )
        }
    }

    package func removeHistoryConsumer(_ name: String) throws {
        try writeHistory { connection, _ in
            _ = try connection.query("DELETE FROM strata_consumer WHERE name = $1", [.text(name)])
        }
    }

    package func purgeHistory(consumersLiveSince time: Double) throws -> Int {
        try writeHistory { connection, _ in
            _ = try connection.query("DELETE FROM strata_consumer WHERE seen < $1", [.float8(time)])
        }
        // A consumer may be added between two pieces.
        return try purge { connection in
            try connection.query("SELECT pg_catalog.min(number) FROM strata_consumer").firstInt64 ?? 0
        }
    }

    /// Removes the transactions before a number, and their changes, the oldest first.
    ///
    /// The number is asked for each piece.
    ///
    /// The numbers of removed transactions are not given again.
    private func purge(before end: (Connection) throws -> Int64) throws -> Int {
        var count = 0
        while true {
            let piece = try writeHistory { connection, _ -> Int in
                let oldest = try connection.query("SELECT pg_catalog.min(number) FROM strata_transaction").firstInt64
                let end = try end(connection)
                guard let oldest, oldest < end else { return 0 }
                let bound = PostgreSQLValue.int8(min(end, oldest + WorkSize.purgedTransactions))
                try connection.query(
                    "DELETE FROM strata_change WHERE seq IN (SELECT seq FROM strata_transaction WHERE number < $1)",
                    [bound]
                )
                let gone = try connection.query("DELETE FROM strata_transaction WHERE number < $1", [bound])
                try connection.query(
                    "UPDATE strata_history SET purged = GREATEST(purged, $1) WHERE purged > 0",
                    [bound]
                )
                return gone.changeCount
            }
            guard piece > 0 else { return count }
            count += piece
        }
    }

    /// The number of the first transaction that a purge keeps.
    private static func end(of bound: HistoryBound, _ connection: Connection) throws -> Int64 {
        let (column, value): (String, PostgreSQLValue) =
            switch bound {
            case .number(let number): ("number", .int8(number))
            case .time(let seconds): ("time", .float8(seconds))
            }
        // All transactions after the first kept one stay too. So a clock that was set back leaves no gap in the
        // numbers.
        let first = try connection.query(
            "SELECT pg_catalog.min(number) FROM strata_transaction WHERE NOT \(column) < $1",
            [value]
        )
        if let number = first.firstInt64 { return number }
        // All current transactions are removed.
        return try connection.query("SELECT last + 1 FROM strata_history").firstInt64 ?? 0
    }

    // MARK: - Transactions

    private func readHistory<R>(_ body: (HistoryQueries) throws -> R) throws -> R {
        let database = try historyDatabase()
        return try OperationTally.timingStore {
            try PostgreSQLBoundary.run(.reading, at: database.place) {
                try database.pool.reading { connection in
                    try database.requireSame(connection)
                    try HistoryQueries.number(connection)
                    // A process that knows a transaction must find it on replicas too.
                    defer { database.countCommit() }
                    return try connection.inSnapshot {
                        try body(HistoryQueries(database: database, connection: connection))
                    }
                }
            }
        }
    }

    /// Changes the history's tables in a separate transaction.
    ///
    /// - Throws: `persistentStoreSave` (134030) for a store that may not be written.
    private func writeHistory<R>(_ body: (Connection, HistoryQueries) throws -> R) throws -> R {
        let database = try historyDatabase()
        guard !isReadOnly else { throw readOnlyError }
        return try PostgreSQLBoundary.run(.saving, at: database.place) {
            try database.pool.writing { connection in
                try database.requireSame(connection)
                try HistoryQueries.number(connection)
                try HistoryQueries.begin(connection)
                // The view of `body` begins after the lock was taken.
                let result = try body(connection, HistoryQueries(database: database, connection: connection))
                try connection.commit()
                return result
            }
        }
    }

    private func historyDatabase() throws -> OpenPostgreSQLStore {
        let database = try openDatabase()
        if database.recordsHistory { return database }
        throw CocoaError.described(
            .persistentStoreUnsupportedRequestType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(database.place) has no history: open it with NSPersistentHistoryTrackingKey."
            ]
        )
    }
}

/// The transactions of the history that a store object has written.
///
/// If there are very many, then only the newest are kept. Older ones count as those of others, and rows that have not
/// changed are then examined in vain.
struct OwnTransactions {
    private static let most = 1 << 16
    private var identifiers: Set<UUID> = []
    private var order: [UUID] = []
    /// The numbers of those that were read.
    private var numbers: Set<Int64> = []
    private var newest: Int64 = 0

    /// Adds a transaction that is about to be committed.
    mutating func add(_ identifier: UUID) {
        identifiers.insert(identifier)
        order.append(identifier)
        guard order.count > Self.most else { return }
        for old in order.prefix(Self.most / 2) { identifiers.remove(old) }
        order.removeFirst(Self.most / 2)
    }

    /// Treats a transaction as one of another process.
    ///
    /// It is unknown whether it was committed, so readers of the history have to be notified of it.
    mutating func forget(_ identifier: UUID) { identifiers.remove(identifier) }

    /// Adds the number that a transaction has got, whether it is one of this store object or not.
    mutating func add(_ number: Int64, of identifier: UUID) {
        guard identifiers.contains(identifier) else {
            // If a failover has lost a transaction, then its number is given again.
            numbers.remove(number)
            return
        }
        numbers.insert(number)
        newest = max(newest, number)
        guard numbers.count > Self.most else { return }
        // Many are removed at once, so that this happens seldom.
        let oldest = newest - Int64(Self.most / 2)
        numbers = numbers.filter { $0 > oldest }
    }

    func contains(_ identifier: UUID) -> Bool { identifiers.contains(identifier) }
    func contains(_ number: Int64) -> Bool { numbers.contains(number) }
}
