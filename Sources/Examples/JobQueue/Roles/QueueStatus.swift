import CoreData

/// The state of the queue at one moment.
package struct QueueStatus: Sendable, Equatable {
    package var waiting = 0
    package var claimed = 0
    package var done = 0
    /// The number of receipts, by the process that has left them.
    package var doneByWorker: [String: Int] = [:]

    package init() {}

    /// Counts in the store.
    ///
    /// It must be called on the context's queue.
    package init(_ context: NSManagedObjectContext) throws {
        for (values, count) in try Self.groups("Job", by: ["isDone", "claimedBy"], counting: "number", context) {
            if (values["isDone"] as? NSNumber)?.boolValue == true {
                done += count
            } else if values["claimedBy"] is String {
                claimed += count
            } else {
                waiting += count
            }
        }
        for (values, count) in try Self.groups("Receipt", by: ["worker"], counting: "worker", context) {
            guard let worker = values["worker"] as? String else { continue }
            let process = worker.split(separator: ".").first.map(String.init) ?? worker
            doneByWorker[process, default: 0] += count
        }
    }

    private static func groups(
        _ entity: String,
        by keys: [String],
        counting counted: String,
        _ context: NSManagedObjectContext
    ) throws -> [(values: [String: Any], count: Int)] {
        let count = NSExpressionDescription()
        count.name = "count"
        count.expression = NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: counted)])
        count.expressionResultType = .integer64AttributeType
        let request = NSFetchRequest<[String: Any]>(entityName: entity)
        request.resultType = .dictionaryResultType
        request.propertiesToGroupBy = keys
        request.propertiesToFetch = keys + [count]
        return try context.fetch(request).map { ($0, ($0["count"] as? NSNumber)?.intValue ?? 0) }
    }
}
