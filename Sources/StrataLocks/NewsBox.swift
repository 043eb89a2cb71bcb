/// The news that one observer has not taken yet.
package protocol PendingNews: Sendable {
    associatedtype Taken: Sendable
    /// Makes empty news.
    init()
    /// Whether there is nothing to take.
    var isEmpty: Bool { get }
    /// Takes the next news for the observer; called only if there are any.
    mutating func take() -> Taken
}

/// A box of news for one observer, which takes them when it is ready, or waits for some.
///
/// Any thread may call any member, but only one task at a time may take news. The mutex is a leaf in the lock order.
package final class NewsBox<News: PendingNews>: Sendable {
    private struct State {
        var news: News
        var isFinished = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state: Locked<State>

    package init(_ news: News = News()) { state = Locked(State(news: news)) }

    /// Adds news; does nothing once the box is finished.
    ///
    /// - Parameter add: A closure that adds the news. It runs under the mutex, so it must not call other code.
    package func note(_ add: (inout News) -> Void) {
        change { state in
            if !state.isFinished { add(&state.news) }
        }
    }

    /// Finishes the box: news that were not taken are lost, and a waiting observer returns.
    package func finish() {
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

    /// Takes the next news, and waits until there are some.
    ///
    /// - Returns: The news. `nil` once the box is finished, or the calling task is cancelled.
    package func next() async -> News.Taken? {
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
