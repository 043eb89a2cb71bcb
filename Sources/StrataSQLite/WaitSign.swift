import Foundation
import StrataLocks

/// A sign beside a database by which processes let one another go first.
///
/// SQLite gives its write lock to the process that asks at the right moment. A process that writes without a break
/// would get it nearly always, and one that asks now and then would wait for very long. So a process that has waited
/// for some milliseconds puts up a sign. A process that sees the sign of another one before a write lets that one go
/// first. The sign is a file, which exists only during such a wait, and which its owner locks. The sign of a process
/// that has died does not count, and the next process that sees it removes it.
///
/// No process defers to a sign for longer than ``longestDeference``, because the sign's owner may be stopped. If no
/// file can be made, there is no sign, and chance decides who gets the lock.
///
/// Only the holder of the turn to write uses it.
final class WaitSign {
    /// The seconds of waiting after which a sign is put up.
    static let threshold = 0.01
    /// The seconds that others let the owner of a sign have to get its lock.
    static let longestDeference = 0.1

    private let path: String
    /// The locked file, while the sign is up.
    private var descriptor: Int32?

    init(database path: String) {
        self.path = path + "-next"
    }

    deinit {
        takeDown()
    }

    var isUp: Bool { descriptor != nil }

    /// Puts the sign up, unless another process has put up one.
    func putUp() {
        guard descriptor == nil else { return }
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { return }
        // If the file was removed between the two calls, it is no sign.
        if flock(file, LOCK_EX | LOCK_NB) == 0, Self.isFile(file, at: path) {
            descriptor = file
        } else {
            close(file)
        }
    }

    /// Takes the sign down, if it is up.
    func takeDown() {
        guard let file = descriptor else { return }
        descriptor = nil
        // This happens while the file is locked, so that it is this sign that is removed.
        unlink(path)
        close(file)
    }

    /// Lets another process go first if its sign is up.
    ///
    /// - Parameters:
    ///   - limit: The most seconds to wait, beside ``longestDeference``.
    ///   - cancellation: Ends the wait.
    /// - Returns: The seconds that have passed.
    func deferToOthers(atMost limit: Double, _ cancellation: Cancellation?) -> Double {
        guard limit > 0, isUpElsewhere() else { return 0 }
        let longest = min(limit, Self.longestDeference)
        let start = BusyWait.now()
        var waited = 0.0
        repeat {
            Schedule.sleep(microseconds: .random(in: 200...600))
            waited = Double(BusyWait.now() &- start) / 1e9
        } while isUpElsewhere() && waited < longest && cancellation?.isCancelled != true
        return waited
    }

    private func isUpElsewhere() -> Bool {
        // The usual case costs one call.
        guard descriptor == nil, access(path, F_OK) == 0 else { return false }
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else { return true }
        // Its owner has died.
        if Self.isFile(file, at: path) { unlink(path) }
        return false
    }

    /// Whether the open file is still the one at `path`.
    private static func isFile(_ file: Int32, at path: String) -> Bool {
        var (opened, named) = (stat(), stat())
        guard fstat(file, &opened) == 0, stat(path, &named) == 0 else { return false }
        return opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
    }
}
