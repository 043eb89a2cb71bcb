import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Keys that are not given twice, even if a server loses its last acknowledged changes.
///
/// The server that replaces it has another timeline. It may give numbers again that the sequence has given before. So
/// the lower bits of a key are the number of the sequence, and the upper bits count the timelines before. On the first
/// timeline a consecutive key (``KeyOrder``) and the number are equal.
enum KeyTimeline {
    /// The number of bits for the numbers of sequences.
    static let numberBits = 40
    /// The number of bits above those.
    static let areaBits = 22

    /// The offset that is added to the numbers of a sequence on a timeline.
    static func first(_ timeline: Int64) -> Int64 { (max(timeline - 1, 0) % (1 << areaBits)) << numberBits }

    static func key(_ number: Int64, _ timeline: Int64) -> Int64 { first(timeline) + number }
}

/// Hands out primary keys, from blocks that are drawn from the sequences of the database.
///
/// A key is never handed out twice, even if nothing is saved with it. Any thread may ask.
final class KeyAllocation: Sendable {
    private let mapping: SQLMapping
    private let pool: ConnectionPool
    private let form: ServerForm
    private let drawn: Locked<Drawn>
    /// Returns the number of the process.
    private let process: @Sendable () -> pid_t
    /// The most digits that the first key of a block had, by the number of the root entity in the model.
    private let digits = Locked<[Int: Int]>([:])

    /// The keys that were drawn, and the process that drew them.
    private struct Drawn {
        /// Only this process may hand out the keys, because the child of a fork inherits them.
        let process: pid_t
        /// The run of the server that has given them; `nil` if it is unknown.
        ///
        /// A crash can set a sequence back (`synchronous_commit=off`). The next run then gives the same keys to others.
        var run: ServerRun?
        /// The rest of the blocks, by the number of the root entity in the model.
        var stocks: [Int: Stock] = [:]
    }

    /// The keys of one hierarchy that were drawn and not handed out.
    private struct Stock {
        var ranges: [Range<Int64>] = []
        /// The number of blocks to draw next time.
        ///
        /// Programs that insert much need few round trips, and other programs waste few keys.
        var nextBlocks: Int64 = 1
    }

    /// A block of keys, and how many keys the sequence has given for its area so far.
    private typealias Block = (count: Int64, keys: Range<Int64>)

    /// The most blocks that are drawn when fewer would suffice.
    private static let mostBlocks: Int64 = 32

    /// Makes an empty stock of keys.
    ///
    /// - Parameters:
    ///   - mapping: The tables and their sequences.
    ///   - pool: The connections whose plans are made anew when a table has become ten times as large.
    ///   - form: How the server keeps the tables.
    ///   - process: Returns the number of the process; tests pass other functions.
    init(
        _ mapping: SQLMapping,
        _ pool: ConnectionPool,
        _ form: ServerForm = .oneNode,
        process: @escaping @Sendable () -> pid_t = { getpid() }
    ) {
        self.mapping = mapping
        self.pool = pool
        self.form = form
        self.process = process
        drawn = Locked(Drawn(process: process()))
    }

    /// Runs `body` with the keys that this process has drawn from the current run of the server.
    private func withStocks<R>(_ run: ServerRun?, _ body: (inout [Int: Stock]) -> R) -> R {
        let process = process()
        return drawn.withLock { drawn in
            let isSameRun = drawn.run.flatMap { known in run.map { $0.isSame(as: known) } } ?? true
            if drawn.process != process || !isSameRun { drawn = Drawn(process: process) }
            drawn.run = run?.completed(by: drawn.run) ?? drawn.run
            return body(&drawn.stocks)
        }
    }

