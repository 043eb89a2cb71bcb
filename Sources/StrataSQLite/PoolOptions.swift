import Foundation

/// How a ``ConnectionPool`` opens its database and shares it.
package struct PoolOptions: Sendable {
    package var access: Connection.Access = .readWriteCreate

    /// The most reader connections that are open at a time, pinned snapshots not counted.
    ///
    /// Each costs up to ``readerCacheKiB`` of memory and two file descriptors. A read is short, so a few connections serve
    /// many threads; more of them than processors only helps reads that wait for the disk.
    package var maximumReaders = 8
    /// The most snapshots that are pinned at a time.
    ///
    /// Each has a connection of its own.
    package var maximumSnapshots = 16
    /// How many of these one version of the database may have, before those who pin it share them.
    ///
    /// Once half of all are in use a version gets one.
    package var connectionsPerVersion = max(1, min(ProcessInfo.processInfo.activeProcessorCount, 8))

    /// How long a call may wait for a connection and for locks in all, in seconds.
    ///
    /// A minute is longer than any one transaction of a sound program, a batch over millions of rows included, and short
    /// enough that a stuck process shows as an error in the others rather than as a hang.
    package var timeout: Double = 60

    /// Pragmas that override the defaults, by name.
    ///
    /// `page_size`, `auto_vacuum` and `encoding` apply to a new file only; `journal_mode` to one that may be written;
    /// `wal_autocheckpoint` sets ``checkpointPages``; the rest goes to every connection.
    package var pragmas: [String: String] = [:]

    /// The page cache of each reader.
    ///
    /// A scan fills it, so it is kept small; lookups by key rarely miss the system's cache.
    package var readerCacheKiB = 4096
    /// The page cache of the writer: large enough that a big transaction need not spill and read back its own pages.
    package var writerCacheKiB = 16384

    /// Pages in the write-ahead log after which a commit copies it into the file, as far as readers allow.
    package var checkpointPages: Int32 = 1000
    /// Pages after which a checkpoint also waits for readers to leave the log so that it can start over; see ``LogUpkeep``.
    package var restartPages: Int32 = 8000

    package var statementCacheLimit = 128
    package var functions: [ScalarFunction] = []
    package var aggregates: [AggregateFunction] = []
    package var collations: [Collation] = []

    package init() {}
}
