import CoreData
import CoreDataJobs
import Expectations
import Foundation
import Testing

@testable import Storefront

/// A server with a separate store and port.
private final class Running: Sendable {
    let folder: URL
    let server: StorefrontServer

    /// - Parameter database: The URL of the database; `nil` for a file.
    /// - Throws: Errors of opening the store.
    init(_ database: URL? = nil) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        server = try StorefrontServer(storeURL: database ?? folder.appendingPathComponent("shop.sqlite"), port: 0)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func ask(_ method: String, _ path: String, _ body: Data = Data()) async throws -> (status: Int, body: Data) {
        let port = server.port
        return try await blocking { try HTTPClient(port: port).ask(method, path, body: body) }
    }

    func deliver(_ sku: String, _ stock: Int64, price: Int64 = 250) async throws {
        let product = ProductMessage(sku: sku, name: sku.uppercased(), priceCents: price, stock: stock)
        try await expectEqual(ask("POST", "/products", try JSONEncoder().encode(product)).status, 201)
    }

    func place(_ order: OrderRequest) async throws -> (status: Int, body: Data) {
        try await ask("POST", "/orders", try JSONEncoder().encode(order))
    }
}

/// Runs blocking code on a separate thread, since the server needs the threads that run tasks.
private func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

@Suite("The storefront, over HTTP")
struct StorefrontTests {
    @Test func `an order takes from the stock, and shows its total and payment`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10, price: 250)
        try await running.deliver("tea", 5, price: 300)
        let order = OrderRequest(customer: "Ada", lines: [.init(sku: "tea", quantity: 4)], card: "4242")
        let answer = try await running.place(order)
        expectEqual(answer.status, 201)
        let placed = try JSONDecoder().decode(OrderMessage.self, from: answer.body)
        expect(placed.totalCents == 1200 && placed.payment == "card" && placed.state == "placed")
        let read = try await running.ask("GET", "/orders/\(order.number)")
        try expectEqual(JSONDecoder().decode(OrderMessage.self, from: read.body).totalCents, 1200)
        let product = try await running.ask("GET", "/products/tea")
        try expectEqual(JSONDecoder().decode(ProductMessage.self, from: product.body).stock, 11)
        try await running.server.stop()
    }

    @Test func `an order that is sent again is placed once`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        let order = OrderRequest(customer: "Ada", lines: [.init(sku: "tea", quantity: 3)])
        for _ in 1...2 { try await expectEqual(running.place(order).status, 201) }
        let product = try await running.ask("GET", "/products/tea")
        try expectEqual(JSONDecoder().decode(ProductMessage.self, from: product.body).stock, 7)
        try await running.server.stop()
    }

    @Test func `requests that make no sense, or that cannot be met, are refused with their status`() async throws {
        let running = try Running()
        try await running.deliver("tea", 1)
        try await expect(
            running.place(OrderRequest(customer: "A", lines: [.init(sku: "tea", quantity: 2)])).status == 409
        )
        try await expect(
            running.place(OrderRequest(customer: "A", lines: [.init(sku: "gin", quantity: 1)])).status == 404
        )
        try await expectEqual(running.place(OrderRequest(customer: "A", lines: [])).status, 400)
        try await expectEqual(running.ask("POST", "/orders", Data("{".utf8)).status, 400)
        try await expectEqual(running.ask("GET", "/products/gin").status, 404)
        try await expectEqual(running.ask("GET", "/orders/7").status, 404)
        try await expectEqual(running.ask("DELETE", "/").status, 404)
        try await running.server.stop()
    }

    @Test func `an image is kept as external data`() async throws {
        let running = try Running()
        try await running.deliver("tea", 1)
        let image = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        try await expectEqual(running.ask("GET", "/products/tea/image").status, 404)
        try await expectEqual(running.ask("PUT", "/products/tea/image", image).status, 204)
        let answer = try await running.ask("GET", "/products/tea/image")
        expect(answer.status == 200 && answer.body == image)
        try await expectEqual(running.ask("PUT", "/products/gin/image", image).status, 404)
        try await running.server.stop()
    }

    @Test func `an import reports its progress, and leaves out what is there`() async throws {
        let running = try Running()
        try await running.deliver("sku-7", 1)
        let products = (1...3000).map { ProductMessage(sku: "sku-\($0)", name: "n", priceCents: 1, stock: 2) }
        let answer = try await running.ask("POST", "/import", try JSONEncoder().encode(products))
        let text = String(decoding: answer.body, as: UTF8.self)
        expect(answer.status == 200 && text.contains("\"prepared\""))
        expect(text.contains("{\"done\":2999}"), "\(text.suffix(300))")
        let product = try await running.ask("GET", "/products/sku-7")
        try expectEqual(JSONDecoder().decode(ProductMessage.self, from: product.body).stock, 1)
        try await running.server.stop()
    }

    @Test func `orders of many at once leave a stock that adds up, and a worker ships each once`() async throws {
        let running = try Running()
        for number in 1...3 { try await running.deliver("sku-\(number)", 100_000) }
        let load = Load(port: running.server.port, skus: ["sku-1", "sku-2", "sku-3"])
        let packer = Packer.worker(on: running.server.container, name: "worker")
        async let packing: Void = packer.run(stoppingOn: [])
        await load.run(connections: 4, seconds: 1)
        expect(load.seen.failures.isEmpty && !load.seen.confirmed.isEmpty)
        await packer.stop()
        try await packing
        try await Packer.worker(on: running.server.container, name: "last").drain()
        let audit = try Audit(running.server.container, confirmed: load.seen.confirmed, isDone: true)
        expect(audit.faults == [] && audit.orders == load.seen.confirmed.count)
        try await running.server.stop()
    }

    @Test func `the audit finds what does not add up`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        try await expect(
            running.place(OrderRequest(customer: "A", lines: [.init(sku: "tea", quantity: 2)])).status == 201
        )
        let context = running.server.container.newBackgroundContext()
        try context.performAndWait { () throws in
            try context.fetch(NSFetchRequest<Product>(entityName: "Product")).first?.stock += 1
            let order = try context.fetch(NSFetchRequest<Order>(entityName: "Order")).first
            order?.payment?.amountCents += 1
            try context.save()
        }
        let audit = try Audit(running.server.container, confirmed: [UUID()], isDone: true)
        expectEqual(audit.faults.count, 4)
        try await running.server.stop()
    }

    @Test func `the feed sends the latest orders, and what changes`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        let port = running.server.port
        let (placed, place) = AsyncStream<Void>.makeStream()
        let text = Task {
            try await blocking {
                let follower = HTTPClient(port: port)
                try follower.send("GET", "/feed")
                var text = ""
                while !text.contains("Grace"), let piece = try follower.piece() {
                    text += piece
                    place.yield()
                }
                return text
            }
        }
        // The first order shows that the stream has begun.
        for await _ in placed { break }
        let order = OrderRequest(customer: "Grace", lines: [.init(sku: "tea", quantity: 1)])
        try await expectEqual(running.place(order).status, 201)
        let told = try await text.value
        expect(told.contains("text/event-stream") && told.contains("data: [{"))
        try await running.server.stop()
    }

    @Test func `the page of queues shows a job that waits, runs and is done, at once and live`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        func page() async throws -> String {
            let answer = try await running.ask("GET", "/queues")
            expectEqual(answer.status, 200)
            return String(decoding: answer.body, as: UTF8.self)
        }
        func row(_ numbers: Int...) -> String {
            "<tr><td>packing</td>" + numbers.map { "<td>\($0)</td>" }.joined() + "</tr>"
        }
        let port = running.server.port
        let (states, state) = AsyncStream<String>.makeStream()
        let following = Task {
            try await blocking {
                let follower = HTTPClient(port: port)
                try follower.send("GET", "/queues/feed")
                while let piece = try follower.piece() { state.yield(piece) }
                state.finish()
            }
        }
        var seen = states.makeAsyncIterator()
        /// Waits until the feed sends these counts.
        func next(_ waiting: Int, _ ran: Int, _ done: Int) async throws {
            let message = QueueCounts(queue: "packing", waiting: waiting, running: ran, done: done)
            while let text = await seen.next() {
                for line in text.split(whereSeparator: \.isNewline) where line.hasPrefix("data: ") {
                    let counts = try JSONDecoder().decode([QueueCounts].self, from: Data(line.dropFirst(6).utf8))
                    if counts == [message] { return }
                }
            }
            expect(false, "the feed has ended before \(message)")
        }
        try await expect(!page().contains("<td>packing"))
        // A refused order enqueues nothing.
        let refused = OrderRequest(customer: "Ada", lines: [.init(sku: "tea", quantity: 11)])
        try await expectEqual(running.place(refused).status, 409)
        let order = OrderRequest(customer: "Ada", lines: [.init(sku: "tea", quantity: 1)])
        for _ in 1...2 { try await expectEqual(running.place(order).status, 201) }
        try await next(1, 0, 0)
        try await expect(page().contains(row(1, 0, 0, 0)))
        let gauges = String(decoding: try await running.ask("GET", "/metrics").body, as: UTF8.self)
        expect(gauges.contains("coredata_jobs{queue=\"packing\",state=\"ready\"} 1\n"), "\(gauges)")

        let worker = Packer.worker(on: running.server.container, name: "worker")
        let (goes, go) = AsyncStream<Void>.makeStream()
        worker.handle(Pack.self) { run in
            for await _ in goes { break }
            try await Packer.ship(run, as: "worker")
        }
        async let draining = worker.drain()
        try await next(0, 1, 0)
        try await expect(page().contains(row(0, 1, 0, 0)))
        go.yield()
        try await expectEqual(draining.done, 1)
        try await next(0, 0, 1)
        try await expect(page().contains(row(0, 0, 1, 0)))
        // An order that is not there cannot be shipped.
        let context = running.server.container.newBackgroundContext()
        try await context.perform {
            try context.enqueue(Pack(order: UUID())) { $0.queue = "<other>" }
            try context.save()
        }
        let other = JobWorker(running.server.container, queues: ["<other>": 1], name: "other")
        other.handle(Pack.self) { run in try await Packer.ship(run, as: "other") }
        try await expectEqual(other.drain().cancelled, 1)
        let last = try await page()
        expect(last.contains("<tr><td>&lt;other></td><td>0</td><td>0</td><td>0</td><td>1</td></tr>"), "\(last)")
        let audit = try Audit(running.server.container, confirmed: [order.number], isDone: true)
        expectEqual(audit.faults, [])
        try await running.server.stop()
        try await following.value
    }

    @Test func `a server that has just started reads nothing one by one`() async throws {
        let first = try Running()
        for sku in ["tea", "gin"] { try await first.deliver(sku, 100) }
        let orders = (0..<12).map { number in
            let lines = ["tea", "gin"].map { OrderRequest.Line(sku: $0, quantity: 1) }
            return OrderRequest(customer: "customer \(number)", lines: lines)
        }
        for order in orders { try await expectEqual(first.place(order).status, 201) }
        try await first.server.stop()

        let running = try Running(first.folder.appendingPathComponent("shop.sqlite"))
        let port = running.server.port
        let told = try await blocking {
            let follower = HTTPClient(port: port)
            try follower.send("GET", "/feed")
            var text = ""
            while !text.contains("customer 0"), let piece = try follower.piece() { text += piece }
            return text
        }
        expect(told.contains("gin") && told.contains("customer 11"))
        for path in ["/products", "/queues", "/counts", "/orders/\(orders[0].number)"] {
            try await expectEqual(running.ask("GET", path).status, 200)
        }
        try await expectEqual(Packer.worker(on: running.server.container, name: "worker").drain().done, 12)
        let metrics = running.server.metrics
        expect(metrics.count(of: .fetch) > 0 && metrics.count(of: .repeatedReads) == 0)
        try await running.server.stop()
    }

    @Test func `health and metrics answer, and stopping refuses what is new and empties the log`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        try await expectEqual(running.ask("GET", "/health").status, 200)
        let metrics = String(decoding: try await running.ask("GET", "/metrics").body, as: UTF8.self)
        expect(
            metrics.contains("coredata_operation_seconds_count{kind=\"save\"}") && metrics.contains("coredata_contexts")
        )
        try await running.server.stop()
        await expectThrows(HTTPError.self) { try await running.ask("GET", "/health") }
        expect(!FileManager.default.fileExists(atPath: running.folder.path + "/shop.sqlite-wal"))
    }

    /// The database of `make test-postgresql`.
    static let database = ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"]

    @Test(.enabled(if: database != nil, "There is no server of PostgreSQL"))
    func `the shop keeps its objects in PostgreSQL as well`() async throws {
        let schema = "shop_" + UUID().uuidString.prefix(8).lowercased()
        let url = try require(Self.database.flatMap { URL(string: "\($0)&schema=\(schema)") })
        let running = try Running(url)
        try await running.deliver("tea", 100_000)
        try await running.deliver("gin", 100_000)
        let load = Load(port: running.server.port, skus: ["tea", "gin"])
        let packer = Packer.worker(on: running.server.container, name: "worker")
        async let packing: Void = packer.run(stoppingOn: [])
        await load.run(connections: 4, seconds: 1)
        let figures = load.seen
        expect(figures.failures.isEmpty && !figures.confirmed.isEmpty)
        await packer.stop()
        try await packing
        try await Packer.worker(on: running.server.container, name: "last").drain()
        let audit = try Audit(running.server.container, confirmed: figures.confirmed, isDone: true)
        expect(audit.faults.isEmpty, "\(audit.faults)")
        try await running.server.stop()
        try StorefrontStore.remove(at: url)
    }

    /// Debian's package `chromium` brings the browser.
    ///
    /// Without it no test can open the page.
    static let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// Opens a page in a browser.
    ///
    /// The browser prints the page once nothing is loading any more, so the streams of the server have to end first.
    ///
    /// - Returns: The task that reads the contents of the page.
    private func open(_ path: String, of running: Running) throws -> Task<String, any Error> {
        let browser = Process()
        let output = Pipe()
        browser.executableURL = URL(fileURLWithPath: try require(Self.chromium))
        browser.arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--user-data-dir=\(running.folder.path)/browser", "--virtual-time-budget=3000", "--dump-dom",
            "http://127.0.0.1:\(running.server.port)\(path)",
        ]
        browser.standardOutput = output
        browser.standardError = FileHandle.nullDevice
        try browser.run()
        return Task {
            try await blocking {
                String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            }
        }
    }

    @Test(.enabled(if: chromium != nil, "Chromium is not installed"))
    func `the page of queues shows in a browser what jobs do while it is open`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        let order = OrderRequest(customer: "Grace", lines: [.init(sku: "tea", quantity: 2)])
        let reading = try open("/queues", of: running)
        try await until { running.server.queues.figures.listeners > 0 }
        // The page was made before the first job, so all that it shows of jobs has come through the feed.
        try await expectEqual(running.place(order).status, 201)
        try await until { running.server.queues.figures.latest.contains("\"waiting\":1") }
        try await expectEqual(Packer.worker(on: running.server.container, name: "worker").drain().done, 1)
        try await until { running.server.queues.figures.latest.contains("\"done\":1") }
        try await running.server.stop()
        let page = try await reading.value
        expect(page.contains("<td>packing</td><td>0</td><td>0</td><td>1</td><td>0</td>"), "\(page)")
    }

    @Test(.enabled(if: chromium != nil, "Chromium is not installed"))
    func `the page shows the feed in a browser`() async throws {
        let running = try Running()
        try await running.deliver("tea", 10)
        try await expect(
            running.place(OrderRequest(customer: "Grace", lines: [.init(sku: "tea", quantity: 2)])).status
                == 201
        )
        let reading = try open("/", of: running)
        // An order that comes while the page is open reaches it through the feed alone.
        try await until { running.server.orders.figures.listeners > 0 }
        try await expect(
            running.place(OrderRequest(customer: "Ada", lines: [.init(sku: "tea", quantity: 1)])).status
                == 201
        )
        try await until { running.server.orders.figures.latest.contains("Ada") }
        try await running.server.stop()
        let page = try await reading.value
        expect(page.contains("<td>Grace</td><td>placed</td><td>invoice</td><td>5.00</td>"), "\(page)")
        expect(page.contains("<td>Ada</td><td>placed</td><td>invoice</td><td>2.50</td>"), "\(page)")
    }

    @Test func `what the feed sends last reaches all listeners, though it ends then`() async throws {
        for _ in 0..<20 {
            let feed = Feed()
            let streams = (0..<200).map { _ in feed.listen() }
            async let told: Void = blocking { feed.tell("last") }
            while feed.figures.latest.isEmpty { await Task.yield() }
            feed.end()
            try await told
            for stream in streams {
                var texts: [String] = []
                for await text in stream { texts.append(text) }
                expectEqual(texts, ["last"])
            }
        }
    }

    @Test func `a server that stops sends earlier answers to clients that are still there`() throws {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let connection = HTTPConnection(ends[0])
        expect(!connection.hasGone)
        connection.shutDown()
        expect(!connection.hasGone)
        try connection.startStream(type: "text/event-stream")
        try connection.send(piece: "last")
        var bytes = [UInt8](repeating: 0, count: 1000)
        let count = read(ends[1], &bytes, bytes.count)
        expect(String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self).contains("text/event-stream"))
        close(ends[1])
        expectThrows((any Error).self) { for _ in 0..<2 { try connection.send(piece: "more") } }
    }

    @Test func `a client that closes its connection has gone`() throws {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let connection = HTTPConnection(ends[0])
        close(ends[1])
        expect(connection.hasGone)
    }

    /// Waits for the work of another thread or process.
    ///
    /// The limit is some minutes, so that only a hanging test fails.
    private func until(_ isTrue: () -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(600)
        while !isTrue() {
            try require(.now < deadline)
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
