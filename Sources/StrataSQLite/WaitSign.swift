import Foundation
import StrataLocks

/// A sign beside a database by which processes let one another go first.
///
/// SQLite gives its write lock to whoever asks at the right moment. A process that writes without a break would get it nearly
/// always, and another, which asks now and then, would wait for very long. So a process that has waited for some milliseconds puts
/// up a sign. Whoever sees the sign of another before a write lets it go first. The sign is a file, which exists only during such
/// a wait, and which its owner locks. The sign of a process that has died does not count, and the next to see it removes it.
///
/// Nobody defers to a sign for longer than ``longestDeference``, since its owner may be stopped. Where no file can be made, there
/// is no sign, and the lock goes by chance.
///
/// Used by the holder of the turn to write only.
final class WaitSign {
    /// Seconds of waiting after which a sign goes up.
    static let threshold = 0.01
    /// Seconds that others let the owner of a sign have to get its lock.
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

    /// Puts the sign up, unless that of another process is.
    func putUp() {
        guard descriptor == nil else { return }
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { return }
        // A file that was taken down between the two calls is nobody's sign.
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
        // While it is locked, so that what is removed is this sign.
        unlink(path)
        close(file)
    }

    /// Lets another process go first if its sign is up.
    ///
    /// - Parameters:
    ///   - limit: The most seconds to let pass, beside ``longestDeference``.
    ///   - cancellation: Ends the wait.
    /// - Returns: How many seconds have passed.
    func deferToOthers(atMost limit: Double, _ cancellation: Cancellation?) -> Double {
        guard limit > 0, isUpElsewhere() else { return 0 }
        let longest = min(limit, Self.longestDeference)
        let start = BusyWait.now()
        var waited = 0.0
        repeat {
            usleep(UInt32.random(in: 200...600))
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

    /// Whether the open file is the one at `path`.
    private static func isFile(_ file: Int32, at path: String) -> Bool {
        var (opened, named) = (stat(), stat())
        guard fstat(file, &opened) == 0, stat(path, &named) == 0 else { return false }
        return opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
    }
}
