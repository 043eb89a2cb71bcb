import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// What a store's options come to.
package struct SQLiteOptions: Sendable {
    /// Where the database is.
    package enum Place: Equatable, Sendable {
        case file(String)
        /// `/dev/null`: a database in memory that nobody else sees.
        case privateMemory
        /// `/dev/null/NAME`: a database in memory that all stores of this process with that URL share.
        case sharedMemory(String)
    }

    package let place: Place
    package let isReadOnly: Bool
    /// Whether the file is opened though it was made with another version of the model.
    package var ignoresVersions = false
    /// Whether opening compacts the file.
    package var vacuums = false
    /// Whether opening gathers statistics for the query planner.
    package var analyzes = false
    /// Whether changes are recorded in the history.
    package var tracksHistory = false
    /// Whether a migration puts off what only tidies up.
    package var defersCleanUp = false
    /// What a commit promises about a loss of power.
    package enum Synchronous: Sendable {
        /// Nothing: not even a sound file.
        case off
        /// That nothing is missing but the newest commits.
        case normal
        /// That it is there.
        case full
    }

    /// What commits promise, so that external files have to as well.
    package let synchronous: Synchronous
    private(set) var pool = PoolOptions()

    /// What is not said otherwise: a store that is read and written, without a history.
    ///
    /// - Parameters:
    ///   - url: Where the database is.
    ///   - isReadOnly: Whether saves are refused.
    ///   - pragmas: What each connection is set to, by the names of SQLite's pragmas.
    /// - Throws: `persistentStoreOpen` (134080) for a URL that is no file's.
    package init(url: URL, isReadOnly: Bool = false, pragmas: [String: String] = [:]) throws {
        guard url.isFileURL else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [
                    NSLocalizedDescriptionKey: "A SQLite store needs the URL of a file, not \(url.placeName)."
                ]
            )
        }
        let path = url.path
        if path == "/dev/null" {
            place = .privateMemory
        } else if path.hasPrefix("/dev/null/") {
            place = .sharedMemory(String(path.dropFirst("/dev/null/".count)))
        } else {
            place = .file(path)
        }
        self.isReadOnly = isReadOnly
        pool.pragmas = pragmas
        pool.timeout = Self.defaultTimeout
        switch pragmas.first(where: { $0.key.lowercased() == "synchronous" })?.value.uppercased() {
        case "FULL", "EXTRA", "2", "3": synchronous = .full
        case "OFF", "0": synchronous = .off
        default: synchronous = .normal
        }
    }

    /// These options for work that may sort a whole table, such as the making of an index: SQLite does that in files then.
    ///
    /// In memory it would take as much as the table.
    var sortingInFiles: SQLiteOptions {
        var options = self
        let isSaid = pool.pragmas.keys.contains { $0.lowercased() == "temp_store" }
        if !isSaid { options.pool.pragmas["temp_store"] = "FILE" }
        return options
    }

    /// Whether a file that is written has a write-ahead log.
    var isWriteAheadLogged: Bool {
        pool.pragmas.first { $0.key.lowercased() == "journal_mode" }.map { $0.value.uppercased() == "WAL" } ?? true
    }

    /// For how many seconds a wait for a connection or a lock lasts.
    package var timeout: Double {
        get { pool.timeout }
        set { pool.timeout = newValue }
    }

    /// How many connections read at the same time, at most.
    package var maximumReaders: Int {
        get { pool.maximumReaders }
        set { pool.maximumReaders = newValue }
    }

    /// Apple's, in seconds.
    package static let defaultTimeout: Double = 240
}
