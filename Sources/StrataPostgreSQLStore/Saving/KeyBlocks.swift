import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

#if FaultPoints
import StrataLocks
#endif

/// Keys that are not given twice, though a server may lose the last of what it has acknowledged.
///
/// The server that takes its place has another timeline, and may give numbers once more that its sequence has given before. So a key has the
/// number of the sequence in its lower bits, and in the upper ones how many timelines there were before. On the first one the two are the same.
enum KeyTimeline {
    /// How many bits the numbers of sequences have.
    static let numberBits = 40

    /// The number that is added to those that a sequence gives on a timeline.
    static func first(_ timeline: Int64) -> Int64 { max(timeline - 1, 0) % (1 << 22) << numberBits }

    static func key(_ number: Int64, _ timeline: Int64) -> Int64 { first(timeline) + number }

    /// The number of the sequence that a key was made of.
    static func number(_ key: Int64) -> Int64 { key % (1 << numberBits) }
}

/// Hands out primary keys, from blocks that are drawn from the sequences of the database.
///
/// A key is never handed out twice, not even if nothing is saved under it. Any thread may ask.
final class KeyBlocks: Sendable {
    private let mapping: SQLMapping
    private let pool: ConnectionPool
    private let drawn: Mutex<Drawn>
    /// The number of the process.
    private let process: @Sendable () -> pid_t
    /// The most digits that the first key of a block had, by the number of the root entity in the model.
    private let digits = Mutex<[Int: Int]>([:])

    /// The keys that were drawn, and by which process.
    private struct Drawn {
        /// Only the process that has drawn keys may hand them out: the child of a fork inherits them as well.
        let process: pid_t
        /// The run of the server that has given them; `nil` if that is not known.
        ///
        /// A crash can set a sequence back (`synchronous_commit=off`): then the next run gives the same keys to others.
        var run: ServerRun?
        /// The rest of the blocks, by the number of the root entity in the model.
        var stocks: [Int: Stock] = [:]
    }

    /// The keys of one hierarchy that were drawn and not handed out.
    private struct Stock {
        var ranges: [Range<Int64>] = []
        /// How many blocks are drawn next time: a round trip is seldom for who inserts much, and few keys are lost by who does not.
        var nextBlocks: Int64 = 1
    }

    /// The most blocks that are drawn where fewer would do.
    private static let mostBlocks: Int64 = 32

    /// - Parameters:
    ///   - mapping: The tables and their sequences.
    ///   - pool: The connections whose plans are made anew when a table has become ten times as large.
    ///   - process: Tells the number of the process; tests have others.
    init(_ mapping: SQLMapping, _ pool: ConnectionPool, process: @escaping @Sendable () -> pid_t = { getpid() }) {
        self.mapping = mapping
        self.pool = pool
        self.process = process
        drawn = Mutex(Drawn(process: process()))
    }

    /// Works with the keys that were drawn by this process from the server as it runs now.
    private func withStocks<R>(_ run: ServerRun?, _ body: (inout [Int: Stock]) -> R) -> R {
        let process = process()
        return drawn.withLock { drawn in
            let isSameRun = drawn.run.flatMap { known in run.map { $0.isSame(as: known) } } ?? true
            if drawn.process != process || !isSameRun { drawn = Drawn(process: process) }
            drawn.run = run ?? drawn.run
            return body(&drawn.stocks)
        }
    }

    /// Keys for new rows of one hierarchy; empty if the store does not hold it.
    func reserve(_ count: Int, root: Int, _ connection: Connection) throws -> [Range<Int64>] {
        guard count > 0, let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else {
            return []
        }
        let run = connection.serverRun
        var (taken, missing) = take(count, root, run)
        while missing > 0 {
            let size = Int64(PostgreSQLSchema.keyBlock)
            let blocks = max((Int64(missing) + size - 1) / size, nextBlocks(root, run))
            #if FaultPoints
            let isDrawn = !FaultGuard.keyBlocks.isOff
            let drawn = isDrawn ? try draw(blocks, table, connection) : [1..<(1 + blocks * size)]
            #else
            let drawn = try draw(blocks, table, connection)
            #endif
            guard let last = drawn.last else { break }
            noteSize(last.lowerBound, root)
            withStocks(run) { stocks in
                for block in drawn { stocks[root, default: Stock()].ranges.join(block) }
            }
            let (more, still) = take(missing, root, run)
            for range in more { taken.join(range) }
            missing = still
        }
        return taken
    }