    /// Keys for new rows of one hierarchy; empty if the store does not hold it.
    func reserve(_ count: Int, root: Int, _ connection: Connection) throws -> [Range<Int64>] {
        guard count > 0, let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else {
            return []
        }
        let run = connection.serverRun
        var (taken, missing) = removeKeys(count, root: root, from: run)
        while missing > 0 {
            let size = Int64(PostgreSQLSchema.keyBlock)
            let blocks = max((Int64(missing) + size - 1) / size, nextBlocks(root, run))
            let isDrawn = !FaultGuard.keyBlocks.isOff
            let drawn: [Block] = isDrawn ? try draw(blocks, of: table, on: connection) : [(1, 1..<(1 + blocks * size))]
            guard let last = drawn.last else { break }
            outdatePlansIfGrown(to: last.count, root: root)
            withStocks(run) { stocks in
                for block in drawn { stocks[root, default: Stock()].ranges.join(block.keys) }
            }
            let (more, still) = removeKeys(missing, root: root, from: run)
            for range in more { taken.join(range) }
            missing = still
        }
        return taken
    }

    /// Draws blocks.
    ///
    /// A sequence that was altered, or set back by an incomplete restore, gives keys that lie in blocks of others. So
    /// the same statement asks for the increment of the sequence, and whether there are rows with these keys.
    private func draw(_ blocks: Int64, of table: SQLTable, on connection: Connection) throws -> [Block] {
        if form == .shardedBySchema { return try drawApart(blocks, of: table, on: connection) }
        if form == .portable {
            // Nothing that others have done since belongs to a transaction, unless one is open.
            guard connection.isIdle, !connection.hasPosted else {
                return try drawApart(blocks, of: table, on: connection)
            }
            return try pool.repeatingConflicts { try drawApart(blocks, of: table, on: connection) }
        }
        let key = mapping.dialect.naming.key
        let sequence = PostgreSQLSchema.sequence(table)
        let sql = """
            SELECT n.key, p.increment, p.maximum_value,
            (SELECT t.\(key) FROM \(table.name) AS t WHERE t.\(key) >= n.key + $3 ORDER BY t.\(key) LIMIT 1)
            FROM (SELECT pg_catalog.nextval($1::text::regclass) AS key FROM pg_catalog.generate_series(1, $2) OFFSET 0) AS n
            CROSS JOIN pg_catalog.pg_sequence_parameters($1::text::regclass) AS p
            """
        let timeline = connection.timeline ?? 1
        let values: [PostgreSQLValue] = [
            .text(sequence.description), .int8(blocks), .int8(KeyTimeline.first(timeline)),
        ]
        let rows = try Self.answer(sql, values, connection).rows.map { $0 }
        let order = rows.first.map { KeyOrder(greatest: $0.int64(2)) } ?? .consecutive
        // The statement has looked for rows with consecutive keys.
        let taken =
            order == .consecutive
            ? rows.map { $0.optionalInt64(3) }
            : try firstKeys(from: rows.map { order.block($0.int64(0), timeline).lowerBound }, table, connection)
        return try zip(rows, taken).map { row, taken in
            try block(row.int64(0), increment: row.int64(1), order, taken: taken, of: table, timeline)
        }
    }

    /// The first key from each of some keys on that a row has; `nil` if there is none.
    private func firstKeys(from keys: [Int64], _ table: SQLTable, _ connection: Connection) throws -> [Int64?] {
        let key = mapping.dialect.naming.key
        let sql = """
            SELECT (SELECT t.\(key) FROM \(table.name) AS t WHERE t.\(key) >= n.key ORDER BY t.\(key) LIMIT 1)
            FROM (SELECT unnest($1::bigint[]) AS key OFFSET 0) AS n
            """
        return try Self.answer(sql, [.array(PostgreSQLArray(keys))], connection).rows.map { $0.optionalInt64(0) }
    }

    /// The answer to a statement that is planned each time, because a plan from when the table was small would read the whole table.
    private static func answer(_ sql: String, _ values: [PostgreSQLValue], _ connection: Connection) throws
        -> QueryResult
    {
        // Behind a pooler nothing is prepared anyway.
        connection.isPooled
            ? try connection.query(sql, values)
            : try connection.answer(try connection.post(sql, values, isKept: false))
    }

