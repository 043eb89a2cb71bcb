import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// Reports what a migration does: a line for each one that is done, and more with `-com.apple.CoreData.MigrationDebug 1`.
///
/// Names of entities and properties are in it, and never a value.
struct MigrationLog {
    private let url: URL
    /// From which version to which, and how.
    private let way: String
    /// The things that go, and others that the author of the model may not expect.
    private let remarks: [String]
    private let start = ContinuousClock.now

    /// Whether the process was started so that each piece of work is reported.
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
    ///   - source: The version that it has.
    ///   - destination: The version that it shall have.
    ///   - means: The mapping model, or whatever else says what becomes of values.
    ///   - remarks: The things that go, and others that the author of the model may not expect.
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

    /// Reports something about the migration of a store, if that is wanted.
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

    /// Reports what was done; `nil` if another connection was first.
    func end(_ report: SQLiteMigrationReport?) {
        guard let report else { return note("another connection has migrated the store") }
        end(
            "\(report.copiedTables.count) tables copied with \(report.copiedRows) rows, \(report.changedTables.count) changed in place, \(report.untouchedTables.count) untouched"
        )
    }

    private static func write(_ url: URL, _ line: String) {
        // One call, so that lines of several threads stay whole.
        try? FileHandle.standardError.write(contentsOf: Data("CoreData: migration: \(url.placeName): \(line)\n".utf8))
    }
}
