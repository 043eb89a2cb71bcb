import StrataKeys
import StrataPredicates

/// A store engine: it takes rows, keys and change sets, and returns rows and conflicts.
///
/// It knows no contexts, no objects and no model descriptions.
///
/// Every member may be called on any thread, and several at once. No read waits for the transaction of a save; in
/// memory it waits at most while a save changes the contents. A read may wait for a connection, and reads of one pinned
/// version may take turns.
package protocol RowStore: RowSource {
    /// The place of the rows, for messages: a path, or a URL without secrets.
    var place: String { get }

    /// Whether opening the store has created all of it, so that its removal destroys no other program's data.
    ///
    /// It is `nil`, the default, for a store that is a file: whether a file exists can be checked before it is opened.
    var wasMade: Bool? { get }

    /// How the store makes the versions of rows; ``RowVersion/Form/counted`` by default.
    var versionForm: RowVersion.Form { get }

    /// Whether the store can keep a version of its rows readable while other contexts write.
    var keepsVersions: Bool { get }

    /// Keeps the newest version readable.
    ///
    /// - Parameter mayBeReplica: Whether it may be the version of a replica of the server. All that was saved through
    ///   this store is in it even then.
    /// - Returns: A source that reads that version until it is no longer held; `nil` if the store keeps none.
    /// - Throws: `persistentStoreOperation` (134070) if there are too many; errors of the store.
    func pinnedVersion(mayBeReplica: Bool) throws -> (any RowSource)?

    /// Reserves keys that no other row has had or will have.
    ///
    /// - Parameter counts: The number of keys, by the number of the root entity.
    /// - Returns: As many keys, in ranges that need not lie next to each other.
    /// - Throws: Errors of the store.
    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]]

    /// Reserves all keys up to the given ones, so that new rows may have them.
    ///
    /// - Parameter highest: The highest of these keys, greater than 0, by the number of the root entity.
    /// - Returns: The roots for which that was possible: those that have given no keys yet.
    /// - Throws: Errors of the store.
    func reserveKeys(upTo highest: [Int: Int64]) throws -> Set<Int>

    /// The highest keys that were given so far, to rows or in reserve, by the number of the root entity.
    ///
    /// It may be asked while the store is being retired. If a hierarchy has no key in the answer, as by default, the
    /// keys of its rows count.
    ///
    /// - Parameter roots: The numbers of the root entities.
    /// - Returns: Keys, or higher numbers; 0 if none was given.
    /// - Throws: Errors of the store.
    func lastKeys(_ roots: [Int]) throws -> [Int: Int64]

    /// Writes all of `changes` in one transaction, or nothing.
    ///
    /// The store compares each base version in a way that no other writer can come between: in the statement that
    /// writes (SQLite), after the row is locked (PostgreSQL), or while no other save runs (memory).
    ///
    /// A row is written with the version after its base version. A new row is written with the version after its own,
    /// which is 0 unless the row was there before. The engine decides what the next version is, see ``RowVersion``.
    ///
    /// - Parameters:
    ///   - changes: The changes to write.
    ///   - willCommit: Called with the result right before the commit. Readers of the store may see the commit before
    ///     `didCommit` is called. An attempt that is made again calls it again. An engine whose readers wait until
    ///     `didCommit` has returned need not call it. Runs no user code.
    ///   - didCommit: Called once the transaction is durable; it enters keys and versions into the rows
    ///     (``StoreChanges/settle(_:)``). Saves that an engine commits side by side may call it in another order than they
    ///     committed in. Runs no user code.
    /// - Returns: The conflicts; nothing was written then. Empty when all is saved.
    /// - Throws: ``SaveInDoubt`` if it is not known whether the transaction was committed.
    func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict]

    /// Whether the store finds the place for new members of an ordered relationship that the context has not read.
    ///
    /// The members then come after all others. It is false by default: the context reads the members before it saves.
    var placesUnreadMembers: Bool { get }

    /// Whether batches are carried out at all.
    ///
    /// An incremental store receives each, and may refuse it.
    var takesBatches: Bool { get }

    /// Carries out a batch in one transaction, or nothing of it.
    ///
    /// - Parameters:
    ///   - batch: The batch to carry out.
    ///   - willCommit: Called with the changes right before the commit, as in a save.
    ///   - didCommit: Called with the changes, once the transaction is durable. It runs no user code.
    /// - Throws: ``BatchClashes``; `CancellationError`.
    func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws

    /// Runs `body` while no other code writes to the store, and refuses all writes once it has succeeded.
    ///
    /// Another store then takes this one's place.
    func retire(_ body: () throws -> Void) throws

    /// The number of times that rows were found changed by other writers, above all other processes.
    ///
    /// Rows that were cached before the number has grown may be out of date. It is read before rows are taken from a
    /// cache, so it must cost next to nothing. It counts everything that had been committed when the call began. A
    /// store that has no other writers, or that cannot notice them, uses the default, which is 0.
    var commitsOfOthers: UInt64 { get }

    /// The rows that other writers have changed or deleted since ``commitsOfOthers`` had a value.
    ///
    /// It is `nil`, the default, if any row may have changed. Rows that other writers have added need not be among
    /// them.
    func rowsChangedByOthers(since commits: UInt64) -> ChangedRows?

    /// Reads something small, to find out whether the store answers.
    ///
    /// - Parameter timeout: The most seconds to wait for a connection and for locks.
    /// - Throws: Errors of the store.
    func check(timeout: Double) throws

    /// Copies committed data to its permanent place, if that is another one: a write-ahead log into its file.
    ///
    /// - Parameter timeout: The most seconds to wait for other users of the store.
    /// - Throws: Errors of the store. Nothing that was committed is lost then.
    func checkpoint(timeout: Double) throws

    /// How busy the store is at this moment; `nil` for one that has no figures.
    var figures: EngineFigures? { get }

    /// How a fetch would be answered; `nil` for a store that has no statements.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - answer: The part of the rows that is wanted.
    /// - Returns: The statement and its plan.
    /// - Throws: The errors of the fetch that occur before anything is read.
    func explanation(of plan: FetchPlan, _ answer: ExplainedAnswer) throws -> ExplainedStatement?

    /// Releases all resources after the last request.
    ///
    /// No other member is called afterwards.
    func close()
}

