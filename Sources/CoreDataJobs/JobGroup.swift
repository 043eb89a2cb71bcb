import CoreData

/// Several jobs of one type that a handler does together, with one save.
///
/// ```swift
/// struct Visit: Job { var city: String }
/// let worker = JobWorker(container, queues: ["default": 50])
/// worker.handle(Visit.self, together: 50) { group in
///     print(group.jobs.map(\.city))
/// }
/// ```
///
/// The task of the handler is cancelled if one of the jobs is cancelled, or for the reasons of a ``JobRun``.
public final class JobGroup<J: Job>: JobEffects {
    /// The values of the jobs, in the order of their queue; at least one.
    public let jobs: [J]
    /// The IDs of the jobs' objects, in the same order.
    public let ids: [NSManagedObjectID]

    /// A context for the effects of the jobs, on the worker's stores.
    ///
    /// When the handler returns, the changes of this context and the ends of all jobs are one save.
    public let context: NSManagedObjectContext

    init(_ type: J.Type, _ claims: [JobClaim], _ context: NSManagedObjectContext) throws {
        jobs = try claims.map { try JobCoding.decode(type, $0.payload) }
        ids = claims.map(\.id)
        self.context = context
    }
}
