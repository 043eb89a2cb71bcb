import Foundation

/// The external files that the current thread has looked for in vain.
enum MissedFiles {
    private static let key = "CoreData.MissedFiles"

    static func note(_ name: String) {
        let names = Thread.current.threadDictionary[key] as? Set<String> ?? []
        Thread.current.threadDictionary[key] = names.union([name])
    }

    /// What was noted since the last call.
    static func take() -> Set<String> {
        defer { Thread.current.threadDictionary[key] = nil }
        return Thread.current.threadDictionary[key] as? Set<String> ?? []
    }

    /// The error of a read from a version that is held on to, of which files are missing.
    ///
    /// This process keeps the files of versions that somebody holds; others know nothing of these.
    static func error(_ missed: Set<String>, _ url: URL) -> CocoaError {
        CocoaError(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.path) cannot be read as of an older version: its external data file \(missed.min() ?? "") is gone, as another process has replaced or deleted it since. Pin the context anew, or begin the loop again, to read the newest version.",
                NSFilePathErrorKey: url.path,
            ]
        )
    }
}
