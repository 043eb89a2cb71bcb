import CoreDataEssentials
import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// Reports migrations: a line for each one that has ended, and more with `-com.apple.CoreData.MigrationDebug 1`.
///
/// The lines contain names of entities and properties, and never a value.
struct MigrationLog {
    private let url: URL
    /// The source version, the destination version, and the means.
    private let way: String
    /// The losses, and other effects that the author of the model may not expect.
    private let remarks: [String]
    private let start = ContinuousClock.now

    /// Whether an argument of the process turns on a report of each piece of work.
    private static let isOn = isSet("com.apple.CoreData.MigrationDebug")

    /// Whether the process was started with an argument, or an environment variable, that is a number above 0.
    ///
    /// - Parameter key: The name of both.
    /// - Returns: Whether it was.
    static func isSet(_ key: String) -> Bool {
        let process = ProcessInfo.processInfo
        var text = process.environment[key]
        if let position = process.arguments.lastIndex(of: "-" + key), process.arguments.indices.contains(position + 1) {
            text = process.arguments[position + 1]
        }
        return text.flatMap { Int($0) }.map { $0 > 0 } ?? false
    }

    /// - Parameters:
    ///   - url: The store.
    ///   - source: The version of the store before the migration.
    ///   - destination: The version of the store after the migration.
    ///   - means: The mapping model, or another definition of what happens to values.
    ///   - remarks: The losses, and other effects that the author of the model may not expect.
    init(
        _ url: URL,
        from source: SourceModel,
        to destination: NSManagedObjectModel,
        by means: String,
        remarks: [String] = []
    ) {
        self.url = url
        self.remarks = remarks
        way = "from version \(source.model.versionChecksum) to \(destination.versionChecksum) by \(means)"
        note("begins \(way), as found in \(source.origin.rawValue)")
    }

    /// Reports a detail about the migration of a store, if that is turned on.
    static func note(_ url: URL, _ line: String) {
        if isOn { write(url, line) }
    }

    func note(_ line: String) { Self.note(url, line) }

    /// Reports that the migration is done.
    ///
    /// - Parameter work: The work that was done, if it was counted.
    func end(_ work: String? = nil) {
        let time = ContinuousClock.now - start
        let details = ([work].compactMap(\.self) + remarks).joined(separator: "; ")
        Self.write(url, "done \(way) in \(time)\(details.isEmpty ? "" : ": \(details)")")
    }

    /// Reports the work of an engine; `nil` means that another connection was first.
    func end(_ report: SQLiteMigrationReport?) {
        guard let report else { return note("another connection has migrated the store") }
        end(
            "\(report.copiedTables.count) tables copied with \(report.copiedRows) rows, \(report.changedTables.count) changed in place, \(report.untouchedTables.count) untouched"
        )
    }

    private static func write(_ url: URL, _ line: String) {
        // A single call keeps lines of several threads intact.
        try? FileHandle.standardError.write(contentsOf: Data("CoreData: migration: \(url.placeName): \(line)\n".utf8))
    }
}
