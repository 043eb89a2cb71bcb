import CoreData
import CoreDataJobs

/// The number of jobs of one queue, by what they do.
package struct QueueCounts: Codable, Sendable, Equatable {
    package var queue: String
    /// The jobs that wait for a worker, for their time, or for another job.
    package var waiting = 0
    package var running = 0
    package var done = 0
    /// The jobs that have failed or were cancelled.
    package var failed = 0

    /// Counts in the store, in the order of the names.
    static func all(in context: NSManagedObjectContext) throws -> [QueueCounts] {
        let count = NSExpressionDescription()
        count.name = "count"
        count.expression = NSExpression(forFunction: "count:", arguments: [NSExpression(forKeyPath: "queue")])
        count.expressionResultType = .integer64AttributeType
        let request = NSFetchRequest<[String: Any]>(entityName: "QueuedJob")
        request.resultType = .dictionaryResultType
        request.propertiesToGroupBy = ["queue", "state"]
        request.propertiesToFetch = ["queue", "state", count]
        var queues: [String: QueueCounts] = [:]
        for group in try context.fetch(request) {
            guard let name = group["queue"] as? String, let state = (group["state"] as? String).flatMap(JobState.init),
                let number = (group["count"] as? NSNumber)?.intValue
            else { continue }
            queues[name, default: QueueCounts(queue: name)][keyPath: path(of: state)] += number
        }
        return queues.values.sorted { $0.queue < $1.queue }
    }

    private static func path(of state: JobState) -> WritableKeyPath<QueueCounts, Int> {
        switch state {
        case .scheduled, .ready, .blocked: \.waiting
        case .running: \.running
        case .done: \.done
        case .failed, .cancelled: \.failed
        }
    }
}

/// The page that shows how the queues of jobs stand, and its feed.
enum QueueBoard {
    /// Sends the counts to a feed as JSON, and again whenever any process changes jobs, until the task is cancelled.
    static func follow(_ container: NSPersistentContainer, into feed: Feed) async throws {
        let context = container.newBackgroundContext()
        context.name = "queues"
        context.automaticallyMergesChangesFromParent = true
        var changes = context.changes.makeAsyncIterator()
        repeat {
            let counts = try await context.perform { try QueueCounts.all(in: context) }
            feed.tell(String(decoding: try JSONEncoder().encode(counts), as: UTF8.self))
            // A reader needs no more. The changes of this time are one message.
            try await Task.sleep(for: .milliseconds(100))
        } while await changes.next() != nil
    }

    /// The page with the counts of this moment, which its script keeps up to date.
    static func html(_ counts: [QueueCounts]) -> String {
        let rows = counts.map { counts in
            let numbers = [counts.waiting, counts.running, counts.done, counts.failed]
            return "<tr><td>\(escaped(counts.queue))</td>" + numbers.map { "<td>\($0)</td>" }.joined() + "</tr>"
        }
        return head + rows.joined(separator: "\n") + tail
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }

    private static let head = """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <title>Storefront: queues</title>
        <style>
        body { font-family: sans-serif; margin: 2rem; }
        table { border-collapse: collapse; }
        td, th { padding: 0.3rem 0.8rem; text-align: right; border-bottom: 1px solid #ccc; }
        td:first-child, th:first-child { text-align: left; }
        </style>
        </head>
        <body>
        <h1>Queues of jobs</h1>
        <p id="state">connecting</p>
        <table>
        <thead><tr><th>Queue</th><th>Waiting</th><th>Running</th><th>Done</th><th>Failed</th></tr></thead>
        <tbody id="queues">

        """

    private static let tail = """

        </tbody>
        </table>
        <p><a href="/">Latest orders</a></p>
        <script>
        const feed = new EventSource("/queues/feed");
        feed.onopen = () => { document.getElementById("state").textContent = "live"; };
        feed.onerror = () => { document.getElementById("state").textContent = "waiting for the server"; };
        feed.onmessage = (event) => {
          const body = document.getElementById("queues");
          body.replaceChildren(...JSON.parse(event.data).map((counts) => {
            const row = document.createElement("tr");
            for (const text of [counts.queue, counts.waiting, counts.running, counts.done, counts.failed]) {
              const cell = document.createElement("td");
              cell.textContent = text;
              row.append(cell);
            }
            return row;
          }));
        };
        </script>
        </body>
        </html>
        """
}
