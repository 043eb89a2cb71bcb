import StrataRows

/// A block of a context that may lock rows of one store, in one transaction that ends with the context's save.
///
/// Confined to the context's scope.
package protocol LockingBlock: AnyObject {
    /// Continues while the block has time.
    ///
    /// - Throws: `persistentStoreTimeout` (134090) once the transaction was rolled back.
    func requireTime() throws

    /// Answers a fetch with rows that are locked from now on.
    ///
    /// - Throws: The errors of a fetch with a `rowLock`.
    func rows(for plan: FetchPlan, _ locking: RowLocking, in store: OpenStore) throws -> [Row]

    /// Saves in the transaction of the block, and ends it.
    ///
    /// - Returns: The conflicts; `nil` if the block has locked no rows of that store.
    /// - Throws: `persistentStoreTimeout` (134090) once the transaction was rolled back; errors of the store.
    func save(
        _ changes: StoreChanges,
        to store: OpenStore,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws
        -> [StoreConflict]?

    /// Refuses work that would wait for the transaction of the block.
    ///
    /// - Parameters:
    ///   - work: The name of the work, for the error.
    ///   - store: The store that the work writes to.
    /// - Throws: `persistentStoreOperation` (134070) if the block has locked rows of that store.
    func refuse(_ work: @autoclosure () -> String, in store: OpenStore) throws

    /// Notes that a save of the context was committed outside the transaction of the block.
    func didSaveOutside()
}