    /// Draws blocks, and asks for rows with their keys in another statement: the sequence and the table may be on two nodes.
    private func drawApart(_ blocks: Int64, of table: SQLTable, on connection: Connection) throws -> [Block] {
        let key = mapping.dialect.naming.key
        let timeline = connection.timeline ?? 1
        let drawn = try connection.query(
            """
            SELECT pg_catalog.nextval($1::text::regclass), (pg_catalog.pg_sequence_parameters($1::text::regclass)).increment,
            (pg_catalog.pg_sequence_parameters($1::text::regclass)).maximum_value FROM pg_catalog.generate_series(1, $2)
            """,
            [.text(PostgreSQLSchema.sequence(table).description), .int8(blocks)]
        )
        return try drawn.rows.map { row in
            let order = KeyOrder(greatest: row.int64(2))
            let found = try connection.query(
                "SELECT t.\(key) FROM \(table.name) AS t WHERE t.\(key) >= $1 ORDER BY t.\(key) LIMIT 1",
                [.int8(order.block(row.int64(0), timeline).lowerBound)]
            )
            return try block(
                row.int64(0),
                increment: row.int64(1),
                order,
                taken: found.firstInt64,
                of: table,
                timeline
            )
        }
    }

    /// The block of a number that a sequence has given.
    ///
    /// - Parameters:
    ///   - number: The number.
    ///   - increment: The increment of the sequence.
    ///   - order: The order of its keys.
    ///   - taken: The first key from there on that a row has; `nil` if there is none.
    ///   - table: The table.
    ///   - timeline: The timeline of the server.
    /// - Returns: The block.
    /// - Throws: `persistentStoreSave` (134030) if the sequence does not count as it should, or is behind the rows.
    private func block(
        _ number: Int64,
        increment: Int64,
        _ order: KeyOrder,
        taken: Int64?,
        of table: SQLTable,
        _ timeline: Int64
    ) throws -> Block {
        let size = Int64(PostgreSQLSchema.keyBlock)
        let sequence = PostgreSQLSchema.sequence(table)
        guard increment == size else {
            throw failure(
                "the sequence \(sequence.raw) increments by \(increment), and must by \(size). Run ALTER SEQUENCE \(sequence) INCREMENT BY \(size)"
            )
        }
        let keys = order.block(number, timeline)
        if let taken, keys.contains(taken) {
            throw failure(
                "the sequence \(sequence.raw) is behind the rows of \(table.name.raw), which have the key \(taken) that it gives. Set it beyond the last one with setval"
            )
        }
        return (order.count(number), keys)
    }

    // MARK: - Copies of other stores

    /// The highest key of a hierarchy that may have been given so far, and 0 if none was.
    ///
    /// - Returns: The key; `nil` if the store does not hold the hierarchy, and for a role that may not read the
    ///   sequence.
    func last(root: Int, _ connection: Connection) throws -> Int64? {
        guard let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else { return nil }
        let found = try query(
            """
            SELECT CASE WHEN pg_catalog.has_sequence_privilege($1::text::regclass, 'USAGE, SELECT')
            THEN COALESCE(pg_catalog.pg_sequence_last_value($1::text::regclass), 0) END
            """,
            [.text(PostgreSQLSchema.sequence(table).description)],
            connection
        )
        guard let number = found.firstInt64 else { return nil }
        guard number > 0 else { return 0 }
        let order = try repeating(connection) { try KeyOrder.order(of: table, connection) }
        return order.lastKey(number, connection.timeline ?? 1)
    }

    /// Advances the sequences beyond the keys that copies of another store's rows have.
    ///
    /// - Parameters:
    ///   - keys: The highest of these keys, by the number of the root entity in the model.
    ///   - connection: A connection without an open transaction.
    /// - Throws: `persistentStoreOperation` (134070) if keys of one of the hierarchies were given before; `persistentStoreSave` (134030) if there are no
    ///   keys beyond these.
    func advance(past keys: [Int: Int64], on connection: Connection) throws {
        for (root, key) in keys where key > 0 {
            guard let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else {
                continue
            }
            if let given = try last(root: root, connection), given > 0 {
                throw StoreChanges.givenKeys(of: entity.layout.name, at: pool.target.place)
            }
            try advance(table, past: key, on: connection)
        }
    }

