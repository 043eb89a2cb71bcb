import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The log of a SQL store's statements.
///
/// `-com.apple.CoreData.SQLDebug N` turns it on.
///
/// Each line is independent and is written in one call, so that lines of several threads do not mix. Bound values are
/// never in a line, at no level: a log lives longer, and is read by more people, than a database.
///
/// Any thread may use it. Without that argument there is no log, and SQLite is not asked for reports.
struct SQLDebug: Sendable {
    /// The amount of detail in the log; each level includes those below it.
    enum Level: Int, Comparable, Sendable {
        /// Each statement, and the number of rows that it returned.
        case statements = 1
        /// The types of the bound values, and the time that the statement took.
        case bindings = 2
        /// SQLite's plan, and a warning if it scans many rows without an index.
        case plans = 3

        static func < (lhs: Level, rhs: Level) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    /// Receives one line, without a line break at its end.
    typealias Sink = @Sendable (String) -> Void

    let level: Level
    let sink: Sink

    /// The log that was requested when the process was started; `nil` for none.
    static let ofProcess: SQLDebug? = {
        let arguments = ProcessInfo.processInfo.arguments
        guard let level = level(arguments: arguments, environment: EnvironmentVariable.only(key)) else { return nil }
        return SQLDebug(level: level, sink: writeToStandardError)
    }()

    private static let key = "com.apple.CoreData.SQLDebug"

    /// The level that a process was started with; arguments take precedence over the environment.
    ///
    /// Numbers above the highest level count as the highest. Zero, and texts that are not numbers, give no level.
    static func level(arguments: [String], environment: [String: String]) -> Level? {
        var text = environment[key]
        if let position = arguments.lastIndex(of: "-" + key), arguments.indices.contains(position + 1) {
            text = arguments[position + 1]
        }
        guard let number = text.flatMap({ Int($0) }), number > 0 else { return nil }
        return Level(rawValue: min(number, Level.plans.rawValue))
    }

    private static let writeToStandardError: Sink = { line in
        // It is one call, so that lines of several threads stay whole. If standard error is closed, the process goes
        // on.
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    // MARK: - Following

    /// Logs the work of a pool's connections, from their next use on.
    func follow(_ pool: ConnectionPool) {
        var detail: TraceDetail = []
        if level >= .bindings { detail.insert(.bindings) }
        if level >= .plans { detail.insert(.plan) }
        pool.setTrace({ log($0) }, detail: detail)
    }

    private func log(_ event: TraceEvent) {
        for line in lines(for: event) { sink("CoreData: " + line) }
    }

    /// The number of scanned rows from which on a statement gets a warning.
    private static let manyRows = 1_000

    /// The log lines for one statement.
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
        // If a request asks for all rows, they have to be scanned.
        if event.scannedRows >= Self.manyRows, event.sql.contains(" WHERE ") {
            lines.append(
                "warning: \(event.scannedRows) rows were looked at one by one for lack of an index; add a fetch index on what the statement compares or sorts by."
            )
        }
        return lines
    }
}
