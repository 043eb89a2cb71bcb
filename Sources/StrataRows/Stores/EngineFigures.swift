/// How busy an engine is at one moment.
package struct EngineFigures: Sendable {
    /// The number of connections that read, or are kept for reading.
    package var readers = 0
    /// The highest number of such connections.
    package var readerLimit = 0
    /// The number of threads that wait for such a connection.
    package var waitingReaders = 0
    /// The number of threads that wait for their turn to write.
    package var waitingWriters = 0
    /// The number of versions that contexts are pinned to.
    package var pinnedVersions = 0
    /// The time since the oldest of them was pinned.
    package var oldestPin: Duration?
    /// The longest time for which other writers may have saved unnoticed.
    ///
    /// It is `nil` if each read checks, or if nothing can report it.
    package var historyAge: Duration?
    /// How a server keeps the tables; `nil` for an engine without a server.
    package var server: EngineServer?
    /// The size of the file, in bytes.
    package var fileSize = 0
    /// The size of the write-ahead log, in bytes.
    package var logSize = 0

    /// Figures that are all zero.
    package init() {}
}

/// How a server keeps the tables of a store.
package enum EngineServer: Sendable {
    /// The server that executes the statements has them.
    case oneNode
    /// One of several nodes has them.
    case shardedBySchema
    /// It does not matter: the store relies only on what all engines of the kind have.
    case portable
}

/// The part of its rows that an explained fetch returns.
package enum ExplainedAnswer: Sendable {
    case rows
    case references
    case count
}

/// A statement, and the plan of the database for it.
package struct ExplainedStatement: Sendable {
    /// The text, with placeholders for values.
    package let sql: String
    /// The plan, a line a step, indented by two spaces a level.
    package let plan: [String]
    /// The names of the indexes that the plan uses, each once.
    package let indexes: [String]
    /// The tables that are read completely.
    package let scannedTables: [String]

    package init(sql: String, plan: [String], indexes: [String], scannedTables: [String]) {
        self.sql = sql
        self.plan = plan
        self.indexes = indexes
        self.scannedTables = scannedTables
    }
}
