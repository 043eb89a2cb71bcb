import Foundation
import StrataPredicates

/// What a coordinator asks of a store: rows, keys and change sets, never contexts or live objects.
///
/// Every member may be called on any thread, and several at once: reads do not wait for one another nor for a save.
protocol RowStore: NSPersistentStore, RowSource {
    /// Whether the store can hold on to a version of its rows while others write.
    var keepsVersions: Bool { get }

    /// Holds on to the newest version.
    ///
    /// Gives: What reads that version until nobody holds it; `nil` if the store keeps none.
    /// Throws: `persistentStoreOperation` (134070) if there are too many; errors of the store.
    func pinnedVersion() throws -> (any RowSource)?

    /// Reserves keys that no other row has had or will have.
    ///
    /// `counts`: How many, by the number of the root entity.
    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: Range<Int64>]

    /// Writes all of `changes` in one transaction, or nothing.
    ///
    /// The store checks each base version in the very statement that writes, so no other writer can slip between. A row
    /// is written with the version after its base version; a new row with the version after its own, which is 1 unless
    /// the row was there before.
    ///
    /// `didCommit`: Called once the transaction is durable and before the next writer may begin, so that caches
    ///   see commits in their order. Enters keys and versions into the rows (``StoreChanges/settle(_:)``). Runs no user code.
    /// Gives: What was refused; nothing was written then. Empty when all is saved.
    func save(_ changes: StoreChanges, didCommit: (StoreSaveResult) -> Void) throws -> [StoreConflict]

    /// Whether batches are carried out at all; an incremental store is asked, and may refuse each.
    var takesBatches: Bool { get }

    /// Carries out a batch in one transaction, or nothing of it.
    ///
    /// `didCommit`: Called with what has changed, once the transaction is durable and before the next writer may begin. Runs no
    ///   user code.
    ///
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if the store does not take batches, which is the default;
    ///   ``BatchClashes``; `CancellationError`.
    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws

    /// Runs `body` while nobody writes to the store, and refuses all writes once it has succeeded: another store takes this
    /// one's place.
    func retire(_ body: () throws -> Void) throws

    /// Writes the store's metadata when it has changed since it was read, without a save.
    func saveMetadata() throws

    /// Lets go of everything, after the last request. No other member is called afterwards.
    func close()

    // MARK: - What only stores of one's own do in another way

    /// Whether a fetch brings rows; otherwise each is asked for when its object's fault fires.
    var fetchesRows: Bool { get }

    /// Whether a save is told in objects, which must have their permanent IDs by then.
    var isToldOfObjects: Bool { get }

    /// Gets ready for requests, after the metadata was loaded and before anybody else knows the store.
    func open(as entry: OpenStore) throws

    /// Reserves keys for new objects, in their order.
    func keys(for objects: [NSManagedObject]) throws -> [Int64]

    /// As ``save(_:didCommit:)``, on behalf of a context.
    func save(_ changes: StoreChanges, of context: NSManagedObjectContext, didCommit: (StoreSaveResult) -> Void) throws
        -> [StoreConflict]

    /// What stands for a key in a URI, after the `p`.
    func uriText(ofKey key: Int64, in layout: EntityLayout) -> String

    /// The key that a URI means.
    func key(fromURIText text: Substring, of layout: EntityLayout) -> Int64?
}

extension RowStore {
    var keepsVersions: Bool { false }

    func pinnedVersion() throws -> (any RowSource)? { nil }

    var takesBatches: Bool { false }

    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws { throw refusal(of: batch.request) }

    /// The error for a batch that the store does not take.
    func refusal(of request: NSPersistentStoreRequest) -> CocoaError {
        CocoaError(
            .persistentStoreUnsupportedRequestType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Stores of type \(type) (\(Swift.type(of: self))) take no \(Swift.type(of: request)): fetch the objects, change them, and save.",
                NSAffectedStoresErrorKey: [self],
            ]
        )
    }

    func retire(_ body: () throws -> Void) throws { try body() }

    /// The error for a write to a store that was removed meanwhile.
    var closedError: CocoaError {
        CocoaError(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url?.path ?? "") is closed: it was removed from its coordinator."
            ]
        )
    }

    var fetchesRows: Bool { true }

    var isToldOfObjects: Bool { false }

    func open(as entry: OpenStore) throws {}

    func keys(for objects: [NSManagedObject]) throws -> [Int64] {
        let counts = Dictionary(objects.map { ($0.layout.rootNumber, 1) }, uniquingKeysWith: +)
        var keys = try reserveKeys(counts).mapValues { $0.makeIterator() }
        return objects.compactMap { keys[$0.layout.rootNumber]?.next() }
    }

    func save(_ changes: StoreChanges, of context: NSManagedObjectContext, didCommit: (StoreSaveResult) -> Void) throws
        -> [StoreConflict]
    { try save(changes, didCommit: didCommit) }

    func uriText(ofKey key: Int64, in layout: EntityLayout) -> String { "\(key)" }

    func key(fromURIText text: Substring, of layout: EntityLayout) -> Int64? {
        Int64(text).flatMap { $0 > 0 ? $0 : nil }
    }
}

