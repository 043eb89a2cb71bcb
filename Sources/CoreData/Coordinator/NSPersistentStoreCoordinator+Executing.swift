import Foundation

extension NSPersistentStoreCoordinator {
    /// Asks the stores what a request says, whatever changes are pending in the context.
    ///
    /// Must be called inside the scope of the context, which takes up the objects of the answer. Contexts do all this
    /// themselves: use their `fetch(_:)`, `count(for:)`, `execute(_:)` and `save()` where pending changes shall count.
    ///
    /// - Parameters:
    ///   - request: A fetch request, or what `NSManagedObjectContext.execute(_:)` takes.
    ///   - context: A context of this coordinator.
    /// - Returns: For a fetch an array, of what its result type says; else the result object.
    /// - Throws: `persistentStoreOperation` (134070) for a context of another coordinator, and for a save, which only a
    ///   context can make; errors of the fetch.
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
