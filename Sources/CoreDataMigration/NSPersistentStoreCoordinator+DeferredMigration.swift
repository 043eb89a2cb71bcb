import CoreDataEngineStores
import CoreDataEssentials
import StrataPredicates
import StrataSQLiteStore

extension NSPersistentStoreCoordinator {
    /// Does all work that migrations have deferred, for `NSPersistentStoreDeferredLightweightMigrationOptionKey`.
    ///
    /// Each table has a separate transaction; between these, other threads and processes read and write. If there is no
    /// work, then it succeeds. Any thread may call it, preferably one in the background.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if other processes keep a store locked,
    ///   `persistentStoreIncompatibleVersionHash` (134100) if another process has migrated it since, and errors of the
    ///   disk. The work that was done so far stays done.
    public func finishDeferredLightweightMigration() throws {
        for store in storesWithDeferredWork { while try store.finishDeferredTask() {} }
    }

    /// Does one piece of the work that migrations have deferred: one table.
    ///
    /// `NSPersistentStore.metadata` has `NSPersistentStoreDeferredLightweightMigrationOptionKey` as long as more work
    /// is left. If there is no work, then it succeeds.
    ///
    /// - Throws: The errors of ``finishDeferredLightweightMigration()``.
    public func finishDeferredLightweightMigrationTask() throws {
        _ = try storesWithDeferredWork.first?.finishDeferredTask()
    }

    private var storesWithDeferredWork: [SQLiteStore] {
        persistentStores.compactMap { $0 as? SQLiteStore }.filter { $0.sqlite?.hasDeferredWork ?? false }
    }
}

extension SQLiteStore {
    /// Does one piece of the work that a migration has deferred.
    ///
    /// - Returns: Whether more is left.
    fileprivate func finishDeferredTask() throws -> Bool {
        guard let sqlite else { return false }
        let isMoreLeft = try sqlite.tidyUp()
        if !isMoreLeft { copyMetadataFromEngine() }
        return isMoreLeft
    }
}
