import Foundation

/// A request that ``NSManagedObjectContext/execute(_:)`` carries out.
protocol ExecutableRequest: NSPersistentStoreRequest {
    /// Carries the request out, inside the context's scope.
    func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult
}

extension NSManagedObjectContext {
    /// Carries out a request that is neither a fetch to wait for nor a save: an asynchronous fetch, or a history request.
    ///
    /// An asynchronous fetch returns at once with its result object, which is filled later; its errors come as the
    /// result's `operationError`. Must be called inside the context's scope.
    ///
    /// - Parameter request: An ``NSAsynchronousFetchRequest`` or an ``NSPersistentHistoryChangeRequest``.
    /// - Returns: The result that belongs to the request: an ``NSAsynchronousFetchResult`` or an
    ///   ``NSPersistentHistoryResult``.
    /// - Throws: `persistentStoreOperation` (134070) for a request that has a call of its own: use ``fetch(_:)`` for
    ///   a fetch and ``save()`` for a save.
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
