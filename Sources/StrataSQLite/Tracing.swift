import CStrataSQLite
import StrataLocks

/// One statement that ran to its end or was reset.
package struct TraceEvent: Sendable {
    /// The text with its parameters as placeholders.
    package let sql: String
    /// The time from the first step to the end or the reset.
    ///
    /// It includes the caller's work between two rows.
    package let duration: Duration
    package let rows: Int
    /// The types of the bound values, with the sizes of texts and blobs; empty unless they were asked for.
    package let bindings: [String]
    /// SQLite's plan, a line for each step; empty unless it was asked for.
    package let plan: [String]
    /// The number of rows of tables that were scanned without the help of an index; 0 unless the plan was asked for.
    package let scannedRows: Int

    package init(
        sql: String,
        duration: Duration,
        rows: Int,
        bindings: [String] = [],
        plan: [String] = [],
        scannedRows: Int = 0
    ) {
        self.sql = sql
        self.duration = duration
        self.rows = rows
        self.bindings = bindings
        self.plan = plan
        self.scannedRows = scannedRows
    }
}

/// Receives each statement of a connection.
///
/// It is called on the thread that runs the statement, and must not use the connection.
package typealias TraceHandler = @Sendable (TraceEvent) -> Void

/// The parts of a trace beside the text, the time and the number of rows of a statement.
package struct TraceDetail: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// The types of the bound values, never the values.
    package static let bindings = TraceDetail(rawValue: 1)
    /// The query plan, and the number of scanned rows.
    package static let plan = TraceDetail(rawValue: 2)
}

/// Uses SQLite's own trace hook, so that a connection without a handler pays nothing.
///
/// It measures times itself, because SQLite's profile event counts in milliseconds on many systems. It is confined like
/// its connection.
final class Tracer {
    private let handler: TraceHandler
    private let detail: TraceDetail
    private var running: [OpaquePointer: (start: UInt64, rows: Int)] = [:]
    /// The plans by the text of the statement.
    private var plans: [String: [String]] = [:]
    private var isExplaining = false

    init(detail: TraceDetail, handler: @escaping TraceHandler) {
        self.handler = handler
        self.detail = detail
    }

    /// Makes SQLite report to `self`, which the connection keeps alive until it is closed or `uninstall` is called.
    func install(on handle: OpaquePointer) {
        let events = UInt32(SQLITE_TRACE_STMT | SQLITE_TRACE_ROW | SQLITE_TRACE_PROFILE)
        sqlite3_trace_v2(
            handle,
            events,
            { event, context, statement, _ in
                guard let context, let statement else { return 0 }
                Unmanaged<Tracer>.fromOpaque(context).takeUnretainedValue()
                    .receive(Int32(bitPattern: event), OpaquePointer(statement))
                return 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    static func uninstall(from handle: OpaquePointer) {
        sqlite3_trace_v2(handle, 0, nil, nil)
    }

    // MARK: - Plans

    /// Reads the plan of a statement that was just prepared.
    ///
    /// It must not be called from inside the hook, where the connection may not be used.
    func explain(_ sql: String, on connection: Connection) {
        guard detail.contains(.plan), !isExplaining, plans[sql] == nil else { return }
        if plans.count >= WorkSize.rememberedPlans { plans.removeAll() }
        isExplaining = true
        defer { isExplaining = false }
        // A statement that cannot be explained, such as PRAGMA, has no plan.
        plans[sql] = (try? connection.queryPlan(sql)) ?? []
    }

    // MARK: - Events

    private func receive(_ event: Int32, _ statement: OpaquePointer) {
        guard !isExplaining else { return }
        switch event {
        case SQLITE_TRACE_STMT:
            // Triggers report under the statement that fired them. Its start is already known.
            if running[statement] == nil { running[statement] = (BusyWait.now(), 0) }
        case SQLITE_TRACE_ROW:
            running[statement]?.rows += 1
        case SQLITE_TRACE_PROFILE:
            guard let run = running.removeValue(forKey: statement), let text = sqlite3_sql(statement) else { return }
            report(statement, String(cString: text), since: run.start, rows: run.rows)
        default:
            break
        }
    }

    private func report(_ statement: OpaquePointer, _ sql: String, since start: UInt64, rows: Int) {
        let duration = Duration.nanoseconds(Int64(BusyWait.now() &- start))
        guard !detail.isEmpty else { return handler(TraceEvent(sql: sql, duration: duration, rows: rows)) }
        var scanned = 0
        if detail.contains(.plan) {
            scanned = Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1))
        }
        handler(
            TraceEvent(
                sql: sql,
                duration: duration,
                rows: rows,
                bindings: detail.contains(.bindings) ? BoundTypes.of(statement, sql) : [],
                plan: plans[sql] ?? [],
                scannedRows: scanned
            )
        )
    }
}

/// Finds the types of the values that are bound to a statement, without revealing the values.
///
/// SQLite shows bound values only in the expanded text. So this reads that text and the original side by side.
enum BoundTypes {
    static func of(_ statement: OpaquePointer, _ sql: String) -> [String] {
        guard sqlite3_bind_parameter_count(statement) > 0, let expanded = sqlite3_expanded_sql(statement) else {
            return []
        }
        defer { sqlite3_free(expanded) }
        return compare(Array(sql.utf8), Array(String(cString: expanded).utf8))
    }

    private static let quote = UInt8(ascii: "'")

    static func compare(_ plain: [UInt8], _ expanded: [UInt8]) -> [String] {
        var types: [String] = []
        var place = 0
        var closing: UInt8?
        var isNumbering = false
        for byte in plain {
            if isNumbering, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { continue }
            isNumbering = false
            if let end = closing {
                // A doubled quotation mark closes and opens again.
                if byte == end { closing = nil }
            } else if byte == quote || byte == UInt8(ascii: "\"") {
                closing = byte
            } else if byte == UInt8(ascii: "?") {
                types.append(literal(expanded, &place))
                isNumbering = true
                continue
            }
            place += 1
        }
        return types
    }

    /// The type of the literal at a place.
    ///
    /// The place moves behind it.
    private static func literal(_ text: [UInt8], _ place: inout Int) -> String {
        guard place < text.count else { return "?" }
        switch text[place] {
        case quote: return "text(\(skipQuoted(text, &place)))"
        case UInt8(ascii: "x") where place + 1 < text.count && text[place + 1] == quote:
            place += 1
            return "blob(\(skipQuoted(text, &place) / 2))"
        case UInt8(ascii: "N"):
            place += 4
            return "null"
        default:
            let start = place
            while place < text.count, "+-.0123456789eEInf".utf8.contains(text[place]) { place += 1 }
            return text[start..<place].allSatisfy { "-0123456789".utf8.contains($0) } ? "integer" : "real"
        }
    }

    /// Moves behind a text in quotation marks, and returns the number of bytes between them.
    private static func skipQuoted(_ text: [UInt8], _ place: inout Int) -> Int {
        place += 1
        var count = 0
        while place < text.count {
            if text[place] == quote {
                place += 1
                guard place < text.count, text[place] == quote else { return count }
            }
            count += 1
            place += 1
        }
        return count
    }
}
