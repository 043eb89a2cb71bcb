/// The prepared statements of one connection, by text.
///
/// If there are too many, the least recently used one is dropped.
///
/// A lent statement stays in the cache but is not lent twice: a nested use of the same text gets a separate copy, which
/// is dropped afterwards. The cache is confined like its connection.
struct StatementCache {
    private var entries: [SQL: PreparedStatement] = [:]
    private var uses: UInt64 = 0
    private let limit: Int

    /// The number of lent statements.
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

    /// Adds a statement that was just prepared, and lends it.
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

    // This is O(n), but it happens only after a preparation, which costs more.
    private mutating func evictOldest() {
        let idle = entries.values.lazy.filter { !$0.isInUse }
        guard let oldest = idle.min(by: { $0.lastUse < $1.lastUse }) else { return }
        entries[oldest.sql] = nil
    }
}
