/// How busy an engine is at one moment.
package struct EngineFigures: Sendable {
    /// How many connections read, or are kept for reading.
    package var readers = 0
    /// The most of them.
    package var readerLimit = 0
    /// How many threads wait for one.
    package var waitingReaders = 0
    /// How many threads wait for their turn to write.
    package var waitingWriters = 0
    /// How many versions contexts are pinned to.
    package var pinnedVersions = 0
    /// For how long the oldest of them has been held.
    package var oldestPin: Duration?
    /// For how long others may have saved without its being known here; `nil` if each read looks for that, or nothing tells of it.
    package var historyAge: Duration?
    /// The size of the file, in bytes.
    package var fileSize = 0
    /// The size of the write-ahead log, in bytes.
    package var logSize = 0

    /// Figures that are all zero.
    package init() {}
}

/// What of its rows a fetch that is explained asks for.
package enum ExplainedAnswer: Sendable {
    case rows
    case references
    case count
}

/// A statement, and how its database goes about it.
package struct ExplainedStatement: Sendable {
    /// The text, with placeholders for values.
    package let sql: String
    /// The plan, a line a step, indented by two spaces a level.
    package let plan: [String]
    /// The names of the indexes that the plan uses, each once.
    package let indexes: [String]
    /// The tables that are read from one end to the other.
    package let scannedTables: [String]

    package init(sql: String, plan: [String], indexes: [String], scannedTables: [String]) {
        self.sql = sql
        self.plan = plan
        self.indexes = indexes
        self.scannedTables = scannedTables
    }
}
