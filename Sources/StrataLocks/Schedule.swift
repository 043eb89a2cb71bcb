import Dispatch
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

#if Schedules

/// The places of the library at which a scheduler of tests decides which thread goes on.
///
/// Only builds with the package trait `Schedules` contain them (`make schedules`). Threads that a ``ScheduleRun`` has started
/// run one at a time. At each place one of them hands over to the thread that the run chooses. So the run decides every order
/// in which threads overtake each other, and the same seed gives the same order again. All other threads pass the places at
/// once.
@usableFromInline
package enum Schedule {
    /// What a thread waits for; part of the report of a deadlock.
    enum Cause: String, Sendable {
        case lock = "a lock"
        case signal = "a signal"
        case queue = "the turn on a queue"
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// The run whose threads are scheduled at present.
    static let active = Mutex<ScheduleRun?>(nil)
    /// Whether there is one; read by all threads that unlock something.
    private static let isActive = Atomic(false)

    static func activate(_ run: ScheduleRun?) {
        _ = key
        active.withLock { $0 = run }
        isActive.store(run != nil, ordering: .sequentiallyConsistent)
    }

    /// The current thread, if it is scheduled.
    static var current: ScheduledThread? {
        guard isActive.load(ordering: .relaxed), let address = pthread_getspecific(key) else { return nil }
        return Unmanaged<ScheduledThread>.fromOpaque(address).takeUnretainedValue()
    }

    static func becomeCurrent(_ thread: ScheduledThread?) {
        pthread_setspecific(key, thread.map { Unmanaged.passUnretained($0).toOpaque() })
    }

    // MARK: - Points

    /// Lets another thread go on, or not.
    @usableFromInline
    package static func point() { point(at: 0) }

    /// The form for a place of an object that threads share.
    static func point(at object: UInt) {
        guard let thread = current else { return }
        thread.run.point(thread, at: object)
    }

    /// The form for a place that has a name.
    @usableFromInline
    static func point(named name: @autoclosure () -> String) {
        guard let thread = current else { return }
        // The hash of a text follows from the text alone, as the program has deterministic hashing.
        thread.run.point(thread, at: UInt(bitPattern: name().hashValue) | 1)
    }

    /// Lets all other threads go on first; returns whether the current thread is scheduled.
    ///
    /// A thread calls it that waits for another one by trying again.
    @discardableResult
    package static func pause() -> Bool {
        guard let thread = current else { return false }
        thread.run.point(thread, isPause: true)
        return true
    }

    /// Sleeps; a scheduled thread lets all other threads go on first instead.
    package static func sleep(microseconds: UInt32) { if !pause() { usleep(microseconds) } }

    // MARK: - Locks

    @usableFromInline
    static func lock(_ handle: UnsafeMutablePointer<pthread_mutex_t>) {
        guard let thread = current else {
            pthread_mutex_lock(handle)
            return
        }
        thread.run.point(thread, at: UInt(bitPattern: handle))
        while pthread_mutex_trylock(handle) != 0 { thread.run.block(thread, on: UInt(bitPattern: handle), .lock) }
    }

    @usableFromInline
    static func unlock(_ handle: UnsafeMutablePointer<pthread_mutex_t>) {
        pthread_mutex_unlock(handle)
        wake(UInt(bitPattern: handle))
        point(at: UInt(bitPattern: handle))
    }

    // MARK: - Signals

    /// Waits until `isReady` returns true; it is asked again after each call of ``wake(_:)``.
    ///
    /// - Returns: Whether the current thread is scheduled; if not, then it has not waited.
    static func wait(for object: AnyObject, until isReady: () -> Bool) -> Bool {
        guard let thread = current else { return false }
        thread.run.point(thread, at: address(of: object))
        while !isReady() { thread.run.block(thread, on: address(of: object), .signal) }
        return true
    }

    /// Waits like ``wait(for:until:)``, but gives up at a deadline.
    ///
    /// The deadline does not pass as long as any other thread can go on. So a wait ends by its deadline only if nothing else
    /// ends it, and the run counts that: most often, a wake-up was forgotten.
    ///
    /// - Returns: Whether `isReady` has returned true before the deadline; `nil` if the current thread is not scheduled.
    static func wait(for object: AnyObject, deadline: DispatchTime, until isReady: () -> Bool) -> Bool? {
        guard let thread = current else { return nil }
        thread.run.point(thread, at: address(of: object))
        guard deadline > .now() else { return isReady() }
        while !isReady() {
            thread.run.block(thread, on: address(of: object), .signal, until: deadline.uptimeNanoseconds)
            if thread.run.takeExpiration(of: thread) { return isReady() }
        }
        return true
    }

    /// Lets threads that wait for an object look again.
    static func wake(_ object: AnyObject) {
        wake(address(of: object))
        point(at: address(of: object))
    }

    private static func wake(_ key: UInt) {
        guard isActive.load(ordering: .relaxed) else { return }
        active.withLock { $0 }?.wake(key)
    }

    private static func address(of object: AnyObject) -> UInt {
        UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    }

    // MARK: - Queues

    /// Runs `body` on a serial queue, after all that was submitted before.
    package static func sync<T>(on queue: DispatchQueue, _ body: () throws -> T) rethrows -> T {
        guard let thread = current else { return try queue.sync(execute: body) }
        let key = address(of: queue)
        thread.run.line(up: thread.number, on: key)
        thread.run.point(thread)
        while !thread.run.isFirst(thread.number, on: key) { thread.run.block(thread, on: key, .queue) }
        defer {
            thread.run.leave(key)
            thread.run.point(thread)
        }
        // No other scheduled thread is on the queue, so this waits only for work that other threads have submitted.
        return try queue.sync(execute: body)
    }

    /// Submits `body` to a serial queue: a scheduled thread submits it to a new scheduled thread.
    package static func async(on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        guard let thread = current else { return queue.async(execute: body) }
        let key = address(of: queue)
        thread.run.spawn(on: key) {
            guard let own = current else { return body() }
            while !own.run.isFirst(own.number, on: key) { own.run.block(own, on: key, .queue) }
            queue.sync(execute: body)
            own.run.leave(key)
        }
        thread.run.point(thread)
    }

    /// Submits `body` to a serial queue after some time: for a scheduled thread the time passes when the run chooses.
    package static func async(on queue: DispatchQueue, after seconds: Double, _ body: @escaping @Sendable () -> Void) {
        guard let thread = current else { return queue.asyncAfter(deadline: .now() + seconds, execute: body) }
        thread.run.spawn(on: nil) {
            pause()
            sync(on: queue, body)
        }
        thread.run.point(thread)
    }

    /// Runs `body`, which something outside of the run has caused, such as a timer or a file: on a new scheduled thread if a
    /// run is in progress, and else at once.
    package static func adopt(_ body: @escaping @Sendable () -> Void) {
        guard current == nil, let run = active.withLock({ $0 }), run.adopt(body) else { return body() }
    }

    /// Lets nothing run on a new serial queue before ``resume(_:)``.
    package static func suspend(_ queue: DispatchQueue) {
        queue.suspend()
        // No thread has this number, so none gets its turn.
        active.withLock { $0 }?.line(up: .max, on: address(of: queue))
    }

    /// Lets run what was submitted since ``suspend(_:)``.
    package static func resume(_ queue: DispatchQueue) {
        queue.resume()
        let key = address(of: queue)
        if let run = active.withLock({ $0 }), run.isFirst(.max, on: key) { run.leave(key) }
        point()
    }
}
#else
/// Places at which a scheduler of tests decides which thread goes on: in builds without the trait `Schedules` they do nothing.
@usableFromInline
package enum Schedule {
    /// A place at which another thread may go on.
    @inlinable
    @inline(__always)
    package static func point() {}

    /// The form for a place that has a name.
    @inlinable
    @inline(__always)
    static func point(named name: @autoclosure () -> String) {}

    /// Returns whether other threads were let go on first.
    @inlinable
    @inline(__always)
    @discardableResult
    package static func pause() -> Bool { false }

    /// Sleeps.
    @inlinable
    @inline(__always)
    package static func sleep(microseconds: UInt32) { usleep(microseconds) }

    @inlinable
    @inline(__always)
    static func lock(_ handle: UnsafeMutablePointer<pthread_mutex_t>) { pthread_mutex_lock(handle) }

    @inlinable
    @inline(__always)
    static func unlock(_ handle: UnsafeMutablePointer<pthread_mutex_t>) { pthread_mutex_unlock(handle) }

    /// Returns whether it has waited until `isReady` returned true.
    @inline(__always)
    static func wait(for object: AnyObject, until isReady: () -> Bool) -> Bool { false }

    /// Returns whether `isReady` has returned true before the deadline; `nil` if it has not waited.
    @inline(__always)
    static func wait(for object: AnyObject, deadline: DispatchTime, until isReady: () -> Bool) -> Bool? { nil }

    /// Lets threads that wait for an object look again.
    @inline(__always)
    static func wake(_ object: AnyObject) {}

    /// Runs `body` on a serial queue, after all that was submitted before.
    @inlinable
    package static func sync<T>(on queue: DispatchQueue, _ body: () throws -> T) rethrows -> T {
        try queue.sync(execute: body)
    }

    /// Submits `body` to a queue.
    @inlinable
    package static func async(on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        queue.async(execute: body)
    }

    /// Submits `body` to a queue after some time.
    @inlinable
    package static func async(on queue: DispatchQueue, after seconds: Double, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + seconds, execute: body)
    }

    /// Runs `body`.
    @inlinable
    @inline(__always)
    package static func adopt(_ body: () -> Void) { body() }

    /// Lets nothing run on a new serial queue before ``resume(_:)``.
    @inlinable
    package static func suspend(_ queue: DispatchQueue) { queue.suspend() }

    /// Lets run what was submitted since ``suspend(_:)``.
    @inlinable
    package static func resume(_ queue: DispatchQueue) { queue.resume() }
}
#endif
