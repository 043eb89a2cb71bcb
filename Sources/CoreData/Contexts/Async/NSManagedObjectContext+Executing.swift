import Foundation

/// A request that ``NSManagedObjectContext/execute(_:)`` carries out.
protocol ExecutableRequest: NSPersistentStoreRequest {
    /// Carries the request out, inside the context's scope.
    func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult
}

extension NSManagedObjectContext {
    /// Carries out a request that is neither a fetch to wait for nor a save: an asynchronous fetch, a batch, or a
    /// history request.
    ///
    /// An asynchronous fetch returns at once with its result object, which is filled later; its errors come as the
    /// result's `operationError`. A batch insert, update or delete has been committed when this returns, in each store
    /// in one transaction; objects of this context and of others are as before, unless they follow
    /// (``automaticallyMergesChangesFromParent``). Must be called inside the context's scope.
    ///
    /// ```swift
    /// let delete = NSBatchDeleteRequest(objectIDs: [id])
    /// delete.resultType = .resultTypeCount
    /// let result = try context.execute(delete) as? NSBatchDeleteResult
    /// ```
    ///
    /// - Parameter request: An ``NSAsynchronousFetchRequest``, ``NSBatchInsertRequest``, ``NSBatchUpdateRequest``,
    ///   ``NSBatchDeleteRequest`` or ``NSPersistentHistoryChangeRequest``.
    /// - Returns: The result that belongs to the request, such as an ``NSBatchUpdateResult`` or an
    ///   ``NSPersistentHistoryResult``.
    /// - Throws: `persistentStoreOperation` (134070) for a request that has a call of its own (use ``fetch(_:)`` for a
    ///   fetch and ``save()`` for a save), for a store that is read-only, and for what a batch cannot do, with a text
    ///   that names the property; of a batch also `managedObjectConstraintMerge` (133021) with the rows that clash,
    ///   `managedObjectReferentialIntegrity` (133000) for a relationship to a row that is gone,
    ///   `managedObjectExternalRelationship` (133010) for one into another store, `validationRelationshipDeniedDelete`
    ///   (1600) and `validationMissingMandatoryProperty` (1570) for a deletion that delete rules forbid,
    ///   `persistentStoreUnsupportedRequestType` (134091) for a store that takes no batches, and errors of the store
    ///   (134000–134999). Nothing of a batch is left in a store that refuses it. What it has changed in other stores
    ///   before stays so: the error names those under `NSBatchChangedStoresErrorKey` and, if the rows were listed, has
    ///   their IDs in the form that ``mergeChanges(fromRemoteContextSave:into:)`` takes.
    @discardableResult
    public func execute(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
        assertCurrent(#function)
        guard let request = request as? any ExecutableRequest else {
            let advice =
                switch request.requestType {
                case .fetchRequestType: "use fetch(_:) or count(for:), or wrap it in an NSAsynchronousFetchRequest"
                case .saveRequestType: "use save()"
                default: "\(type(of: request)) is not supported"
                }
            throw FetchPlanner.refused("execute(_:) does not take a \(type(of: request)): \(advice).")
        }
        return try request.execute(in: self)
    }
}

extension NSAsynchronousFetchRequest: ExecutableRequest {
    func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
        NSAsynchronousFetchResult<ResultType>.start(self, in: context)
    }
}
