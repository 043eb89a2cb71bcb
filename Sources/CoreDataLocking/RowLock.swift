import CoreDataEssentials
import StrataRows

/// The lock that a fetch takes on the rows that it finds, until the block in which it runs saves or ends.
///
/// An addition to Apple's API; see ``NSManagedObjectContext/perform(locking:_:)``.
///
/// ```swift
/// let lock = RowLock(.update, lockedRows: .skip)
/// let shared = RowLock(.share)  // waits for rows that others have locked
/// print(lock.strength, shared.lockedRows)
/// ```
public struct RowLock: Hashable, Sendable {
    /// The accesses of others that a lock keeps out.
    ///
    /// All may read a locked row: a lock keeps out other locks and changes.
    ///
    /// ```swift
    /// print(RowLock(.update).strength == RowLock.Strength.update)  // true
    /// ```
    public enum Strength: Hashable, Sendable {
        /// No other block may lock the row, and no other save may change or delete it: `FOR NO KEY UPDATE` on PostgreSQL.
        case update

        /// Other blocks may lock the row as well, with the same strength, and no other save may change or delete it:
        /// `FOR SHARE` on PostgreSQL.
        ///
        /// On SQLite and in memory it is the same as ``update``.
        case share
    }

    /// The conduct of a fetch towards rows that others have locked, or are saving.
    ///
    /// ```swift
    /// print(RowLock(.update).lockedRows == RowLock.Conduct.wait)  // true
    /// ```
    public enum Conduct: Hashable, Sendable {
        /// It waits for them, but not longer than the time of its block.
        case wait

        /// It throws `managedObjectContextLocking` (132000), which names them as far as they are known.
        case fail

        /// It leaves them out.
        case skip
    }

    /// The accesses of others that the lock keeps out.
    public var strength: Strength

    /// The conduct towards rows that others have locked; ``Conduct/wait`` by default.
    public var lockedRows: Conduct

    /// Makes a lock.
    ///
    /// - Parameters:
    ///   - strength: The accesses of others that the lock keeps out.
    ///   - lockedRows: The conduct towards rows that others have locked.
    public init(_ strength: Strength, lockedRows: Conduct = .wait) {
        self.strength = strength
        self.lockedRows = lockedRows
    }

    init(_ locking: RowLocking) {
        let conduct: Conduct =
            switch locking.conduct {
            case .wait: .wait
            case .fail: .fail
            case .skip: .skip
            }
        self.init(locking.strength == .share ? .share : .update, lockedRows: conduct)
    }

    var locking: RowLocking {
        let conduct: RowLocking.Conduct =
            switch lockedRows {
            case .wait: .wait
            case .fail: .fail
            case .skip: .skip
            }
        return RowLocking(strength == .share ? .share : .update, conduct)
    }
}

extension NSFetchRequest {
    /// The lock that the fetch takes on each row that it finds; `nil`, the default, for none.
    ///
    /// Such a request is answered only by `fetch(_:)`, for objects, inside a block of
    /// ``NSManagedObjectContext/perform(locking:_:)`` or ``NSManagedObjectContext/performAndWait(locking:_:)`` of the same
    /// context. Anything else refuses it with 134070. The rows of one store are locked, so if several stores hold the
    /// entity, then name one in `affectedStores`. Rows of related objects are not locked, whether they are prefetched or
    /// not.
    ///
    /// The fetch reads the rows from the store, and objects that the context already has show these values. The request
    /// finds the rows by what is stored, as if `includesPendingChanges` was false. An object that has unsaved changes
    /// keeps them, and its save finds a conflict if another context has changed the row before it was locked. So lock an
    /// object before you change it. All rows are read at once, whatever `fetchBatchSize` says.
    ///
    /// ```swift
    /// let counter = NSFetchRequest<Venue>(entityName: "Venue")
    /// counter.fetchLimit = 1
    /// counter.rowLock = RowLock(.update)
    /// try context.performAndWait(locking: .seconds(5)) {
    ///     try context.fetch(counter).first?.price += 1
    ///     try context.save()
    /// }
    /// ```
    ///
    /// An addition to Apple's API.
    public var rowLock: RowLock? {
        get { rowLocking.map { RowLock($0) } }
        set { rowLocking = newValue?.locking }
    }
}
