import Foundation
import StrataLocks
import Synchronization

/// The turn to write to one file, shared by every pool of this process that has the file open.
///
/// SQLite lets one connection write at a time but does not queue the others. Within a process this turn does, in the
/// order of asking. Only its holder begins a write transaction, or a checkpoint that keeps others from writing.
final class FileTurn: Sendable {
    private let semaphore = FairSemaphore(permits: 1)
    private let owner = AtomicCell<UInt>(0)

    /// Waits for the turn.
    ///
    /// - Parameters:
    ///   - timeout: The most seconds to wait.
    ///   - cancellation: Ends the wait.
    ///   - goesFirst: Whether to overtake all threads that wait.
    /// - Throws: `busy` at the deadline, `interrupt` on cancellation, and `misuse` at once if the calling thread
    ///   already has the turn, because it would wait for itself.
    /// - Returns: The seconds that the wait has taken.
    func take(timeout: Double, cancellation: Cancellation?, goesFirst: Bool = false) throws(SQLiteError) -> Double {
        let thread = Self.currentThread
        guard owner.load(ordering: .relaxed) != thread else {
            let message = "this thread is already inside a write to this database; a second one would wait for ever"
            throw SQLiteError(code: .misuse, message: message, operation: .waitForWriter)
        }
        switch semaphore.acquire(timeout: timeout, cancellation: cancellation, goesFirst: goesFirst) {
        case .acquired(let waited):
            owner.store(thread, ordering: .relaxed)
            return waited
        case .timedOut(let waited):
            throw .timedOut(.waitForWriter, after: waited, blocker: .otherThread)
        case .cancelled:
            throw .cancelled(.waitForWriter)
        }
    }

    func giveBack() {
        owner.store(0, ordering: .relaxed)
        semaphore.release()
    }

    var waiterCount: Int { semaphore.waiterCount }

    private static var currentThread: UInt {
        #if canImport(Darwin)
        UInt(bitPattern: pthread_self())
        #else
        UInt(pthread_self())
        #endif
    }

    // MARK: - By file

    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private struct Weak {
        weak var turn: FileTurn?
    }

    private static let turns = Locked<[Identity: Weak]>([:])

    /// The turn of the file at `path`, whichever of its names that is.
    static func forFile(at path: String) -> FileTurn {
        var status = stat()
        // The file is never opened for this: closing it again would drop all of SQLite's POSIX locks in the process.
        guard stat(path, &status) == 0 else { return FileTurn() }
        let identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        return turns.withLock { turns in
            if let turn = turns[identity]?.turn { return turn }
            turns = turns.filter { $0.value.turn != nil }
            let turn = FileTurn()
            turns[identity] = Weak(turn: turn)
            return turn
        }
    }
}