    /// Advances the sequence of a table that has given no keys.
    private func advance(_ table: SQLTable, past key: Int64, on connection: Connection) throws {
        let sequence = PostgreSQLSchema.sequence(table)
        let order = try repeating(connection) { try KeyOrder.order(of: table, connection) }
        let blocks = key / Int64(PostgreSQLSchema.keyBlock) + 1
        if order == .consecutive, blocks <= Int64(WorkSize.drawnBlocks) {
            // Others may draw keys at the same time, so the sequence is not set.
            _ = try query(
                """
                SELECT pg_catalog.count(pg_catalog.nextval($1::text::regclass))
                FROM pg_catalog.generate_series(1, $2::bigint)
                """,
                [.text(sequence.description), .int8(blocks)],
                connection
            )
            return
        }
        guard let number = order.number(beyond: key) else {
            throw failure("the rows that are copied have the key \(key), beyond which none is left")
        }
        // Another copy may have set it meanwhile, so it is never set back.
        _ = try query(
            "SELECT pg_catalog.setval($1::text::regclass, GREATEST($2::bigint, s.last_value)) FROM \(sequence) AS s",
            [.text(sequence.description), .int8(number)],
            connection
        )
    }

    /// Sends a statement that may be sent again.
    private func query(_ sql: String, _ values: [PostgreSQLValue], _ connection: Connection) throws -> QueryResult {
        try repeating(connection) { try connection.query(sql, values) }
    }

    /// Runs `body`, which a conflict on a portable store repeats.
    private func repeating<R>(_ connection: Connection, _ body: () throws -> R) throws -> R {
        form == .portable && connection.isIdle ? try pool.repeatingConflicts(body) : try body()
    }

    private func failure(_ reason: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(pool.target.place) has no keys for new objects: \(reason)."
            ]
        ).marked(.environment)
    }

    /// Makes plans anew if the number of drawn keys shows that a table has grown beyond the next power of ten.
    ///
    /// The server keeps the plans of prepared statements. A plan that it has made for an empty table reads the whole
    /// table, and would do so for each of a million rows. The number counts the rows of all machines.
    private func outdatePlansIfGrown(to drawn: Int64, root: Int) {
        let count = String(drawn).count
        let hasGrown = digits.withLock { digits in
            let known = digits[root] ?? count
            // A thread that has drawn an earlier block may come later.
            digits[root] = max(known, count)
            return known < count
        }
        if hasGrown { pool.outdatePlans() }
    }

    /// The least number of blocks that are drawn, twice as many as the last time.
    private func nextBlocks(_ root: Int, _ run: ServerRun?) -> Int64 {
        withStocks(run) { stocks in
            let count = stocks[root]?.nextBlocks ?? 1
            stocks[root, default: Stock()].nextBlocks = min(count * 2, Self.mostBlocks)
            return count
        }
    }

    /// Discards the remaining keys, because another server may give them again, or another process has used one of
    /// them.
    func forget() { withStocks(nil) { $0 = [:] } }

    /// Takes up to `count` of the remaining keys, and returns how many are missing.
    private func removeKeys(_ count: Int, root: Int, from run: ServerRun?) -> ([Range<Int64>], missing: Int) {
        withStocks(run) { stocks in
            var ranges = stocks[root]?.ranges ?? []
            var taken: [Range<Int64>] = []
            var missing = count
            while missing > 0, let first = ranges.first {
                let part = first.prefix(missing)
                taken.join(first.lowerBound..<(first.lowerBound + Int64(part.count)))
                missing -= part.count
                ranges[0] = (first.lowerBound + Int64(part.count))..<first.upperBound
                if ranges[0].isEmpty { ranges.removeFirst() }
            }
            stocks[root, default: Stock()].ranges = ranges
            return (taken, missing)
        }
    }
}

extension [Range<Int64>] {
    /// Adds keys; extends the last range if they follow it.
    fileprivate mutating func join(_ range: Range<Int64>) {
        if let last, last.upperBound == range.lowerBound {
            self[count - 1] = last.lowerBound..<range.upperBound
        } else {
            append(range)
        }
    }
}