/// The unsaved work of one context on one store, with no reference to a live object.
struct StoreChanges {
    /// New rows.
    ///
    /// A negative key asks the store for a permanent one; a positive key was reserved before.
    var inserted: [Row] = []
    var updated: [RowUpdate] = []
    var deleted: [RowDeletion] = []
    /// Rows that are not written but must not have changed: from `detectConflicts(for:)`.
    var locked: [RowDeletion] = []
    /// Changes of to-many relationships that columns of changed rows do not hold: many-to-many memberships (told once,
    /// from the canonical side), relationships without an inverse, and the order of ordered ones.
    var toMany: [ToManyChange] = []
    /// Owners whose to-many relationships changed, though their rows need not have: for history only.
    var touched: [TouchedOwner] = []
    /// Who saves, for history.
    var author: String?
    var contextName: String?

    var isEmpty: Bool {
        inserted.isEmpty && updated.isEmpty && deleted.isEmpty && locked.isEmpty && toMany.isEmpty
    }
}

/// A row that is to replace the one of its key, if that still has the base version.
struct RowUpdate {
    /// The values after the change.
    ///
    /// References may hold negative keys of rows inserted by the same save.
    let row: Row
    /// The version that the change was made upon.
    let baseVersion: Int64
    /// The slots that differ from the base row; empty when only the version has to advance.
    let changed: SlotSet
}

/// A row that is to go, or to be checked, if it still has the base version.
struct RowDeletion {
    let layout: EntityLayout
    let key: Int64
    let baseVersion: Int64
}

/// How one object's to-many relationship changed.
struct ToManyChange {
    let relationship: ToManySlot
    let owner: ObjectReference
    var added: [ObjectReference]
    var removed: [ObjectReference]
    /// The whole content in its new order, for an ordered relationship whose order or membership changed.
    var order: [ObjectReference]?
}

/// An object whose to-many relationships changed, whichever rows hold that.
struct TouchedOwner {
    let owner: ObjectReference
    /// The positions of the relationships.
    let relationships: [Int]
}

/// What a store tells after it has committed.
struct StoreSaveResult {
    /// The permanent key of each inserted row, in the order of `inserted`.
    var insertedKeys: [Int64] = []
    /// Rows whose stored values differ from what was handed over (derived attributes, decimals that the store rounds,
    /// rows that triggers touched), as they are now.
    var reread: [Row] = []
    /// The number of the save's transaction in the history; `nil` if none is written.
    var historyNumber: Int64?
}

/// Why a store refused a save: all conflicts of the save are told, not only the first.
enum StoreConflict {
    /// A changed or deleted row no longer has the base version. `persisted` is the row as stored, `nil` if it is gone.
    case version(layout: EntityLayout, key: Int64, baseVersion: Int64, persisted: Row?)
    /// Rows that break a uniqueness constraint: the keys of the save's own rows (as handed over), and the stored row
    /// that they collide with, if the collision is not among themselves only.
    case constraint(entity: EntityLayout, attributes: [String], keys: [Int64], persisted: Row?)
    /// A changed relationship leads to a row that somebody else has deleted. `root`: The number of its root entity.
    case missing(ObjectReference, root: Int)
}

/// A set of slot positions, without allocation for entities of up to 64 slots.
struct SlotSet: Sendable, Hashable {
    private var low: UInt64 = 0
    private var high: Set<Int> = []

    init() {}

    var isEmpty: Bool { low == 0 && high.isEmpty }

    @inline(__always)
    func contains(_ slot: Int) -> Bool {
        slot < 64 ? low & (1 << UInt64(slot)) != 0 : high.contains(slot)
    }

    @inline(__always)
    mutating func insert(_ slot: Int) {
        if slot < 64 { low |= 1 << UInt64(slot) } else { high.insert(slot) }
    }

    mutating func remove(_ slot: Int) {
        if slot < 64 { low &= ~(1 << UInt64(slot)) } else { high.remove(slot) }
    }

    mutating func formUnion(_ other: SlotSet) {
        low |= other.low
        high.formUnion(other.high)
    }

}
