import Foundation
import StrataLocks

/// A turn for processes, and for threads of one process: a lock on a separate file.
///
/// The system releases it when a process dies. The file is removed at the end.
package final class LockFile: Sendable {
    private let descriptor: Int32
    private let path: String

    private init(_ descriptor: Int32, _ path: String) { (self.descriptor, self.path) = (descriptor, path) }

    deinit {
        // This happens while the lock is held: another process that has already opened the file finds it gone, and
        // makes a new one.
        unlink(path)
        close(descriptor)
    }

    /// Waits for the turn.
    ///
    /// It lasts until the result is released.
    ///
    /// - Parameters:
    ///   - path: The file, which has no other use.
    ///   - timeout: The longest wait, in seconds.
    /// - Returns: The turn.
    /// - Throws: `busy` at the deadline, `cannotOpen` if the file cannot be made.
    package static func take(_ path: String, timeout: Double) throws(SQLiteError) -> LockFile {
        let start = BusyWait.now()
        let deadline = start &+ UInt64(max(timeout, 0) * 1e9)
        var pause: UInt32 = 500
        while true {
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else {
                throw SQLiteError(code: .cannotOpen, message: String(cString: strerror(errno)), operation: .open)
            }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0, isStill(descriptor, path) {
                return LockFile(descriptor, path)
            }
            close(descriptor)
            guard BusyWait.now() < deadline else {
                let waited = Double(BusyWait.now() - start) / 1e9
                throw .timedOut(.waitForWriter, after: waited, blocker: .otherConnection)
            }
            Schedule.sleep(microseconds: pause)
            pause = min(pause * 2, 20_000)
        }
    }

    /// Whether an open file still has its name.
    private static func isStill(_ descriptor: Int32, _ path: String) -> Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino
            && opened.st_dev == named.st_dev
    }
}
