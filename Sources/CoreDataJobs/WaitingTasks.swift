import StrataLocks

/// A value, and the tasks that wait until it meets a condition.
///
/// Any thread may call any member. A condition is judged under a lock, so it only looks at the value.
final class WaitingTasks<Value: Sendable>: Sendable {
    private struct Waiter {
        let isOver: @Sendable (Value) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var value: Value
        var lastNumber = 0
        var waiters: [Int: Waiter] = [:]
        /// Tasks that were cancelled before they began to wait.
        var cancelled: Set<Int> = []
    }

    private let state: Locked<State>

    init(_ value: Value) { state = Locked(State(value: value)) }

    var value: Value { state.withLock { $0.value } }

    /// The number of tasks that wait.
    var count: Int { state.withLock { $0.waiters.count } }

    /// Changes the value, and resumes the tasks whose conditions it meets.
    func update(_ change: (inout Value) -> Void) {
        let due = state.withLock { state in
            change(&state.value)
            let value = state.value
            let due = state.waiters.filter { $0.value.isOver(value) }
            for number in due.keys { state.waiters[number] = nil }
            // A key path would be made anew each time.
            return due.values.map { $0.continuation }
        }
        for waiter in due { waiter.resume() }
    }

    /// Waits until the value meets a condition, or the task is cancelled.
    func wait(until isOver: @escaping @Sendable (Value) -> Bool) async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    guard !isOver(state.value), state.cancelled.remove(number) == nil else { return false }
                    state.waiters[number] = Waiter(isOver: isOver, continuation: continuation)
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: number)
                if waiter == nil { state.cancelled.insert(number) }
                return waiter?.continuation
            }?.resume()
        }
        // A cancellation may have come after the task was resumed.
        _ = state.withLock { $0.cancelled.remove(number) }
    }
}
