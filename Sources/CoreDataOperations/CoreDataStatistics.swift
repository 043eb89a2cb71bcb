import CoreDataEssentials
import Foundation
import StrataRows

/// The load of a coordinator and its stores at one moment.
///
/// An addition to Apple's API.
///
/// See <doc:Instruments>.
///
/// ```swift
/// let statistics = coordinator.statistics()
/// print(statistics.contexts, statistics.stores.map(\.cachedRows))
/// ```
public struct CoreDataStatistics: Sendable {
    /// One store.
    ///
    /// ```swift
    /// for store in coordinator.statistics().stores { print(store.name, store.cacheHits, store.cacheMisses) }
    /// ```
    public struct Store: Sendable {
        /// The UUID.
        public let identifier: String?
        /// The file name, or the type of a store that lies in no file.
        public let name: String
        /// The number of rows in the row cache.
        public let cachedRows: Int
        /// The number of bytes that these rows take, including texts and data, as an estimate.
        public let cachedBytes: Int
        /// The number of faults that found their row in the cache, since the store was added.
        public let cacheHits: Int
        /// The number of faults that did not find their row in the cache.
        public let cacheMisses: Int
        /// The connections; `nil` for a store that has none.
        public let pool: Pool?
        /// The distance of each named consumer from the end of the history; empty without a history.
        public let historyLag: [HistoryLag]
        /// The time since a store on a server was last asked for the saves of others: cached rows are at most so old.
        ///
        /// About a second at most, unless the server cannot be reached. `nil` without a history, because cached rows
        /// are then not checked, and `nil` for other stores, which check with each read.
        public let historyAge: Duration?
        /// Where a server keeps the tables of the store; `nil` for a store without a server.
        public let tablePlacement: TablePlacement?
    }

    /// Where a server keeps the tables of a store, and whether the store does without features that such a server may lack.
    ///
    /// The store finds it out when it is opened, by what the server does and not by its name or version.
    ///
    /// ```swift
    /// let isSharded = coordinator.statistics().stores.contains { $0.tablePlacement == .shardedBySchema }
    /// ```
    public enum TablePlacement: String, Sendable {
        /// The server that executes the statements has the tables.
        case oneNode = "one node"
        /// The tables of the schema are on one of several nodes, behind the server to which the store connects.
        ///
        /// Contexts cannot be pinned to a version there, and a fetch that takes several statements may see what others commit between them.
        case shardedBySchema = "sharded by schema"
        /// The store relies only on rows, unique keys and sequences of the server, because the server lacked something when the store was made.
        ///
        /// Saves that a history records commit one after the other there. The changes of other processes are noticed within a second. The store has no
        /// foreign keys, and is not migrated.
        case portable
    }

    /// The connections to a store's database, and its files.
    ///
    /// ```swift
    /// for pool in coordinator.statistics().stores.compactMap(\.pool) { print(pool.readers, pool.waitingReaders, pool.logSize) }
    /// ```
    public struct Pool: Sendable {
        /// The number of open connections for reading; for a store on a server, the connections for all requests.
        public let readers: Int
        /// The maximum number of connections for reading (`NSPersistentStoreConnectionPoolMaxSizeKey`).
        public let readerLimit: Int
        /// The number of threads that wait for one.
        public let waitingReaders: Int
        /// The number of threads of this process that wait to write; 0 for a store on a server.
        ///
        /// Savers of a store on a server work at the same time.
        public let waitingWriters: Int
        /// The number of versions to which contexts of this coordinator are pinned.
        public let pinnedVersions: Int
        /// The time for which the oldest pinned version has been held; while it is held, the log cannot start again.
        public let oldestPin: Duration?
        /// The size of the file, in bytes; 0 for a store on a server.
        public let fileSize: Int
        /// The size of the write-ahead log, in bytes; 0 for a store on a server.
        public let logSize: Int
    }

    /// The distance of a consumer from the end of the history.
    ///
    /// ```swift
    /// for lag in coordinator.statistics().stores.flatMap(\.historyLag) { print(lag.consumer, lag.transactions) }
    /// ```
    public struct HistoryLag: Sendable {
        /// The consumer's name.
        public let consumer: String
        /// The number of transactions of the history that it has not read.
        ///
        /// Transactions that were purged or deleted before the consumer read them do not count.
        public let transactions: Int
        /// The time when it last reported its token.
        public let lastSeen: Date
    }

    /// The number of live contexts, including children.
    public let contexts: Int
    /// The stores, in the order of ``NSPersistentStoreCoordinator/persistentStores``.
    public let stores: [Store]
}

extension NSPersistentStoreCoordinator {
    /// The load of the coordinator and its stores.
    ///
    /// May be called on any thread. It reads the sizes of files, and the table of consumers of each store with a
    /// history; this takes about as long as three fetches of one object. Transactions that consumers have not read are
    /// counted, each once.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// print(coordinator.statistics().contexts)
    /// ```
    ///
    /// - Returns: The figures; each store's are of a different moment. If a history cannot be read now, it has no
    ///   consumers.
    /// - Complexity: O(*n*) in the number of transactions that the slowest consumer has not read: about 0.1 s for a
    ///   million.
    public func statistics() -> CoreDataStatistics {
        CoreDataStatistics(contexts: gate.contextCount, stores: openStores.map(\.statistics))
    }
}

extension OpenStore {
    fileprivate var statistics: CoreDataStatistics.Store {
        let use = cache.use
        let figures = rows.figures
        return CoreDataStatistics.Store(
            identifier: store.identifier,
            name: store.url.flatMap { $0.path == "/dev/null" ? nil : $0.lastPathComponent } ?? store.type,
            cachedRows: use.rows,
            cachedBytes: use.bytes,
            cacheHits: use.hits,
            cacheMisses: use.misses,
            pool: figures.map { figures in
                CoreDataStatistics.Pool(
                    readers: figures.readers,
                    readerLimit: figures.readerLimit,
                    waitingReaders: figures.waitingReaders,
                    waitingWriters: figures.waitingWriters,
                    pinnedVersions: figures.pinnedVersions,
                    oldestPin: figures.oldestPin,
                    fileSize: figures.fileSize,
                    logSize: figures.logSize
                )
            },
            historyLag: historyLag,
            historyAge: figures?.historyAge,
            tablePlacement: figures?.server.map { server in
                switch server {
                case .oneNode: .oneNode
                case .shardedBySchema: .shardedBySchema
                case .portable: .portable
                }
            }
        )
    }

    private var historyLag: [CoreDataStatistics.HistoryLag] {
        guard let history = rows as? any HistoryStore, history.hasHistory,
            let consumers = try? history.historyConsumers()
        else { return [] }
        var unread = 0
        var counted: Int64?
        var lags: [CoreDataStatistics.HistoryLag] = []
        // The count starts with the consumer that has read most, so that no transaction is counted twice.
        for consumer in consumers.sorted(by: { $0.number > $1.number }) {
            let rest = HistoryQuery(after: consumer.number, until: counted, wantsChanges: false)
            guard let count = try? history.historyCount(rest) else { return [] }
            unread += count
            counted = consumer.number
            lags.append(
                CoreDataStatistics.HistoryLag(
                    consumer: consumer.name,
                    transactions: unread,
                    lastSeen: Date(timeIntervalSinceReferenceDate: consumer.lastSeen)
                )
            )
        }
        return lags.sorted { $0.consumer < $1.consumer }
    }
}