extension RowStore {
    /// Saves, for a caller that has no cache to prepare before the commit.
    package func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict] {
        try save(changes, willCommit: { _ in }, didCommit: didCommit)
    }
}

extension RowStore {
    package var wasMade: Bool? { nil }

    package var versionForm: RowVersion.Form { .counted }

    package var keepsVersions: Bool { false }

    package var placesUnreadMembers: Bool { false }

    package func pinnedVersion(mayBeReplica: Bool) throws -> (any RowSource)? { nil }

    package func reserveKeys(upTo highest: [Int: Int64]) throws -> Set<Int> {
        let ranges = try reserveKeys(highest.mapValues { Int($0) })
        return Set(
            ranges.filter { root, ranges in
                ranges.count == 1 && ranges[0].lowerBound == 1 && ranges[0].upperBound > (highest[root] ?? .max)
            }.keys
        )
    }

    package func lastKeys(_ roots: [Int]) throws -> [Int: Int64] { [:] }

    package var commitsOfOthers: UInt64 { 0 }

    package func rowsChangedByOthers(since commits: UInt64) -> ChangedRows? { nil }

    package func retire(_ body: () throws -> Void) throws { try body() }

    package func check(timeout: Double) throws {}

    package func checkpoint(timeout: Double) throws {}

    package var figures: EngineFigures? { nil }

    package func explanation(of plan: FetchPlan, _ answer: ExplainedAnswer) throws -> ExplainedStatement? { nil }

    /// The error for a write to a store that was removed meanwhile.
    package var closedError: CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(place) is closed: it was removed from its coordinator."
            ]
        ).marked(.environment)
    }
}

extension StoreChanges {
    /// The error for copies of rows whose keys the store has given to other rows before.
    ///
    /// - Parameters:
    ///   - entity: The root entity of the rows.
    ///   - place: Where the store is.
    /// - Returns: The error.
    package static func givenKeys(of entity: String, at place: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store cannot be migrated to \(place): objects of entity \(entity) keep their keys, and the store there has given such keys before, though it has no object now. Destroy it first, or name another place."
            ]
        ).marked(.request)
    }
}
