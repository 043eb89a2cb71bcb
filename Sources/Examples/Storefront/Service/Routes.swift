import CoreData
import CoreDataJobs
import Foundation
import StrataLocks

/// The actions for requests.
package struct Routes: Sendable {
    let shop: Shop
    let orders: Feed
    let queues: Feed
    let metrics: PrometheusInstrument
    /// Whether the server is about to end, so that no more requests should be sent to it.
    let isStopping: @Sendable () -> Bool

    package init(
        _ shop: Shop,
        orders: Feed,
        queues: Feed,
        metrics: PrometheusInstrument,
        isStopping: @escaping @Sendable () -> Bool
    ) {
        (self.shop, self.orders, self.queues) = (shop, orders, queues)
        (self.metrics, self.isStopping) = (metrics, isStopping)
    }

    /// Answers a request; `nil` if the answer was streamed.
    package func answer(_ request: HTTPRequest, _ connection: HTTPConnection) -> HTTPResponse? {
        do {
            return try response(to: request, connection)
        } catch let error as HTTPError {
            return problem(error.status, error.text)
        } catch is DecodingError {
            return problem(400, "the body is not the JSON that is expected")
        } catch {
            // This converts the cause of the error to an HTTP status.
            switch CoreDataFailure(error) {
            case .request, .data: return problem(400, error.localizedDescription)
            case .conflict: return problem(409, "others were faster, again and again")
            case .deadline, .environment: return problem(503, error.localizedDescription)
            case nil: return problem(500, error.localizedDescription)
            }
        }
    }

    private func problem(_ status: Int, _ text: String) -> HTTPResponse {
        (try? HTTPResponse(status: status, json: Problem(error: text))) ?? HTTPResponse(status: status)
    }

    private func response(to request: HTTPRequest, _ connection: HTTPConnection) throws -> HTTPResponse? {
        let path = request.path
        switch (request.method, path.first, path.count) {
        case ("GET", nil, 0):
            return HTTPResponse(type: "text/html; charset=utf-8", body: Data(Page.html.utf8))
        case ("GET", "products", 1):
            return try HTTPResponse(json: try shop.products())
        case ("POST", "products", 1):
            try shop.deliver(try request.json(ProductMessage.self))
            return HTTPResponse(status: 201)
        case ("GET", "products", 2):
            guard let product = try shop.product(path[1]) else { throw HTTPError(404, "no product \(path[1])") }
            return try HTTPResponse(json: product)
        case ("GET", "products", 3) where path[2] == "image":
            guard let image = try shop.image(of: path[1]) else { throw HTTPError(404, "no image of \(path[1])") }
            return HTTPResponse(type: "application/octet-stream", body: image)
        case ("PUT", "products", 3) where path[2] == "image":
            try shop.setImage(request.body, of: path[1])
            return HTTPResponse(status: 204)
        case ("POST", "import", 1):
            try importProducts(try request.json([ProductMessage].self), connection)
            return nil
        case ("POST", "orders", 1):
            return try HTTPResponse(status: 201, json: try shop.place(try request.json(OrderRequest.self)))
        case ("GET", "orders", 2):
            guard let number = UUID(uuidString: path[1]), let order = try shop.order(number) else {
                throw HTTPError(404, "no order \(path[1])")
            }
            return try HTTPResponse(json: order)
        case ("GET", "counts", 1):
            return try HTTPResponse(json: try shop.counts())
        case ("GET", "feed", 1):
            try follow(orders, connection)
            return nil
        case ("GET", "queues", 1):
            let page = QueueBoard.html(try shop.queues())
            return HTTPResponse(type: "text/html; charset=utf-8", body: Data(page.utf8))
        case ("GET", "queues", 2) where path[1] == "feed":
            try follow(queues, connection)
            return nil
        case ("GET", "metrics", 1):
            let text = metrics.text(shop.container.persistentStoreCoordinator.statistics())
            let jobs = try shop.jobStatistics().prometheusText
            return HTTPResponse(type: PrometheusInstrument.contentType, body: Data((text + jobs).utf8))
        case ("GET", "health", 1):
            return try health()
        default:
            throw HTTPError(404, "no such resource")
        }
    }

    // MARK: - Answers that take long

    private func health() throws -> HTTPResponse {
        if isStopping() { return problem(503, "stopping") }
        let coordinator = shop.container.persistentStoreCoordinator
        let checks = try wait { try await coordinator.check(within: .seconds(1)) }
        return try HTTPResponse(json: checks.map(\.name))
    }

    /// Inserts products, and streams a line for each step of the progress.
    ///
    /// If the client disconnects, the import is cancelled.
    private func importProducts(_ messages: [ProductMessage], _ connection: HTTPConnection) throws {
        try connection.startStream(type: "application/x-ndjson")
        let cancellable = CancellableImport()
        let outcome = Result {
            try wait {
                let work = Task {
                    try await shop.insert(messages) { progress in
                        let line = "{\"prepared\":\(progress.preparedRows),\"inserted\":\(progress.completedRows)}\n"
                        let hasSent = !connection.hasGone && (try? connection.send(piece: line)) != nil
                        guard !hasSent else { return }
                        cancellable.cancel()
                    }
                }
                cancellable.begin(work)
                return try await work.value
            }
        }
        switch outcome {
        case .success(let count): try connection.send(piece: "{\"done\":\(count)}\n")
        case .failure(is CancellationError): return
        case .failure(let error):
            let text = String(
                decoding: try JSONEncoder().encode(Problem(error: error.localizedDescription)),
                as: UTF8.self
            )
            try connection.send(piece: text + "\n")
        }
        try connection.endStream()
    }

    /// Streams the states of a feed as server-sent events until the client disconnects or the server stops.
    private func follow(_ feed: Feed, _ connection: HTTPConnection) throws {
        try connection.startStream(type: "text/event-stream")
        try connection.send(piece: "retry: 1000\n\n")
        let stream = feed.listen()
        try wait {
            for await text in stream {
                if connection.hasGone { return }
                try connection.send(piece: "data: \(text)\n\n")
            }
        }
        try connection.endStream()
    }

    /// Waits for an asynchronous operation, on this connection's own thread.
    private func wait<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) throws -> T {
        let (outcome, done) = (Outcome<T>(), DispatchSemaphore(value: 0))
        Task {
            do { outcome.set(.success(try await body())) } catch { outcome.set(.failure(error)) }
            done.signal()
        }
        done.wait()
        return try outcome.get()
    }
}

/// Passes the result of a task to the thread that waits for it.
private final class Outcome<T: Sendable>: Sendable {
    private let result = Locked<Result<T, any Error>?>(nil)

    func set(_ new: Result<T, any Error>) { result.withLock { $0 = new } }

    func get() throws -> T {
        guard let result = result.withLock({ $0 }) else { throw CancellationError() }
        return try result.get()
    }
}

/// An import that can be cancelled from inside, even before its task is known.
private final class CancellableImport: Sendable {
    private struct State {
        var task: Task<Int, any Error>?
        var isCancelled = false
    }

    private let state = Locked(State())

    func begin(_ task: Task<Int, any Error>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
