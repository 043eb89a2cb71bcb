/// The settings with which the raw side opens its databases.
///
/// Both have a write-ahead log and `synchronous = NORMAL`: with more flushes or without any, the two sides would not keep
/// the same promises.
enum RawSettings {
    /// Those of the framework's own connections: page cache, temporary tables in memory, the limit of the log.
    case same
    /// Those that SQLite has by itself.
    case defaults

    /// The database in the folder of a run; each of the settings has its own, as some are fixed when a file is made.
    var fileName: String { self == .same ? "raw.sqlite" : "raw-defaults.sqlite" }

    /// The statements of a connection before its journal mode is set, which writes the first page.
    var whenMade: String { self == .same ? "PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2" : "" }

    /// The statements of each connection.
    ///
    /// These are the values of `PoolOptions`, whose connections for reading have a smaller page cache. No connection
    /// maps the file.
    func whenOpened(for use: RawUse) -> String {
        guard self == .same else { return "" }
        return """
            PRAGMA cache_size = \(use == .reading ? -4096 : -16384); PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;
            PRAGMA journal_size_limit = \(8000 * 4096);
            """
    }
}

/// The purpose of a connection of the raw side.
enum RawUse {
    case reading
    case writing
}
