/// The prepared statements of one connection, by text; the least recently used goes when there are too many.
///
/// A statement that is lent out stays in the cache but is not lent twice: a nested use of the same text gets a copy of
/// its own, which is dropped afterwards. Confined like its connection.
struct StatementCache {
    private var entries: [SQL: PreparedStatement] = [:]
    private var uses: UInt64 = 0
    private let limit: Int

    /// How many statements are lent out.
    private(set) var lent = 0

    init(limit: Int) {
        self.limit = max(limit, 1)
    }

    var count: Int { entries.count }

    /// The idle statement with this text, now lent out; `nil` if it has to be prepared.
    mutating func lend(_ sql: SQL) -> PreparedStatement? {
        guard let entry = entries[sql], !entry.isInUse else { return nil }
        uses &+= 1
        entry.lastUse = uses
        entry.isInUse = true
        lent += 1
        return entry
    }

    /// Takes in a statement that was just prepared, and lends it out.
    mutating func lendNew(_ entry: PreparedStatement) {
        uses &+= 1
        entry.lastUse = uses
        entry.isInUse = true
        lent += 1
        guard entries[entry.sql] == nil else { return }
        if entries.count >= limit { evictOldest() }
        entry.isCached = true
        entries[entry.sql] = entry
    }

    /// Takes back a statement that has been reset.
    mutating func takeBack(_ entry: PreparedStatement) {
        entry.isInUse = false
        lent -= 1
    }

    mutating func removeAll() {
        entries.removeAll()
    }

    // O(n), but only after a preparation, which costs more.
    private mutating func evictOldest() {
        let idle = entries.values.lazy.filter { !$0.isInUse }
        guard let oldest = idle.min(by: { $0.lastUse < $1.lastUse }) else { return }
        entries[oldest.sql] = nil
    }
}
