import Foundation

/// A request that ``NSManagedObjectContext/execute(_:)`` carries out.
package protocol ExecutableRequest: NSPersistentStoreRequest {
    /// Carries the request out, inside the context's scope.
    func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult
}

extension NSManagedObjectContext {
    /// Carries out an asynchronous fetch, a batch request or a history request.
    ///
    /// An asynchronous fetch returns its result object at once. The object is filled later, and has an error as its
    /// `operationError`. A batch insert, update or delete has been committed when this returns, with one transaction in
    /// each store. Objects of this context and of others stay as they were, unless the contexts follow
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
    /// - Throws: `persistentStoreOperation` (134070) for a fetch or save request (use ``fetch(_:)`` or ``save()``), for
    ///   a store that is read-only, and for operations that a batch cannot do, with a text that names the property. A
    ///   batch also throws `managedObjectConstraintMerge` (133021) with the conflicting rows,
    ///   `managedObjectReferentialIntegrity` (133000) for a relationship to a row that does not exist, and
    ///   `managedObjectExternalRelationship` (133010) for one into another store. It throws
    ///   `validationRelationshipDeniedDelete` (1600) and `validationMissingMandatoryProperty` (1570) for a deletion
    ///   that delete rules forbid, `persistentStoreUnsupportedRequestType` (134091) for a store that takes no batches,
    ///   and errors of the store (134000–134999). A store that refuses a batch keeps nothing of it. Changes made in
    ///   other stores before that are kept. The error names those stores under `NSBatchChangedStoresErrorKey`. If the
    ///   rows were listed, the error also has their IDs, in the form that ``mergeChanges(fromRemoteContextSave:into:)``
    ///   takes.
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
    package func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
        NSAsynchronousFetchResult<ResultType>.start(self, in: context)
    }
}
