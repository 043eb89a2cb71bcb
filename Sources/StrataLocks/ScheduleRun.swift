#if Schedules
import Dispatch
import Foundation
import Synchronization

/// A thread that a run has started.
final class ScheduledThread: Sendable {
    let number: Int
    let run: ScheduleRun
    /// Lets the thread go on.
    let turn = DispatchSemaphore(value: 0)

    init(_ number: Int, of run: ScheduleRun) {
        self.number = number
        self.run = run
    }
}

/// Runs threads one at a time, in an order that a strategy chooses from a seed.
///
/// A scheduled thread goes on until it reaches a place of ``Schedule``. If a thread waits for something that the run does not
/// know, such as the first use of a global variable, then it makes no step for some time. Then the run lets another thread go
/// on beside it, and counts this, as the order is then not the seed's alone. With little patience this happens all the time:
/// threads then run beside each other, from places that the seed has chosen.
package final class ScheduleRun: Sendable {
    /// What a run has shown.
    package struct Outcome: Sendable {
        /// The places that threads have reached.
        package var steps = 0
        /// How often another thread went on than the one that reached the place.
        package var switches = 0
        /// How often a thread stood still for a reason that the run does not know.
        package var strays = 0
        /// How often a wait ended by its deadline, because no thread could go on.
        package var expirations = 0
        /// A number of all choices: runs with equal numbers have made the same ones.
        package var trace: UInt64 = 0xcbf2_9ce4_8422_2325
        /// How many other threads could have gone on at each step, for a search by ``SchedulingStrategy/Kind/changes(_:)``.
        package var alternatives: [Int] = []
        /// The threads that wait for each other, if none can go on.
        package var deadlock: String?
    }

    private enum Status: Equatable {
        case ready
        case running
        /// Goes on when no other thread is ready.
        case pausing
        case blocked(UInt, Schedule.Cause)
        /// Runs, or waits for something that the run does not know.
        case astray
        case ended
    }

    private struct State {
        var strategy: SchedulingStrategy
        var threads: [ScheduledThread] = []
        var statuses: [Status] = []
        var running: Int?
        var outcome = Outcome()
        /// The threads on a queue, by the address of the queue; the first one is inside.
        var lines: [UInt: [Int]] = [:]
        var lastStep = DispatchTime.now().uptimeNanoseconds
        /// The deadlines of threads that wait for a limited time, and the threads whose deadline has passed.
        var deadlines: [Int: UInt64] = [:]
        var expired: Set<Int> = []
        /// How often all threads were let look again in vain.
        var vainLooks = 0
        var isOver = false
    }

    /// The time after which a thread without a step counts as astray, in nanoseconds.
    package static let usualPatience: UInt64 = 400_000_000
    private static let longestIdleness: UInt64 = 20_000_000
    private static let mostVainLooks = 150
    /// The vain looks after which a deadline passes: at least so many if it has come, and otherwise so many.
    private static let looksBeforeDeadline = (least: 2, most: 20)

    private let state: Mutex<State>
    private let end = DispatchSemaphore(value: 0)
    private let patience: UInt64

    private init(_ strategy: SchedulingStrategy, patience: UInt64) {
        state = Mutex(State(strategy: strategy))
        self.patience = patience
    }

    /// Runs all bodies, each on a thread of its own, until all have returned, or none can go on.
    ///
    /// One run at a time. After a deadlock its threads stay, so the process should end.
    ///
    /// - Parameters:
    ///   - strategy: Chooses which thread goes on.
    ///   - patience: The time after which another thread goes on beside one without a step, in nanoseconds.
    ///   - bodies: The programs of the threads.
    /// - Returns: What the run has shown.
    package static func run(
        _ strategy: SchedulingStrategy,
        patience: UInt64 = usualPatience,
        _ bodies: [@Sendable () -> Void]
    ) -> Outcome {
        let run = ScheduleRun(strategy, patience: patience)
        // Otherwise an adopted thread could end before there is another one, and the run with it.
        for body in bodies { run.spawn(on: nil, body) }
        Schedule.activate(run)
        let watch = Thread { run.watch() }
        watch.start()
        run.state.withLock { $0.running == nil ? run.choose(&$0) : nil }?.turn.signal()
        run.end.wait()
        Schedule.activate(nil)
        return run.state.withLock { state in
            state.outcome.alternatives = state.strategy.alternatives
            return state.outcome
        }
    }

    // MARK: - Threads

    func spawn(on line: UInt?, _ body: @escaping @Sendable () -> Void) {
        let thread = state.withLock { add(to: &$0, on: line) }
        start(thread, body)
    }

    /// Runs the body of a thread that is not scheduled; false once the run is over.
    func adopt(_ body: @escaping @Sendable () -> Void) -> Bool {
        let thread = state.withLock { $0.isOver ? nil : add(to: &$0, on: nil) }
        guard let thread else { return false }
        start(thread, body)
        // If all threads wait, then none of them would let the new one begin.
        state.withLock { $0.running == nil ? choose(&$0) : nil }?.turn.signal()
        return true
    }

    private func add(to state: inout State, on line: UInt?) -> ScheduledThread {
        let thread = ScheduledThread(state.threads.count, of: self)
        state.threads.append(thread)
        state.statuses.append(.ready)
        state.strategy.add(thread.number)
        if let line { state.lines[line, default: []].append(thread.number) }
        return thread
    }

    private func start(_ thread: ScheduledThread, _ body: @escaping @Sendable () -> Void) {
        let start = Thread { [self] in
            Schedule.becomeCurrent(thread)
            thread.turn.wait()
            body()
            Schedule.becomeCurrent(nil)
            finish(thread)
        }
        start.stackSize = 4 << 20
        start.start()
    }

    private func finish(_ thread: ScheduledThread) {
        let next = state.withLock { state -> ScheduledThread? in
            let wasRunning = state.running == thread.number
            state.statuses[thread.number] = .ended
            if state.statuses.allSatisfy({ $0 == .ended }) {
                state.isOver = true
                end.signal()
                return nil
            }
            return wasRunning || state.running == nil ? choose(&state) : nil
        }
        next?.turn.signal()
    }

    // MARK: - Steps

    /// A place at which another thread may go on.
    ///
    /// - Parameters:
    ///   - thread: The current thread.
    ///   - object: The address of what threads share there; 0 for nothing.
    ///   - isPause: Whether all others go on first.
    func point(_ thread: ScheduledThread, at object: UInt = 0, isPause: Bool = false) {
        halt(thread, isPause ? .pausing : .ready, object)
    }

    func block(_ thread: ScheduledThread, on key: UInt, _ cause: Schedule.Cause, until deadline: UInt64? = nil) {
        if let deadline { state.withLock { $0.deadlines[thread.number] = deadline } }
        halt(thread, .blocked(key, cause))
        if deadline != nil { state.withLock { $0.deadlines[thread.number] = nil } }
    }

    /// Whether the deadline of a wait has passed.
    func takeExpiration(of thread: ScheduledThread) -> Bool {
        state.withLock { $0.expired.remove(thread.number) != nil }
    }

    private func halt(_ thread: ScheduledThread, _ status: Status, _ object: UInt = 0) {
        let (goesOn, next) = state.withLock { state -> (Bool, ScheduledThread?) in
            guard !state.isOver else { return (true, nil) }
            state.outcome.steps += 1
            state.statuses[thread.number] = status
            state.strategy.reach(object, thread.number)
            if case .blocked = status {} else { state.vainLooks = 0 }
            // A thread that was astray has come back beside the one that runs now.
            if let running = state.running, running != thread.number { return (false, nil) }
            let next = choose(&state)
            return (next === thread, next)
        }
        guard !goesOn else { return }
        next?.turn.signal()
        thread.turn.wait()
    }

    func wake(_ key: UInt) {
        let next = state.withLock { state -> ScheduledThread? in
            var isSomeReady = false
            for (number, status) in state.statuses.enumerated() {
                guard case .blocked(key, _) = status else { continue }
                state.statuses[number] = .ready
                isSomeReady = true
            }
            return isSomeReady && state.running == nil ? choose(&state) : nil
        }
        next?.turn.signal()
    }

    /// Chooses the next thread, which has to be signalled unless it is the caller's; `nil` if none can go on.
    private func choose(_ state: inout State) -> ScheduledThread? {
        state.lastStep = DispatchTime.now().uptimeNanoseconds
        var ready = state.statuses.indices.filter { state.statuses[$0] == .ready }
        if ready.isEmpty { ready = state.statuses.indices.filter { state.statuses[$0] == .pausing } }
        let former = state.running
        guard let next = state.strategy.next(of: ready, former: former) else {
            state.running = nil
            return nil
        }
        if next != former { state.outcome.switches += 1 }
        state.outcome.trace = (state.outcome.trace ^ UInt64(next + 1)) &* 0x0000_0100_0000_01b3
        // Those that have paused try again after another thread has made a step.
        for number in state.statuses.indices
        where state.statuses[number] == .pausing && number != next && former != number {
            state.statuses[number] = .ready
        }
        state.statuses[next] = .running
        state.running = next
        return state.threads[next]
    }

    // MARK: - Queues

    func line(up number: Int, on key: UInt) { state.withLock { $0.lines[key, default: []].append(number) } }

    func isFirst(_ number: Int, on key: UInt) -> Bool { state.withLock { $0.lines[key]?.first == number } }

    func leave(_ key: UInt) {
        state.withLock { state in
            state.lines[key]?.removeFirst()
            if state.lines[key]?.isEmpty == true { state.lines[key] = nil }
        }
        wake(key)
    }

    // MARK: - Threads that stand still

    private func watch() {
        while true {
            usleep(UInt32(min(5_000, patience / 2_000)))
            let (isOver, next) = state.withLock { state -> (Bool, ScheduledThread?) in
                guard !state.isOver else { return (true, nil) }
                let now = DispatchTime.now().uptimeNanoseconds
                guard let running = state.running else {
                    return (false, now - state.lastStep > Self.longestIdleness ? lookAgain(&state) : nil)
                }
                let canOtherGoOn = state.statuses.contains { $0 == .ready || $0 == .pausing }
                guard canOtherGoOn, now - state.lastStep > patience else { return (false, nil) }
                state.statuses[running] = .astray
                state.outcome.strays += 1
                return (false, choose(&state))
            }
            guard !isOver else { return }
            next?.turn.signal()
        }
    }

    /// Lets all blocked threads look again, as threads that are not scheduled may have changed what they wait for.
    private func lookAgain(_ state: inout State) -> ScheduledThread? {
        state.lastStep = DispatchTime.now().uptimeNanoseconds
        state.vainLooks += 1
        guard state.vainLooks < Self.mostVainLooks else {
            let waits = state.statuses.enumerated().compactMap { number, status -> String? in
                guard case .blocked(_, let cause) = status else { return nil }
                return "thread \(number) waits for \(cause.rawValue)"
            }
            state.outcome.deadlock = waits.joined(separator: ", ")
            state.isOver = true
            end.signal()
            return nil
        }
        passDeadline(&state)
        for number in state.statuses.indices {
            if case .blocked = state.statuses[number] { state.statuses[number] = .ready }
        }
        return choose(&state)
    }

    /// Lets the earliest deadline pass, once nothing else can end the wait.
    private func passDeadline(_ state: inout State) {
        let looks = Self.looksBeforeDeadline
        guard state.vainLooks >= looks.least, let next = state.deadlines.min(by: { $0.value < $1.value }),
            next.value <= state.lastStep || state.vainLooks >= looks.most
        else { return }
        state.deadlines[next.key] = nil
        state.expired.insert(next.key)
        state.outcome.expirations += 1
        state.vainLooks = 0
    }
}
#endif
