import CoreData

/// Runs a server and a worker as separate processes, orders, kills the worker once, and checks the result.
///
/// The orders come on several connections.
struct Demo {
    private let options: Options

    init(_ options: Options) { self.options = options }

    /// - Returns: Whether everything is consistent.
    func run() async throws -> Bool {
        try StorefrontStore.remove(at: options.storeURL)
        let portFile = options.store + ".port"
        try? FileManager.default.removeItem(atPath: portFile)
        let server = try Child(["serve"] + options.storeArguments + ["--port", "0", "--port-file", portFile])
        defer { server.kill() }
        let port = try await port(in: portFile, server)
        var worker = try Child(["work"] + options.storeArguments + ["--name", "worker 1"])
        defer { worker.kill() }

        let client = HTTPClient(port: port)
        let skus = (1...40).map { "sku-\($0)" }
        for (number, sku) in skus.enumerated() {
            let product = ProductMessage(
                sku: sku,
                name: "Product \(number)",
                priceCents: Int64(199 + number),
                stock: 100_000
            )
            _ = try client.ask("POST", "/products", body: try JSONEncoder().encode(product))
        }
        print(
            "The server answers on http://127.0.0.1:\(port)/, and \(options.connections) connections order for \(options.seconds) s."
        )
        let load = Load(port: port, skus: skus)
        let begin = ContinuousClock.now
        async let loaded: Void = load.run(connections: options.connections, seconds: options.seconds)
        try await Task.sleep(for: .seconds(options.seconds / 2))
        worker.kill()
        let killed = LatencyPicture.Mark(seconds: (.now - begin) / .seconds(1), text: "worker 1 killed")
        print("Worker 1 was killed.")
        worker = try Child(["work"] + options.storeArguments + ["--name", "worker 2"])
        await loaded

        // The orders that the worker has left waiting are shipped now. The limits below are for processes that hang;
        // even a slow machine is much faster.
        let deadline = ContinuousClock.now + .seconds(600)
        var counts = try self.counts(client)
        while counts.placed > 0, .now < deadline {
            try await Task.sleep(for: .milliseconds(100))
            counts = try self.counts(client)
        }
        let memory = (server.peakMemory ?? 0, worker.peakMemory ?? 0)
        // The check may take a second. A machine that is busy with other work sometimes takes longer.
        var health = try client.ask("GET", "/health").status
        while health != 200, .now < deadline {
            try await Task.sleep(for: .milliseconds(500))
            health = try client.ask("GET", "/health").status
        }
        let metrics = String(decoding: try client.ask("GET", "/metrics").body, as: UTF8.self)
        client.disconnect()
        let exits = (try await server.endedOnRequest(within: 300), try await worker.endedOnRequest(within: 300))

        let container = try StorefrontStore.open(at: options.storeURL)
        let audit = try Audit(container, confirmed: load.seen.confirmed, isDone: true)
        try await container.close()
        let picture = LatencyPicture(
            "Latency of \(load.seen.requests) answers on \(options.connections) connections",
            answers: load.seen.answers,
            seconds: options.seconds,
            marks: [killed]
        )
        try Data(picture.svg.utf8).write(to: options.pictureURL, options: .atomic)
        return report(
            load.seen,
            audit: audit,
            memory: memory,
            metrics: metrics,
            ends: [health == 200, exits.0 == 0, exits.1 == 0]
        )
    }

    private func counts(_ client: HTTPClient) throws -> OrderCounts {
        try JSONDecoder().decode(OrderCounts.self, from: try client.ask("GET", "/counts").body)
    }

    private func port(in file: String, _ server: Child) async throws -> Int {
        let deadline = ContinuousClock.now + .seconds(300)
        while .now < deadline {
            let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            if text.hasSuffix("\n"), let port = Int(text.dropLast()) { return port }
            guard server.isRunning else { break }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw HTTPError(500, "the server does not start")
    }

    private func report(
        _ seen: Load.Figures,
        audit: Audit,
        memory: (server: Int, worker: Int),
        metrics: String,
        ends: [Bool]
    ) -> Bool {
        func figure(_ value: Double) -> String { String(format: "%.1f", value) }
        func metric(_ name: String) -> String {
            metrics.split(separator: "\n").first { $0.hasPrefix(name + " ") }?.split(separator: " ").last.map(
                String.init
            ) ?? "0"
        }
        print("Throughput:  \(figure(Double(seen.requests) / options.seconds)) requests/s")
        print("Latency:     p50 \(figure(seen.latency(0.5))) ms, p99 \(figure(seen.latency(0.99))) ms")
        print("             \(options.pictureURL.absoluteString) shows it over time")
        print("Memory:      server \(memory.server / 1024) MiB, worker \(memory.worker / 1024) MiB at most")
        let conflicts = metric("coredata_operation_seconds_count{kind=\"conflict\"}")
        let retries = metric("coredata_operation_seconds_count{kind=\"retry\"}")
        print("Conflicts:   \(conflicts), of which \(retries) were tried again")
        print(
            "Orders:      \(audit.orders), \(seen.confirmed.count) of them confirmed; \(seen.refused) refused for lack of stock"
        )
        var faults = audit.faults
        for (status, count) in seen.failures { faults.append("\(count) answers with status \(status)") }
        let wrong = [
            "the server is not well", "the server has not stopped in good order",
            "the worker has not stopped in good order",
        ]
        faults += zip(wrong, ends).filter { !$0.1 }.map(\.0)
        for fault in faults.prefix(20) { print("WRONG: \(fault)") }
        print(faults.isEmpty ? "Stock, totals, payments and shipments add up." : "\(faults.count) faults")
        return faults.isEmpty
    }
}
