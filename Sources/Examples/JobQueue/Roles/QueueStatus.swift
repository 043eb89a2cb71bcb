import CoreData
import CoreDataJobs

/// The state of the queue at one moment.
package struct QueueStatus: Sendable, Equatable {
    /// The number of jobs in each state.
    package var jobs: [JobState: Int] = [:]
    /// The number of receipts of each worker.
    package var receipts: [String: Int] = [:]

    package init() {}

    /// Counts in the store.
    ///
    /// It must be called on the context's queue.
    package init(_ context: NSManagedObjectContext) throws {
        for (state, count) in try Self.counts(of: "QueuedJob", by: "state", context) {
            if let state = JobState(rawValue: state) { jobs[state] = count }
        }
        receipts = try Self.counts(of: "Receipt", by: "worker", context)
    }

    /// The number of jobs that are not finished.
    package var open: Int { jobs.filter { !$0.key.isFinished }.values.reduce(0, +) }

    private static func counts(of entity: String, by key: String, _ context: NSManagedObjectContext) throws
        -> [String: Int]
    {
        let count = NSExpressionDescription()
        count.name = "count"
        count.expression = NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: key)])
        count.expressionResultType = .integer64AttributeType
        let request = NSFetchRequest<[String: Any]>(entityName: entity)
        request.resultType = .dictionaryResultType
        request.propertiesToGroupBy = [key]
        request.propertiesToFetch = [key, count]
        return try context.fetch(request).reduce(into: [:]) { counts, group in
            if let value = group[key] as? String { counts[value] = (group["count"] as? NSNumber)?.intValue }
        }
    }
}
