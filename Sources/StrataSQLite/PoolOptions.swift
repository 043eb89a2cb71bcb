import Foundation
import StrataLocks

/// How a ``ConnectionPool`` opens its database and shares it.
package struct PoolOptions: Sendable {
    package var access: Connection.Access = .readWriteCreate

    /// The most reader connections that are open at a time, without pinned snapshots.
    ///
    /// Each costs up to ``readerCacheKiB`` of memory and two file descriptors. A read is short, so a few connections serve
    /// many threads; more of them than processors only helps reads that wait for the disk.
    package var maximumReaders = 8
    /// The most snapshots that are pinned at a time.
    ///
    /// Each has a separate connection.
    package var maximumSnapshots = 16
    /// The most snapshots of one version of the database, before its users share them.
    ///
    /// If half of all snapshots are in use, a version gets only one.
    package var connectionsPerVersion = max(1, min(ProcessInfo.processInfo.activeProcessorCount, 8))

    /// The longest total wait of a call for a connection and for locks, in seconds.
    ///
    /// A minute is longer than any one transaction of a sound program, a batch over millions of rows included, and short
    /// enough that a stuck process shows as an error in the others rather than as a hang.
    package var timeout: Double = 60

    /// Pragmas that override the defaults, by name.
    ///
    /// `page_size`, `auto_vacuum` and `encoding` apply only to a new file, and `journal_mode` only to one that may be
    /// written. With `wal_autocheckpoint`, commits copy the log when it has grown by that many pages, as in SQLite; 0 is
    /// never. The others apply to every connection.
    package var pragmas: [String: String] = [:]

    /// The page cache of each reader.
    ///
    /// A scan fills it, so it is kept small; lookups by key rarely miss the system's cache.
    package var readerCacheKiB = 4096
    /// The page cache of the writer: so large that a big transaction need not spill and read back its own pages.
    package var writerCacheKiB = 16384

    /// The number of log pages after which a ``LogCopier`` copies the log into the file, as far as readers allow; 0 for
    /// never.
    package var checkpointPages = WorkSize.copiedPages
    /// The number of pages after which a checkpoint also waits for readers, so that the log can start over.
    ///
    /// See ``LogUpkeep`` and ``LogPace``.
    package var restartPages = WorkSize.waitingPages

    package var statementCacheLimit = 128
    package var functions: [ScalarFunction] = []
    package var aggregates: [AggregateFunction] = []
    package var collations: [Collation] = []

    package init() {}
}
