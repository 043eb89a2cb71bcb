import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The log of a SQL store's statements, which `-com.apple.CoreData.SQLDebug N` turns on.
///
/// Each line stands by itself and is written in one piece, so that those of several threads do not mix. Values that are
/// bound are never in a line, at no level: a log lives longer, and is read by more people, than a database.
///
/// Any thread may use it. A process that asks for no log has none: SQLite is not even told to report.
struct SQLDebug: Sendable {
    /// How much is logged; each level has what those below it have.
    enum Level: Int, Comparable, Sendable {
        /// Each statement, and how many rows came of it.
        case statements = 1
        /// The types of what was bound, and how long the statement took.
        case bindings = 2
        /// SQLite's plan, and a warning where it looks at many rows without an index.
        case plans = 3

        static func < (lhs: Level, rhs: Level) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// Takes one line, without a line break at its end.
    typealias Sink = @Sendable (String) -> Void

    let level: Level
    let sink: Sink

    /// What the process was started with; `nil` for no log.
    static let ofProcess: SQLDebug? = {
        let process = ProcessInfo.processInfo
        guard let level = level(arguments: process.arguments, environment: process.environment) else { return nil }
        return SQLDebug(level: level, sink: writeToStandardError)
    }()

    private static let key = "com.apple.CoreData.SQLDebug"

    /// The level that a process was asked for; arguments win over the environment.
    ///
    /// Numbers above the highest level are the highest; zero, and what is no number, are no level.
    static func level(arguments: [String], environment: [String: String]) -> Level? {
        var text = environment[key]
        if let position = arguments.lastIndex(of: "-" + key), arguments.indices.contains(position + 1) {
            text = arguments[position + 1]
        }
        guard let number = text.flatMap({ Int($0) }), number > 0 else { return nil }
        return Level(rawValue: min(number, Level.plans.rawValue))
    }

    private static let writeToStandardError: Sink = { line in
        // One call, so that lines of several threads stay whole. A closed standard error is no reason to stop.
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    // MARK: - Following

    /// Logs what the connections of a pool do from their next use on.
    func follow(_ pool: ConnectionPool) {
        var detail: TraceDetail = []
        if level >= .bindings { detail.insert(.bindings) }
        if level >= .plans { detail.insert(.plan) }
        pool.setTrace({ log($0) }, detail: detail)
    }

    private func log(_ event: TraceEvent) {
        for line in lines(for: event) { sink("CoreData: " + line) }
    }

    /// From how many scanned rows on a statement is worth a warning.
    private static let manyRows = 1_000

    /// What is said about one statement.
    func lines(for event: TraceEvent) -> [String] {
        var lines = ["sql: \(event.sql)"]
        let rows = "\(event.rows) row\(event.rows == 1 ? "" : "s")"
        guard level >= .bindings else { return lines + ["annotation: \(rows)"] }
        if !event.bindings.isEmpty { lines.append("bound: \(event.bindings.joined(separator: ", "))") }
        let (seconds, fraction) = event.duration.components
        let time = Double(seconds) + Double(fraction) / 1e18
        lines.append("annotation: \(rows) in \(String(format: "%.4f", time))s")
        guard level >= .plans else { return lines }
        lines += event.plan.map { "plan: \($0)" }
        // Whoever asks for all rows wants them scanned.
        if event.scannedRows >= Self.manyRows, event.sql.contains(" WHERE ") {
            lines.append(
                "warning: \(event.scannedRows) rows were looked at one by one for lack of an index; add a fetch index on what the statement compares or sorts by."
            )
        }
        return lines
    }
}
