import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import Synchronization

/// The external files that reads did not find, for each thread.
enum MissedFiles {
    private static let key = "CoreData.MissedFiles"
    /// The number of missed files in all threads.
    ///
    /// It has nearly always not changed, and then nothing else need be checked.
    private static let count = AtomicCell<Int>(0)

    /// Adds a file for the read that the current thread makes.
    static func add(_ name: String) {
        let number = count.add(1, ordering: .relaxed).newValue
        let missed = Thread.current.threadDictionary[key] as? Missed ?? Missed()
        missed.numbers[name] = number
        Thread.current.threadDictionary[key] = missed
    }

    /// Files by name, each with the count when it was last missed.
    private final class Missed {
        var numbers: [String: Int] = [:]
    }

    /// Runs a read, and returns the files that it did not find.
    @inline(__always)
    static func collecting<R>(_ read: () throws -> R) rethrows -> (result: R, missed: Set<String>) {
        let before = count.load(ordering: .relaxed)
        let result = try read()
        guard count.load(ordering: .relaxed) != before else { return (result, []) }
        return (result, removeFiles(since: before))
    }

    /// The files that the current thread has added since the count was `before`, which are removed.
    ///
    /// Older ones come from reads that failed.
    private static func removeFiles(since before: Int) -> Set<String> {
        let missed = Thread.current.threadDictionary[key] as? Missed
        Thread.current.threadDictionary[key] = nil
        return Set((missed?.numbers ?? [:]).filter { $0.value > before }.keys)
    }

    /// The error of a read from a pinned version whose external files are missing.
    ///
    /// A process keeps the files of the versions that it holds, but other processes do not know about these.
    static func error(_ missed: Set<String>, _ url: URL) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.path) cannot be read as of an older version: its external data file \(missed.min() ?? "") is gone, as another process has replaced or deleted it since. Pin the context anew, or begin the loop again, to read the newest version.",
                NSFilePathErrorKey: url.path,
            ]
        ).marked(.environment)
    }
}
