import CStrataSQLite
import StrataLocks
import Synchronization

/// The idle readers of a pool, and the queue of threads that wait for one.
///
/// As long as no thread waits, taking a reader and putting it back is one atomic exchange on a slot that belongs to the
/// present processor. There is no lock, and each processor keeps using the connection whose pages are in its cache. A
/// list under a lock made two threads together slower than one.
///
/// If a thread waits, later ones queue up behind it, and readers are given out in the order of the queue. No wake-up is
/// lost: a thread that puts a reader back fills the slot and then reads `waiting`. A thread that waits raises `waiting`
/// and then reads the slots.
///
/// Any thread may call any method. The lock is held for the queue only, never while a connection opens or works.
final class ReaderShelf: Sendable {
    /// The result for a thread: a connection, or the right to open one more.
    enum Grant {
        case idle(Connection)
        case mayOpen
    }

    /// A place for one idle connection, on separate cache lines.
    private final class Slot: Sendable {
        private let connection = AtomicCell<Unmanaged<Connection>?>(nil)
        private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)

        /// Empties the slot.
        ///
        /// The slot held one reference, which passes to the caller.
        func take() -> Connection? {
            // This read first avoids a useless exclusive access, which would delay the other processors.
            guard connection.load(ordering: .relaxed) != nil,
                let taken = connection.exchange(nil, ordering: .sequentiallyConsistent)
            else { return nil }
            return taken.takeRetainedValue()
        }

        /// Fills the slot; `false` if it is full.
        func put(_ idle: Connection) -> Bool {
            guard connection.load(ordering: .relaxed) == nil else { return false }
            let reference = Unmanaged.passRetained(idle)
            let (isDone, _) = connection.compareExchange(
                expected: nil,
                desired: reference,
                ordering: .sequentiallyConsistent
            )
            if !isDone { reference.release() }
            return isDone
        }
    }

    private struct Queue {
        var waiters: [(waiter: Waiter, grant: GrantBox)] = []
    }

    /// The place in which a waiter finds its grant; written and read under the lock of the queue.
    private final class GrantBox: @unchecked Sendable {
        // @unchecked Sendable: `grant` is used only inside `queue.withLock`.
        var grant: Grant?
    }

    private let slots: [Slot]
    private let limit: Int
    /// The number of readers that exist or are being opened.
    private let openCount = AtomicCell(0)
    private let waiting = AtomicCell(0)
    private let closed = AtomicCell(false)
    private let queue = Locked(Queue())

    init(limit: Int) {
        self.limit = limit
        slots = (0..<limit).map { _ in Slot() }
    }

    deinit {
        closeIdle()
    }

    // MARK: - Taking and returning

    /// Gives out a reader.
    ///
    /// While all of them are in use, it waits up to `timeout` seconds.
    ///
    /// The caller must call `putBack` or `discard` at the end, even if it fails to open a connection.
    ///
    /// - Returns: The reader, or the right to open one, and the seconds that the wait has taken.
    func take(timeout: Double, cancellation: Cancellation?) throws(SQLiteError) -> (grant: Grant, waited: Double) {
        if waiting.load(ordering: .sequentiallyConsistent) == 0, let grant = takeWithoutWaiting() {
            return (try checked(grant), 0)
        }
        let waiter = Waiter()
        let box = GrantBox()
        queue.withLock { queue in
            queue.waiters.append((waiter, box))
            waiting.add(1, ordering: .sequentiallyConsistent)
        }
        serveWaiters()
        let (awakening, waited) = waiter.sleep(timeout: timeout, cancellation: cancellation)

        let grant = queue.withLock { queue in
            if box.grant == nil {
                queue.waiters.removeAll { $0.waiter === waiter }
                waiting.subtract(1, ordering: .sequentiallyConsistent)
            }
            return box.grant
        }
        if let grant { return (try checked(grant), waited) }
        switch awakening {
        case .called: throw .cancelled(.waitForReader)
        case .timedOut: throw .timedOut(.waitForReader, after: waited, blocker: .otherThread)
        }
    }

    /// Takes back a reader that may be used again.
    func putBack(_ connection: Connection) {
        guard putIdle(connection) else { return discard(connection) }
        if closed.load(ordering: .sequentiallyConsistent) { closeIdle() }
        if waiting.load(ordering: .sequentiallyConsistent) > 0 { serveWaiters() }
    }

    /// Closes a reader for good, or, with `nil`, gives up the right to open one.
    func discard(_ connection: Connection?) {
        connection?.close()
        openCount.subtract(1, ordering: .sequentiallyConsistent)
        if waiting.load(ordering: .sequentiallyConsistent) > 0 { serveWaiters() }
    }

    // MARK: - Connections outside the limit

    /// Removes an idle reader, if there is one.
    ///
    /// It no longer counts.
    func removeIdle() -> Connection? {
        guard let connection = takeIdle() else { return nil }
        openCount.subtract(1, ordering: .sequentiallyConsistent)
        return connection
    }

    /// Adds a connection that did not count before, or closes it.
    func adopt(_ connection: Connection) {
        guard reserve() else { return connection.close() }
        putBack(connection)
    }

    // MARK: - Closing

    /// Closes the idle readers; those in use close when they are returned.
    func close() {
        closed.store(true, ordering: .sequentiallyConsistent)
        closeIdle()
    }

    private func closeIdle() {
        while let connection = takeIdle() { discard(connection) }
    }

    private func checked(_ grant: Grant) throws(SQLiteError) -> Grant {
        guard closed.load(ordering: .sequentiallyConsistent) else { return grant }
        if case .idle(let connection) = grant { discard(connection) } else { discard(nil) }
        throw .closed(.waitForReader)
    }

    // MARK: - Slots

    private func takeWithoutWaiting() -> Grant? {
        if let connection = takeIdle() { return .idle(connection) }
        return reserve() ? .mayOpen : nil
    }

    private func takeIdle() -> Connection? {
        let first = preferredSlot
        for offset in 0..<limit {
            if let connection = slots[(first + offset) % limit].take() { return connection }
        }
        return nil
    }

    private func putIdle(_ connection: Connection) -> Bool {
        let first = preferredSlot
        // There are as many slots as connections, so one is free. Another thread may fill a slot that was just empty,
        // so there are two rounds.
        for offset in 0..<2 * limit where slots[(first + offset) % limit].put(connection) { return true }
        return false
    }

    private func reserve() -> Bool {
        var count = openCount.load(ordering: .relaxed)
        while count < limit {
            let (isDone, current) = openCount.compareExchange(
                expected: count,
                desired: count + 1,
                ordering: .sequentiallyConsistent
            )
            if isDone { return true }
            count = current
        }
        return false
    }

    private var preferredSlot: Int {
        Int(strata_current_processor()) % limit
    }

    // MARK: - Waiters

    /// Gives free readers to the threads that have waited longest.
    private func serveWaiters() {
        queue.withLock { queue in
            while !queue.waiters.isEmpty, let grant = takeWithoutWaiting() {
                let (waiter, box) = queue.waiters.removeFirst()
                box.grant = grant
                waiting.subtract(1, ordering: .sequentiallyConsistent)
                waiter.call()
            }
        }
    }

    /// The number of readers that exist, or are being opened.
    var connectionCount: Int { openCount.load(ordering: .relaxed) }

    /// The number of waiting threads, for tests that script an interleaving and for statistics.
    var waiterCount: Int {
        waiting.load(ordering: .sequentiallyConsistent)
    }
}
