import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// The meaning of a store's options.
package struct SQLiteOptions: Sendable {
    /// The place of the database.
    package enum Place: Equatable, Sendable {
        case file(String)
        /// `/dev/null`: a private database in memory.
        case privateMemory
        /// `/dev/null/NAME`: a database in memory that all stores of this process with that URL share.
        case sharedMemory(String)
    }

    package let place: Place
    package let isReadOnly: Bool
    /// Whether a file is opened that was made with another version of the model.
    package var ignoresVersions = false
    /// Whether opening compacts the file.
    package var vacuums = false
    /// Whether opening gathers statistics for the query planner.
    package var analyzes = false
    /// Whether changes are recorded in the history.
    package var tracksHistory = false
    /// Whether a migration defers the removal of old columns.
    package var defersCleanUp = false
    /// The guarantee of a commit against a loss of power.
    package enum Synchronous: Sendable {
        /// There is no guarantee: even the file may be damaged.
        case off
        /// Only the newest commits may be missing.
        case normal
        /// The commit is not lost.
        case full
    }

    /// The guarantee of commits, which external files have to give as well.
    package let synchronous: Synchronous
    private(set) var pool = PoolOptions()

    /// Makes options for a store that is read and written, without a history.
    ///
    /// - Parameters:
    ///   - url: The place of the database.
    ///   - isReadOnly: Whether saves are refused.
    ///   - pragmas: The settings of each connection, by the names of SQLite's pragmas.
    /// - Throws: `persistentStoreOpen` (134080) for a URL that is not a file's.
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

    /// These options for work that may sort a whole table, such as making an index: SQLite then sorts in files.
    ///
    /// In memory, sorting would take as much space as the table.
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

    /// The longest wait for a connection or a lock, in seconds.
    package var timeout: Double {
        get { pool.timeout }
        set { pool.timeout = newValue }
    }

    /// The most connections that read at the same time.
    package var maximumReaders: Int {
        get { pool.maximumReaders }
        set { pool.maximumReaders = newValue }
    }

    /// The default of Apple's framework, in seconds.
    package static let defaultTimeout: Double = 240
}
