import Foundation

extension NSPersistentStoreCoordinator {
    /// Executes a request in the stores, and ignores the pending changes of the context.
    ///
    /// Call it inside the scope of the context, because the objects of the answer belong to that context. Contexts call
    /// the stores themselves: if pending changes shall count, then use their `fetch(_:)`, `count(for:)`, `execute(_:)`
    /// and `save()`.
    ///
    /// - Parameters:
    ///   - request: A fetch request, or another request that `NSManagedObjectContext.execute(_:)` takes.
    ///   - context: A context of this coordinator.
    /// - Returns: For a fetch an array, with elements of its result type; otherwise the result object.
    /// - Throws: `persistentStoreOperation` (134070) for a context of another coordinator, and for a save, because only
    ///   contexts can save; errors of the fetch.
    @discardableResult
    public func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext) throws -> Any {
        guard context.persistentStoreCoordinator === self else {
            throw FetchPlanner.refused("\(context.describedName) belongs to another coordinator than the one asked.")
        }
        guard let fetch = request as? any AnyFetchRequest else { return try context.execute(request) }
        var specification = fetch.specification
        specification.includesPendingChanges = false
        let asked = NSFetchRequest<NSFetchRequestResult>(specification: specification)
        asked.affectedStores = request.affectedStores
        return try context.fetch(asked)
    }
}
