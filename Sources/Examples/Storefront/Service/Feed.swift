import StrataLocks

/// Passes each state of something that changes to all listeners.
package final class Feed: Sendable {
    private struct State {
        var latest = ""
        var listeners: [Int: AsyncStream<String>.Continuation] = [:]
        var last = 0
        var isOver = false
    }

    private let state = Locked(State())

    package init() {}

    /// Sends a state to all listeners.
    func tell(_ text: String) {
        // This happens under the lock, so that no other call ends the streams in between: a state after the end would
        // be lost.
        state.withLock { state in
            state.latest = text
            for listener in state.listeners.values { listener.yield(text) }
        }
    }

    /// Returns the states from now on, beginning with the present one.
    ///
    /// A slow listener misses some.
    package func listen() -> AsyncStream<String> {
        let (stream, listener) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.last += 1
            state.listeners[state.last] = listener
            if !state.latest.isEmpty { listener.yield(state.latest) }
            return state.last
        }
        guard let number else {
            listener.finish()
            return stream
        }
        listener.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    /// The number of listeners, and the state that was sent to them last.
    var figures: (listeners: Int, latest: String) { state.withLock { ($0.listeners.count, $0.latest) } }

    /// Ends all streams.
    package func end() {
        let listeners = state.withLock { state in
            defer { state.listeners = [:] }
            state.isOver = true
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
