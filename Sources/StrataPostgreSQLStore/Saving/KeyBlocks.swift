import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Hands out primary keys, from blocks that are drawn from the sequences of the database.
///
/// A key is never handed out twice, not even if nothing is saved under it. Any thread may ask.
final class KeyBlocks: Sendable {
    private let mapping: SQLMapping
    private let pool: ConnectionPool
    /// What is left of the blocks that were drawn, by the number of the root entity in the model.
    private let stocks = Mutex<[Int: Stock]>([:])
    /// The most digits that the first key of a block had, by the number of the root entity in the model.
    private let digits = Mutex<[Int: Int]>([:])

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
    init(_ mapping: SQLMapping, _ pool: ConnectionPool) {
        self.mapping = mapping
        self.pool = pool
    }

    /// Keys for new rows of one hierarchy; empty if the store does not hold it.
    func reserve(_ count: Int, root: Int, _ connection: Connection) throws -> [Range<Int64>] {
        guard count > 0, let entity = mapping.entity(modelNumber: root), let table = mapping.table(of: entity) else {
            return []
        }
        var (taken, missing) = take(count, root)
        while missing > 0 {
            let size = Int64(PostgreSQLSchema.keyBlock)
            let blocks = max((Int64(missing) + size - 1) / size, nextBlocks(root))
            let result = try connection.query(
                "SELECT pg_catalog.nextval($1::text::regclass) FROM pg_catalog.generate_series(1, $2)",
                [.text(PostgreSQLSchema.sequence(table).description), .int8(blocks)]
            )
            let drawn = result.rows.map { $0.int64(0)..<($0.int64(0) + size) }
            guard let last = drawn.last else { break }
            noteSize(last.lowerBound, root)
            stocks.withLock { stocks in
                for block in drawn { stocks[root, default: Stock()].ranges.join(block) }
            }
            let (more, still) = take(missing, root)
            for range in more { taken.join(range) }
            missing = still
        }
        return taken
    }

    /// Has plans made anew if keys tell that a table has grown past the next power of ten.
    ///
    /// The server keeps the plans of prepared statements. One that it has made for an empty table reads the table from end to end,
    /// and would do so for each of a million rows. Keys count the rows of all machines.
    private func noteSize(_ key: Int64, _ root: Int) {
        let count = String(key).count
        let hasGrown = digits.withLock { digits in
            let known = digits[root] ?? count
            // Who has drawn an earlier block may come later.
            digits[root] = max(known, count)
            return known < count
        }
        if hasGrown { pool.outdatePlans() }
    }

    /// How many blocks are drawn at least, twice as many as the last time.
    private func nextBlocks(_ root: Int) -> Int64 {
        stocks.withLock { stocks in
            let count = stocks[root]?.nextBlocks ?? 1
            stocks[root, default: Stock()].nextBlocks = min(count * 2, Self.mostBlocks)
            return count
        }
    }

    /// Lets go of the keys that are left: another server may give them out again.
    func forget() { stocks.withLock { $0 = [:] } }

    /// As many of the keys that are left as are wanted, and how many are missing.
    private func take(_ count: Int, _ root: Int) -> ([Range<Int64>], missing: Int) {
        stocks.withLock { stocks in
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
