import Foundation

/// A request that ``NSManagedObjectContext/execute(_:)`` carries out.
package protocol ExecutableRequest: NSPersistentStoreRequest {
    /// Carries the request out, inside the context's scope.
    func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult
}

extension NSManagedObjectContext {
    /// Does the work of ``execute(_:)``, which subclasses may override.
    final func carryOut(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
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
