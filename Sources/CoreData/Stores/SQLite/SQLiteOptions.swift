import Foundation
import StrataSQLite

/// What a store's options come to.
struct SQLiteOptions {
    /// Where the database is.
    enum Place: Equatable {
        case file(String)
        /// `/dev/null`: a database in memory that nobody else sees.
        case privateMemory
        /// `/dev/null/NAME`: a database in memory that all stores of this process with that URL share.
        case sharedMemory(String)
    }

    let place: Place
    let isReadOnly: Bool
    let ignoresVersions: Bool
    let vacuums: Bool
    let analyzes: Bool
    /// Whether changes are recorded in the history.
    let tracksHistory: Bool
    /// What a commit promises about a loss of power.
    enum Synchronous {
        /// Nothing: not even a sound file.
        case off
        /// That nothing is missing but the newest commits.
        case normal
        /// That it is there.
        case full
    }

    /// What commits promise, so that external files have to as well.
    let synchronous: Synchronous
    private(set) var pool = PoolOptions()

    /// - Throws: `persistentStoreOpen` (134080) for a URL that is no file's, and for pragmas that are no texts or numbers.
    init(url: URL, _ options: [AnyHashable: Any]?) throws {
        let options = options ?? [:]
        guard url.isFileURL else {
            throw CocoaError(
                .persistentStoreOpen,
                userInfo: [
                    NSLocalizedDescriptionKey: "A SQLite store needs the URL of a file, not \(url.absoluteString)."
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
        func flag(_ key: String) -> Bool { StoreOption.flag(options[key]) }
        isReadOnly = flag(NSReadOnlyPersistentStoreOption)
        ignoresVersions = flag(NSIgnorePersistentStoreVersioningOption)
        vacuums = flag(NSSQLiteManualVacuumOption)
        analyzes = flag(NSSQLiteAnalyzeOption)
        // A dictionary is how Apple's framework takes details.
        tracksHistory =
            flag(NSPersistentHistoryTrackingKey) || options[NSPersistentHistoryTrackingKey] is [AnyHashable: Any]
            || options[NSPersistentHistoryTrackingKey] is NSDictionary

        pool.pragmas = try Self.pragmas(options[NSSQLitePragmasOption])
        let seconds = Self.number(options[NSPersistentStoreTimeoutOption])
        pool.timeout = seconds.map { $0 >= 0 ? $0 : Self.defaultTimeout } ?? Self.defaultTimeout
        if let size = Self.number(options[NSPersistentStoreConnectionPoolMaxSizeKey]), size >= 1 {
            pool.maximumReaders = Int(min(size, 1024))
        }
        switch pool.pragmas.first(where: { $0.key.lowercased() == "synchronous" })?.value.uppercased() {
        case "FULL", "EXTRA", "2", "3": synchronous = .full
        case "OFF", "0": synchronous = .off
        default: synchronous = .normal
        }
    }

    /// Apple's, in seconds.
    private static let defaultTimeout: Double = 240

    private static func number(_ value: Any?) -> Double? {
        (value as? Double) ?? (value as? Int).map(Double.init) ?? (value as? NSNumber)?.doubleValue
            ?? (value as? String).flatMap(Double.init)
    }

    private static func pragmas(_ value: Any?) throws -> [String: String] {
        guard let value else { return [:] }
        guard let dictionary = value as? [AnyHashable: Any] else { throw badPragmas("\(value)") }
        var pragmas: [String: String] = [:]
        for (name, value) in dictionary {
            guard let name = name as? String else { throw badPragmas("\(name)") }
            switch value {
            case let text as String: pragmas[name] = text
            case let flag as Bool: pragmas[name] = flag ? "1" : "0"
            case let number as any BinaryInteger: pragmas[name] = "\(number)"
            case let number as NSNumber: pragmas[name] = number.stringValue
            default: throw badPragmas("\(name) = \(value)")
            }
        }
        return pragmas
    }

    private static func badPragmas(_ text: String) -> CocoaError {
        CocoaError(
            .persistentStoreOpen,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "NSSQLitePragmasOption must be a dictionary of names and texts or numbers; \(text) is not."
            ]
        )
    }
}
