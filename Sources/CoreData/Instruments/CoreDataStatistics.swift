import Foundation
import StrataRows

/// How busy a coordinator and its stores are at one moment.
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
        /// How many rows the row cache holds.
        public let cachedRows: Int
        /// How many bytes these rows take, texts and data included, as an estimate.
        public let cachedBytes: Int
        /// How often a fault found its row in the cache, since the store was added.
        public let cacheHits: Int
        /// How often it did not.
        public let cacheMisses: Int
        /// The connections; `nil` of a store that has none.
        public let pool: Pool?
        /// How far each named consumer is behind the history; empty without a history.
        public let historyLag: [HistoryLag]
        /// How long ago a store on a server was last asked for what others have saved: so old may cached rows be.
        ///
        /// About a second at most, unless the server is away. `nil` without a history, which leaves cached rows as old as they are, and of other
        /// stores, which look with each read.
        public let historyAge: Duration?
    }

    /// The connections to a store's database, and its files.
    ///
    /// ```swift
    /// for pool in coordinator.statistics().stores.compactMap(\.pool) { print(pool.readers, pool.waitingReaders, pool.logSize) }
    /// ```
    public struct Pool: Sendable {
        /// How many connections are open for reading; of a store on a server, for whatever is asked of it.
        public let readers: Int
        /// The most of them (`NSPersistentStoreConnectionPoolMaxSizeKey`).
        public let readerLimit: Int
        /// How many threads wait for one.
        public let waitingReaders: Int
        /// How many threads of this process wait for their turn to write; none of a store on a server, where savers work side by side.
        public let waitingWriters: Int
        /// How many versions contexts of this coordinator are pinned to.
        public let pinnedVersions: Int
        /// For how long the oldest of these has been held: as long as it is, the log cannot begin anew.
        public let oldestPin: Duration?
        /// The size of the file, in bytes; 0 of a store on a server.
        public let fileSize: Int
        /// The size of the write-ahead log, in bytes; 0 of a store on a server.
        public let logSize: Int
    }

    /// How far a consumer of the history is behind.
    ///
    /// ```swift
    /// for lag in coordinator.statistics().stores.flatMap(\.historyLag) { print(lag.consumer, lag.transactions) }
    /// ```
    public struct HistoryLag: Sendable {
        /// The consumer's name.
        public let consumer: String
        /// How many transactions of the history it has not read.
        ///
        /// Those that were purged or picked out before it has read them do not count.
        public let transactions: Int
        /// When it has last said how far it is.
        public let lastSeen: Date
    }

    /// How many contexts are alive, children included.
    public let contexts: Int
    /// The stores, in the order of ``NSPersistentStoreCoordinator/persistentStores``.
    public let stores: [Store]
}

extension NSPersistentStoreCoordinator {
    /// Tells how busy the coordinator and its stores are.
    ///
    /// May be called on any thread. Reads the sizes of files, and of each store with a history the table of consumers; takes about as long as
    /// three fetches of one object. Transactions that consumers have not read are counted, each once.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// print(coordinator.statistics().contexts)
    /// ```
    ///
    /// - Returns: The figures, those of each store of a moment of its own. A history that cannot be read just now has no consumers.
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
            historyAge: figures?.historyAge
        )
    }

    private var historyLag: [CoreDataStatistics.HistoryLag] {
        guard let history = rows as? any HistoryStore, history.hasHistory,
            let consumers = try? history.historyConsumers()
        else { return [] }
        var unread = 0
        var counted: Int64?
        var lags: [CoreDataStatistics.HistoryLag] = []
        // From the consumer that is furthest on, so that no transaction is counted twice.
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
