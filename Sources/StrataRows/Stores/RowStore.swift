import StrataKeys
import StrataPredicates

/// A store engine: rows, keys and change sets in, rows and conflicts out.
///
/// It knows no contexts, no objects and no model descriptions.
///
/// Every member may be called on any thread, and several at once: reads do not wait for one another nor for a save.
package protocol RowStore: RowSource {
    /// Where the rows are, for messages: a path, or a URL without secrets.
    var place: String { get }

    /// Whether all of the store was made when it was opened, so that nothing of others is lost with it; `nil`, the default, for one that is a
    /// file: whether there is one shows before.
    var wasMade: Bool? { get }

    /// How the store makes the versions of rows; ``RowVersion/Form/counted`` by default.
    var versionForm: RowVersion.Form { get }

    /// Whether the store can hold on to a version of its rows while others write.
    var keepsVersions: Bool { get }

    /// Holds on to the newest version.
    ///
    /// - Parameter mayBeReplica: Whether it may be the version of a server that follows the one which is written to. Everything that
    ///   was saved through this store is in it all the same.
    /// - Returns: A source that reads that version until it is no longer held; `nil` if the store keeps none.
    /// - Throws: `persistentStoreOperation` (134070) if there are too many; errors of the store.
    func pinnedVersion(mayBeReplica: Bool) throws -> (any RowSource)?

    /// Reserves keys that no other row has had or will have.
    ///
    /// - Parameter counts: How many, by the number of the root entity.
    /// - Returns: As many keys, in ranges that need not lie next to each other.
    /// - Throws: Errors of the store.
    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]]

    /// The highest keys that were given so far, to rows or in reserve, by the number of the root entity.
    ///
    /// May be asked while the store is being retired. Without a key for a hierarchy, as by default, those of its rows
    /// count.
    ///
    /// - Parameter roots: The numbers of the root entities.
    /// - Returns: Keys, or numbers above; 0 where none was given.
    /// - Throws: Errors of the store.
    func lastKeys(_ roots: [Int]) throws -> [Int: Int64]

    /// Writes all of `changes` in one transaction, or nothing.
    ///
    /// The store checks each base version in the very statement that writes, so no other writer can slip between. A row
    /// is written with the version after its base version; a new row with the version after its own, which is 0 unless
    /// the row was there before. The engine decides what the next version is, see ``RowVersion``.
    ///
    /// - Parameters:
    ///   - changes: The changes to write.
    ///   - didCommit: Called once the transaction is durable; it enters keys and versions into the rows
    ///     (``StoreChanges/settle(_:)``). Saves that an engine commits side by side may call it in another order than they
    ///     committed in. Runs no user code.
    /// - Returns: The conflicts; nothing was written then. Empty when all is saved.
    /// - Throws: ``SaveInDoubt`` if it is not known whether the transaction was committed.
    func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict]

    /// Whether batches are carried out at all; an incremental store is asked, and may refuse each.
    var takesBatches: Bool { get }

    /// Carries out a batch in one transaction, or nothing of it.
    ///
    /// - Parameters:
    ///   - batch: The batch to carry out.
    ///   - didCommit: Called with what has changed, once the transaction is durable. Runs no user code.
    /// - Throws: ``BatchClashes``; `CancellationError`.
    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws

    /// Runs `body` while nobody writes to the store, and refuses all writes once it has succeeded: another store takes this
    /// one's place.
    func retire(_ body: () throws -> Void) throws

    /// How often the rows were found changed by somebody else than this store, another process above all: what was cached before the
    /// number has grown may be out of date.
    ///
    /// Asked before rows are taken from a cache, so it must cost next to nothing. What had been committed when the call begins is
    /// counted. A store that nobody else writes to, or that cannot tell, leaves it to the default, which is 0.
    var commitsOfOthers: UInt64 { get }

    /// The rows that others have changed or deleted since ``commitsOfOthers`` was a number; `nil` if they may be any, as by default.
    ///
    /// Rows that others have added need not be among them.
    func rowsChangedByOthers(since commits: UInt64) -> ChangedRows?

    /// Reads something small, to see whether the store answers.
    ///
    /// - Parameter timeout: The most seconds to wait for a connection and for locks.
    /// - Throws: Errors of the store.
    func check(timeout: Double) throws

    /// Brings what was committed to where it is kept for good, as far as that is another place: a write-ahead log into its file.
    ///
    /// - Parameter timeout: The most seconds to wait for others.
    /// - Throws: Errors of the store. Nothing that was committed is lost then.
    func checkpoint(timeout: Double) throws

    /// How busy the store is just now; `nil` for one that has nothing to tell.
    var figures: EngineFigures? { get }

    /// How a fetch would be answered; `nil` for a store that has no statements.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - answer: What of the rows is wanted.
    /// - Returns: The statement and its plan.
    /// - Throws: As the fetch, as far as that shows before anything is read.
    func explanation(of plan: FetchPlan, _ answer: ExplainedAnswer) throws -> ExplainedStatement?

    /// Lets go of everything, after the last request. No other member is called afterwards.
    func close()
}

extension RowStore {
    package var wasMade: Bool? { nil }

    package var versionForm: RowVersion.Form { .counted }

    package var keepsVersions: Bool { false }

    package func pinnedVersion(mayBeReplica: Bool) throws -> (any RowSource)? { nil }

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
