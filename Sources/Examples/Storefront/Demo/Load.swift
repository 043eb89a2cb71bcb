import Foundation
import StrataLocks

/// Clients that place orders all the time, with the results.
package final class Load: Sendable {
    /// The results of all connections together.
    package struct Figures: Sendable {
        /// The orders that the server has confirmed.
        package var confirmed: Set<UUID> = []
        package var requests = 0
        /// The number of orders that were refused because there was too little in stock.
        package var refused = 0
        /// The number of unexpected answers, by their status.
        package var failures: [Int: Int] = [:]
        /// Each answer with its times.
        package var answers: [TimedAnswer] = []

        /// The latency, in milliseconds, that a given share of all requests did not exceed.
        package func latency(_ share: Double) -> Double { answers.map(\.milliseconds).quantile(share) }
    }

    private let port: Int
    private let skus: [String]
    private let figures = Locked(Figures())

    package init(port: Int, skus: [String]) { (self.port, self.skus) = (port, skus) }

    package var seen: Figures { figures.withLock { $0 } }

    /// Orders on some connections at once, each in a thread, for some seconds; returns after the last answer on each.
    package func run(connections: Int, seconds: Double) async {
        let begin = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for number in 1...connections {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            self.order(number, from: begin, for: .seconds(seconds))
                            continuation.resume()
                        }
                    }
                }
            }
        }
    }

    private func order(_ number: Int, from begin: ContinuousClock.Instant, for time: Duration) {
        let client = HTTPClient(port: port)
        var mine = Figures()
        var generator = SystemRandomNumberGenerator()
        while .now < begin + time {
            let count = Int.random(in: 1...3, using: &generator)
            let lines = skus.shuffled(using: &generator).prefix(count).map {
                OrderRequest.Line(sku: $0, quantity: Int64.random(in: 1...3))
            }
            let card = Bool.random() ? "4242" : nil
            let order = OrderRequest(customer: "customer \(number)", lines: Array(lines), card: card)
            let start = ContinuousClock.now
            let status: Int
            do {
                status = try client.ask("POST", "/orders", body: try JSONEncoder().encode(order)).status
            } catch {
                status = (error as? HTTPError)?.status ?? -1
            }
            let duration = ContinuousClock.now - start
            mine.requests += 1
            mine.answers.append(
                TimedAnswer(begin: (start - begin) / .seconds(1), milliseconds: duration / .milliseconds(1))
            )
            switch status {
            case 201: mine.confirmed.insert(order.number)
            case 409: mine.refused += 1
            default: mine.failures[status, default: 0] += 1
            }
        }
        figures.withLock { figures in
            figures.confirmed.formUnion(mine.confirmed)
            figures.requests += mine.requests
            figures.refused += mine.refused
            figures.failures.merge(mine.failures, uniquingKeysWith: +)
            figures.answers += mine.answers
        }
    }
}
