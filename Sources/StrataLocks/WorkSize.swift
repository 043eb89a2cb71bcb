import Synchronization

/// How much work is done at a time, and how much is kept: portions, windows, sweeps and caches.
///
/// No answer depends on one of these numbers. They only weigh time against memory, so most tests have far less data than
/// a portion holds. Builds with the package trait `SmallSizes` have sizes of one to three, so that the tests cross the
/// boundaries of all of them (`make test-small-sizes`).
@usableFromInline package enum WorkSize {
    #if SmallSizes
    @inlinable package static func size<N: BinaryInteger>(_ usual: N, small: N) -> N { small }
    #else
    @inlinable package static func size<N: BinaryInteger>(_ usual: N, small: N) -> N { usual }
    #endif

    // MARK: - Reading

    /// The rows that a fetch reads between two reports of its progress.
    @inlinable package static var reportedRows: Int { size(256, small: 2) }
    /// The instructions of SQLite between two looks at a cancellation.
    package static var polledInstructions: Int32 { size(1000, small: 1) }
    /// The rows that arrive together from PostgreSQL.
    ///
    /// A few rows already share most of the cost of a result, and rows may have large values.
    package static var receivedRows: Int32 { size(16, small: 2) }
    /// The rows of a PostgreSQL result that are held at once, which takes less time than to receive them one by one.
    package static var heldRows: Int { size(1000, small: 2) }
    /// The rows that the evaluation of a predicate keeps beside those of the fetch when these are replaced.
    package static var evaluatedRows: Int { size(10_000, small: 2) }
    /// The batches of a batched fetch that are kept at least.
    package static var keptBatches: Int { size(8, small: 2) }
    /// The rows of a batched fetch that are kept at least.
    package static var keptRows: Int { size(4096, small: 2) }
    /// The equalities with one key, next to each other in an OR, from which on a predicate looks them up in a set; at least 2.
    package static var listedMembers: Int { size(16, small: 2) }
    /// The changed rows that a live query lists while its observer does not ask.
    package static var missedRows: Int { size(10_000, small: 2) }
    /// The rows of the first piece, and the most rows of any piece, that PostgreSQL sends when a condition is judged here.
    package static var siftedRows: (first: Int, most: Int) { (size(1000, small: 1), size(10_000, small: 2)) }

    /// The most fetches that read at the same time without a thread that waits for them.
    package static var backgroundReads: Int {
        #if FaultPoints
        let chosen = chosenReads.load(ordering: .relaxed)
        if chosen > 0 { return chosen }
        #endif
        return size(6, small: 1)
    }

    #if FaultPoints
    private static let chosenReads = Atomic<Int>(0)
    #endif

    /// Makes ``backgroundReads`` another number for coordinators that are made from now on; 0 sets it back.
    ///
    /// It does so only in builds with the package trait `FaultPoints`.
    package static func readInBackground(atMost number: Int) {
        #if FaultPoints
        chosenReads.store(number, ordering: .relaxed)
        #endif
    }

    // MARK: - Objects and changes

    /// The objects that a context has before it looks for released ones.
    package static var sweptObjects: Int { size(4096, small: 2) }
    /// The IDs that a table has before it looks for released ones.
    package static var sweptIDs: Int { size(4096, small: 2) }
    /// The fewest objects that a context looks through, instead of looking each one up.
    package static var searchedObjects: Int { size(1024, small: 2) }
    /// The most rows that are read at once in place of outdated ones.
    package static var renewedRows: Int { size(256, small: 2) }
    /// The fewest unsaved objects among which a context finds those with a value by an index, instead of looking at each.
    package static var indexedChanges: Int { size(32, small: 1) }
    /// The model objects of to-one relationships that a context of SwiftData keeps for the next reads.
    package static var keptModels: Int { size(1024, small: 2) }
    /// The messages about changes that wait before they are combined.
    package static var waitingMessages: Int { size(4096, small: 2) }
    /// The row versions that a parent remembers of its children's saves.
    package static var acceptedVersions: Int { size(8192, small: 2) }
    /// The IDs of one store that are taken over together.
    package static var combinedIDs: Int { size(256, small: 2) }

    // MARK: - Saving

    /// The statements for sets of changed attributes that an engine keeps.
    package static var updateStatements: Int { size(512, small: 2) }
    /// The bytes of text and data that a statement keeps for its next execution.
    @inlinable package static var boundBytes: Int { size(2048, small: 16) }
    /// The rows that are sent to PostgreSQL before it has answered the locks.
    ///
    /// After a conflict the server has inserted them in vain.
    package static var rowsAhead: Int { size(1000, small: 2) }
    /// The fewest rows that PostgreSQL gets by COPY; with fewer rows the round trips take too large a part of the time.
    package static var copiedRows: Int { size(5000, small: 3) }
    /// The ranges of transactions that a connection to SQLite knows as its own.
    package static var ownRanges: Int { size(4096, small: 2) }

    /// The pages by which the log of a SQLite file grows before they are copied into the file.
    package static var copiedPages: Int32 {
        #if FaultPoints
        let chosen = chosenPages.load(ordering: .relaxed)
        if chosen > 0 { return chosen }
        #endif
        return size(1000, small: 8)
    }
    /// The pages of such a log from which on writers wait for copies, and copies for readers.
    package static var waitingPages: Int32 {
        #if FaultPoints
        let chosen = chosenPages.load(ordering: .relaxed)
        if chosen > 0 { return 8 * chosen }
        #endif
        return size(8000, small: 1000)
    }

    #if FaultPoints
    private static let chosenPages = Atomic<Int32>(0)
    #endif

    /// Makes ``copiedPages`` another number for files that are opened from now on, and ``waitingPages`` in proportion; 0
    /// sets them back.
    ///
    /// It does so only in builds with the package trait `FaultPoints`, whose programs have little time for each file.
    package static func copyLogs(after pages: Int32) {
        #if FaultPoints
        chosenPages.store(pages, ordering: .relaxed)
        #endif
    }

    /// The rows of a commit that the row cache lists; with more of them, all rows of their hierarchy are read from the
    /// store while the commit lasts.
    package static var pendingRows: Int { size(10_000, small: 2) }

    // MARK: - Keys

    /// The most blocks of keys that are drawn to advance a sequence.
    ///
    /// Beyond that the sequence is set, which takes one statement for any number of blocks.
    package static var drawnBlocks: Int { size(1_000_000, small: 2) }

    // MARK: - History

    /// The transactions of a history that are in memory at a time.
    package static var historyPortion: Int { size(500, small: 2) }
    /// The transactions that a follower reads at a time; it limits the memory that a long absence takes.
    package static var followedPortion: Int { size(500, small: 2) }
    /// The transactions that one statement picks out of a PostgreSQL history, so that no message becomes long.
    package static var pickedTransactions: Int { size(10_000, small: 2) }
    /// The transactions of a PostgreSQL history that are removed at a time; processes that give numbers wait for that long.
    package static var purgedTransactions: Int64 { size(1000, small: 2) }
    /// The runs of changes that one statement writes into a PostgreSQL history.
    package static var historyRuns: Int { size(5000, small: 2) }
    /// The keys of runs that one statement writes into a PostgreSQL history.
    package static var historyKeys: Int { size(100_000, small: 3) }
    /// The keys of one run: PostgreSQL stores a row of the table with that many without compressing it.
    package static var runKeys: Int { size(200, small: 2) }

    // MARK: - Migrating

    /// The objects of each context of a migration before they are written and released.
    package static var migratedObjects: Int { size(4000, small: 2) }
    /// The keys that a migration has in memory at a time.
    package static var migratedKeys: Int { size(64 * 1024, small: 2) }
    /// The changes of a PostgreSQL history that one statement of a migration rewrites.
    package static var rewrittenChanges: Int { size(5000, small: 2) }
    /// The rows whose folded texts are computed at a time.
    package static var foldedRows: Int { size(10_000, small: 2) }
    /// The rows that a migration of a portable store copies in one transaction: some engines limit what a transaction may write.
    package static var piecewiseRows: Int { size(2_000, small: 2) }

    // MARK: - Statements and tools

    /// The statements that a connection to PostgreSQL keeps prepared.
    ///
    /// If there are more, then half of them are dropped, so that this happens seldom.
    package static var preparedStatements: Int { size(300, small: 3) }
    /// The plans of statements that the instruments remember.
    package static var rememberedPlans: Int { size(500, small: 2) }
    /// The compiled regular expressions that are kept; patterns that come from data would be compiled again and again.
    package static var regularExpressions: Int { size(64, small: 2) }
    /// The lines that the import of the command-line tool saves at a time.
    package static var importedLines: Int { size(1000, small: 2) }
    /// The objects that the export of the command-line tool has in memory.
    package static var exportedObjects: Int { size(500, small: 2) }
    /// The objects in a fetch of the export, which keeps the ID of each.
    package static var exportedStretch: Int { size(100_000, small: 3) }
}