    /// Draws blocks.
    ///
    /// A sequence that was altered gives keys that lie in blocks of others, and so does one that was set back, as by an incomplete restore. So the
    /// server is asked in the same statement by how much the sequence counts, and whether there are rows with these keys.
    private func draw(_ blocks: Int64, _ table: SQLTable, _ connection: Connection) throws -> [Range<Int64>] {
        let key = mapping.dialect.naming.key
        let sequence = PostgreSQLSchema.sequence(table)
        let sql = """
            SELECT n.key, (pg_catalog.pg_sequence_parameters($1::text::regclass)).increment,
            (SELECT t.\(key) FROM \(table.name) AS t WHERE t.\(key) >= n.key + $3 ORDER BY t.\(key) LIMIT 1)
            FROM (SELECT pg_catalog.nextval($1::text::regclass) AS key FROM pg_catalog.generate_series(1, $2) OFFSET 0) AS n
            """
        let timeline = connection.timeline ?? 1
        let values: [PostgreSQLValue] = [
            .text(sequence.description), .int8(blocks), .int8(KeyTimeline.first(timeline)),
        ]
        // Planned each time: a plan that was made while the table was small would read all of it. Behind a pooler nothing is prepared anyway.
        let drawn =
            connection.isPooled
            ? try connection.query(sql, values)
            : try connection.answer(try connection.post(sql, values, isKept: false))
        let size = Int64(PostgreSQLSchema.keyBlock)
        return try drawn.rows.map { row in
            guard row.int64(1) == size else {
                throw failure(
                    "the sequence \(sequence.raw) increments by \(row.int64(1)), and must by \(size). Run ALTER SEQUENCE \(sequence) INCREMENT BY \(size)"
                )
            }
            let first = KeyTimeline.key(row.int64(0), timeline)
            let block = first..<(first + size)
            if let found = row.optionalInt64(2), block.contains(found) {
                throw failure(
                    "the sequence \(sequence.raw) is behind the rows of \(table.name.raw), which have the key \(found) that it gives. Set it beyond the last one with setval"
                )
            }
            return block
        }
    }

    // MARK: - Copies of other stores

    /// The highest key of a hierarchy that may have been given so far, and 0 if none was.
    ///
    /// - Returns: `nil` if the store does not hold the hierarchy, and for a role that may not look at the sequence.
    func last(root: Int, _ connection: Connection) throws -> Int64? {
        guard let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else { return nil }
        let found = try connection.query(
            """
            SELECT CASE WHEN pg_catalog.has_sequence_privilege($1::text::regclass, 'USAGE, SELECT')
            THEN COALESCE(pg_catalog.pg_sequence_last_value($1::text::regclass), 0) END
            """,
            [.text(PostgreSQLSchema.sequence(table).description)]
        )
        guard let number = found.firstInt64 else { return nil }
        guard number > 0 else { return 0 }
        return KeyTimeline.key(number, connection.timeline ?? 1) + Int64(PostgreSQLSchema.keyBlock) - 1
    }

    /// Lets the sequences go on behind keys that copies of another store's rows bring along.
    ///
    /// - Parameters:
    ///   - keys: The highest of these keys, by the number of the root entity in the model.
    ///   - rows: The copies, whose keys may be of other timelines.
    ///   - connection: Where no transaction is open.
    /// - Throws: `persistentStoreOperation` (134070) if keys of one of the hierarchies were given before.
    func take(over keys: [Int: Int64], _ rows: [Row], _ connection: Connection) throws {
        var numbers = keys.mapValues { KeyTimeline.number($0) }
        for row in rows where row.key > 0 {
            let root = row.layout.rootNumber
            numbers[root] = max(numbers[root] ?? 0, KeyTimeline.number(row.key))
        }
        let size = Int64(PostgreSQLSchema.keyBlock)
        for (root, number) in numbers where number > 0 {
            guard let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else {
                continue
            }
            if let given = try last(root: root, connection), given > 0 {
                throw StoreChanges.givenKeys(of: entity.layout.name, at: pool.target.place)
            }
            // Others may draw at the same time, so the sequence is never set.
            try connection.query(
                """
                SELECT pg_catalog.count(pg_catalog.nextval($1::text::regclass))
                FROM pg_catalog.generate_series(1, $2::bigint)
                """,
                [.text(PostgreSQLSchema.sequence(table).description), .int8(number / size + 1)]
            )
        }
    }

    private func failure(_ reason: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(pool.target.place) has no keys for new objects: \(reason)."
            ]
        ).marked(.environment)
    }

    /// Has plans made anew if keys tell that a table has grown past the next power of ten.
    ///
    /// The server keeps the plans of prepared statements. One that it has made for an empty table reads the table from end to end,
    /// and would do so for each of a million rows. Keys count the rows of all machines.
    private func noteSize(_ key: Int64, _ root: Int) {
        let count = String(KeyTimeline.number(key)).count
        let hasGrown = digits.withLock { digits in
            let known = digits[root] ?? count
            // Who has drawn an earlier block may come later.
            digits[root] = max(known, count)
            return known < count
        }
        if hasGrown { pool.outdatePlans() }
    }

    /// How many blocks are drawn at least, twice as many as the last time.
    private func nextBlocks(_ root: Int, _ run: ServerRun?) -> Int64 {
        withStocks(run) { stocks in
            let count = stocks[root]?.nextBlocks ?? 1
            stocks[root, default: Stock()].nextBlocks = min(count * 2, Self.mostBlocks)
            return count
        }
    }

    /// Lets go of the keys that are left: another server may give them out again, or somebody has used one of them.
    func forget() { withStocks(nil) { $0 = [:] } }

    /// As many of the keys that are left as are wanted, and how many are missing.
    private func take(_ count: Int, _ root: Int, _ run: ServerRun?) -> ([Range<Int64>], missing: Int) {
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
    /// Adds keys, to the last ones if they follow these.
    fileprivate mutating func join(_ range: Range<Int64>) {
        if let last, last.upperBound == range.lowerBound {
            self[count - 1] = last.lowerBound..<range.upperBound
        } else {
            append(range)
        }
    }
}
