import Synchronization

/// What one observer has not taken yet.
protocol PendingNews: Sendable {
    associatedtype Taken: Sendable
    /// Nothing.
    init()
    /// Whether there is nothing to take.
    var isEmpty: Bool { get }
    /// Takes what the observer is told next; called only if there is something.
    mutating func take() -> Taken
}

/// Where news are left for one observer, who takes them when it has time, or waits for some.
///
/// Any thread may call any member, but one task at a time takes. The mutex is a leaf in the lock order.
final class NewsBox<News: PendingNews>: Sendable {
    private struct State {
        var news: News
        var isFinished = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(_ news: News = News()) { state = Mutex(State(news: news)) }

    /// Adds to what waits; does nothing once the box is finished.
    ///
    /// - Parameter add: Adds the news. It runs under the mutex, so it must not call anybody.
    func note(_ add: (inout News) -> Void) {
        change { state in
            if !state.isFinished { add(&state.news) }
        }
    }

    /// Ends it: what was not taken is lost, and nobody waits any more.
    func finish() {
        change { state in
            state.isFinished = true
            state.news = News()
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            guard state.isFinished || !state.news.isEmpty else { return nil as CheckedContinuation<Void, Never>? }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Takes what waits, once there is something.
    ///
    /// - Returns: `nil` once the box is finished, which the end of the calling task does too.
    func next() async -> News.Taken? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if state.isFinished || !state.news.isEmpty { return true }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            finish()
        }
        return state.withLock { $0.news.isEmpty ? nil : $0.news.take() }
    }
}
