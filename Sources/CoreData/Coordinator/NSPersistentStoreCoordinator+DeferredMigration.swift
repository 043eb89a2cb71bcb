import StrataPredicates
import StrataSQLiteStore

extension NSPersistentStoreCoordinator {
    /// Does all that migrations have put off, for `NSPersistentStoreDeferredLightweightMigrationOptionKey`.
    ///
    /// Each table is a transaction of its own, between which others read and write. Without anything to do it succeeds. Any thread may
    /// call it; best one in the background.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) if others keep a store locked, `persistentStoreIncompatibleVersionHash` (134100) if
    ///   somebody has migrated it since, and errors of the disk. What was done so far stays done.
    public func finishDeferredLightweightMigration() throws {
        for store in storesWithDeferredWork { while try store.finishDeferredTask() {} }
    }

    /// Does one piece of what migrations have put off: one table.
    ///
    /// `NSPersistentStore.metadata` has `NSPersistentStoreDeferredLightweightMigrationOptionKey` as long as more is left. Without anything to do it
    /// succeeds.
    ///
    /// - Throws: As ``finishDeferredLightweightMigration()``.
    public func finishDeferredLightweightMigrationTask() throws {
        _ = try storesWithDeferredWork.first?.finishDeferredTask()
    }

    private var storesWithDeferredWork: [SQLiteStore] {
        persistentStores.compactMap { $0 as? SQLiteStore }.filter { $0.sqlite?.hasDeferredWork ?? false }
    }
}

extension SQLiteStore {
    /// Does one piece of what a migration has put off.
    ///
    /// - Returns: Whether more is left.
    fileprivate func finishDeferredTask() throws -> Bool {
        guard let sqlite else { return false }
        let isMoreLeft = try sqlite.tidyUp()
        if !isMoreLeft { adoptMetadata() }
        return isMoreLeft
    }
}
