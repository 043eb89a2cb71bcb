import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// Tells what a migration does, for `-com.apple.CoreData.MigrationDebug 1`.
///
/// Names of entities and properties are in it, and never a value.
struct MigrationLog {
    private let url: URL
    private let start = ContinuousClock.now

    private init(_ url: URL) { self.url = url }

    private static let key = "com.apple.CoreData.MigrationDebug"

    /// Whether the process was started so.
    private static let isOn: Bool = {
        let process = ProcessInfo.processInfo
        var text = process.environment[key]
        if let position = process.arguments.lastIndex(of: "-" + key), process.arguments.indices.contains(position + 1) {
            text = process.arguments[position + 1]
        }
        return text.flatMap { Int($0) }.map { $0 > 0 } ?? false
    }()

    static func begin(
        _ url: URL,
        _ source: SourceModel,
        _ destination: NSManagedObjectModel,
        _ mapping: InferredMapping
    ) -> MigrationLog {
        let log = MigrationLog(url)
        log.write(
            "from \(source.model.versionChecksum), found in \(source.origin.rawValue), to \(destination.versionChecksum)"
        )
        for remark in mapping.remarks { log.write(remark) }
        return log
    }

    /// Tells something about the migration of a store.
    static func note(_ url: URL, _ line: String) { MigrationLog(url).write(line) }

    /// Tells that the migration is done, by a way that counts nothing.
    func end() { write("done in \(ContinuousClock.now - start)") }

    /// Tells what was done; `nil` if somebody else was first.
    func end(_ report: SQLiteMigrationReport?) {
        guard let report else { return write("another connection has migrated the store") }
        write(
            "done in \(ContinuousClock.now - start): \(report.copiedTables.count) tables copied with \(report.copiedRows) rows, \(report.changedTables.count) changed in place, \(report.untouchedTables.count) untouched"
        )
    }

    private func write(_ line: String) {
        guard Self.isOn else { return }
        // One call, so that lines of several threads stay whole.
        try? FileHandle.standardError.write(contentsOf: Data("CoreData: migration: \(url.placeName): \(line)\n".utf8))
    }
}
