import Foundation

// The memory that the cache keeps beyond the rows that contexts hold anyway.
//
// Sizes are estimates. If many rows come together, every 16th is measured. A row that is removed counts with the mean
// size. A sweep of the cache measures all rows.

extension RowCache {
    /// The limit of a cache for which no other limit was set, in bytes.
    package static let defaultLimit = 32 << 20

    /// The most bytes for rows that only the cache holds.
    ///
    /// Rows that contexts hold may take more. If the limit is 0, a row goes with the next sweep after the last context
    /// has released it.
    package var limit: Int {
        get { state.withLock { $0.limit } }
        set {
            state.withLock { state in
                state.limit = max(newValue, 0)
                state.sweepAt = 0
                state.sweepIfGrown()
            }
        }
    }

    /// The size of the cache, and the numbers of its hits and misses.
    package var use: (rows: Int, bytes: Int, hits: Int, misses: Int) {
        state.withLock { ($0.count, $0.bytes, $0.hits, $0.misses) }
    }

    /// The mean number of bytes that each of some rows takes.
    static func meanSize(of rows: [Row]) -> Int {
        let step = rows.count < 16 ? 1 : 16
        var (bytes, count) = (0, 0)
        for index in stride(from: 0, to: rows.count, by: step) {
            bytes += rows[index].unsafe.size
            count += 1
        }
        return bytes / max(count, 1)
    }
}

extension RowCache.State {
    /// Notes that rows were removed.
    ///
    /// Only their mean size is known.
    mutating func noteRemoval(of removed: Int = 1) {
        bytes -= count > 0 ? bytes / count * removed : 0
        count -= removed
        if count == 0 { bytes = 0 }
    }

    /// The smallest growth that causes the next sweep.
    private static var step: Int { 1 << 20 }

    /// Removes rows that only the cache holds, the oldest first, if all rows take more than the limit.
    ///
    /// - Complexity: O(1) a row in the long run: the cache has to grow by a third before the next sweep.
    mutating func sweepIfGrown() {
        guard bytes > sweepAt || sweepAt == 0 else { return }
        // A read that began before a row was entered may still bring an older version. It must find the newer one here.
        let oldestRead = readsSince.first?.stamp ?? .max
        var (held, loose) = (0, 0)
        var looseByStamp: [UInt32: Int] = [:]
        for table in tables.values {
            table.sweep { row in
                let row = UnsafeRow(row)
                let size = row.size
                loose += size
                let stamp = row.stamp
                if stamp < oldestRead { looseByStamp[stamp, default: 0] += size }
                return false
            }
            table.forEachHeldElsewhere { held += UnsafeRow($0).size }
        }
        bytes = held + loose
        if bytes > limit {
            // Rows are removed down to three quarters, so that the next row does not cause the next sweep.
            var surplus = bytes - limit / 4 * 3
            var last: UInt32?
            for (stamp, size) in looseByStamp.sorted(by: { $0.key < $1.key }) where surplus > 0 {
                last = stamp
                surplus -= size
                bytes -= size
            }
            if let last {
                hasLostRows = true
                for table in tables.values {
                    count -= table.sweep {
                        let stamp = UnsafeRow($0).stamp
                        return stamp <= last && stamp < oldestRead
                    }
                }
            }
        }
        sweepAt = max(limit, bytes + max(bytes / 3, Self.step))
    }
}

extension UnsafeRow {
    /// The bytes that the row takes, with the texts and data that it refers to.
    var size: Int {
        header.pointee.layout._withUnsafeGuaranteedRef { layout in
            // The object and its header, and then the words.
            var size = 16 + MemoryLayout<RowHeader>.size + layout.wordCount * 8
            for place in layout.countedPlaces where !isNull(place.slot) {
                // Short texts and data are kept in the words themselves.
                let length =
                    place.isString ? load(String.self, place.word).utf8.count : load(Data.self, place.word).count
                if length > 15 { size += length + 32 }
            }
            return size
        }
    }
}
