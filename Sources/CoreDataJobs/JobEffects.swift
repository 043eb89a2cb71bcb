import CoreData

/// An attempt of a job, or of several jobs together, whose effects in the store are saved with the end of the jobs.
///
/// ``JobRun`` and ``JobGroup`` are such attempts. A function that makes the effects of both takes this type:
///
/// ```swift
/// func open(_ name: String, _ effects: some JobEffects) async throws {
///     try await effects.perform { context in Venue(context: context).name = name }
/// }
/// ```
public protocol JobEffects: Sendable {
    /// A context for the effects, on the worker's stores.
    var context: NSManagedObjectContext { get }
}

extension JobEffects {
    /// Runs a block on the queue of ``context``, which is passed to it; nothing is saved.
    ///
    /// ```swift
    /// struct Rename: Job { var old: String, new: String }
    /// let worker = JobWorker(container)
    /// worker.handle(Rename.self) { run in
    ///     try await run.perform { context in
    ///         let request = NSFetchRequest<Venue>(entityName: "Venue")
    ///         request.predicate = NSPredicate(format: "name == %@", run.job.old)
    ///         for venue in try context.fetch(request) { venue.name = run.job.new }
    ///     }
    /// }
    /// ```
    ///
    /// - Parameter body: The work.
    /// - Returns: The value that the block returns.
    /// - Throws: The error that the block throws.
    public func perform<T>(
        _ body: sending @escaping (NSManagedObjectContext) throws -> sending T
    ) async throws -> sending T {
        let context = context
        return try await context.perform { try body(context) }
    }
}
