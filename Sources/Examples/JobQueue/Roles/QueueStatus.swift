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
        for row in try Self.groups("Job", by: "state", context) {
            guard let raw = row["state"] as? NSNumber, let state = Job.State(rawValue: raw.int16Value) else { continue }
            let count = (row["count"] as? NSNumber)?.intValue ?? 0
            switch state {
            case .waiting: waiting = count
            case .claimed: claimed = count
            case .done: done = count
            }
        }
        for row in try Self.groups("Receipt", by: "worker", context) {
            guard let worker = row["worker"] as? String else { continue }
            let process = worker.split(separator: ".").first.map(String.init) ?? worker
            doneByWorker[process, default: 0] += (row["count"] as? NSNumber)?.intValue ?? 0
        }
    }

    private static func groups(
        _ entity: String,
        by key: String,
        _ context: NSManagedObjectContext
    ) throws -> [[String: Any]] {
        let count = NSExpressionDescription()
        count.name = "count"
        count.expression = NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: key)])
        count.expressionResultType = .integer64AttributeType
        let request = NSFetchRequest<[String: Any]>(entityName: entity)
        request.resultType = .dictionaryResultType
        request.propertiesToGroupBy = [key]
        request.propertiesToFetch = [key, count]
        return try context.fetch(request)
    }
}
