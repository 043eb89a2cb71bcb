import CStrataSQLite

/// One statement that ran to its end or was reset.
package struct TraceEvent: Sendable {
    /// The text with its parameters as placeholders.
    package let sql: String
    /// From the first step to the end or the reset: includes what the caller did between two rows.
    package let duration: Duration
    package let rows: Int

    package init(sql: String, duration: Duration, rows: Int) {
        self.sql = sql
        self.duration = duration
        self.rows = rows
    }
}

/// Receives each statement of a connection.
///
/// Called on the thread that runs the statement; must not use the connection.
package typealias TraceHandler = @Sendable (TraceEvent) -> Void

/// Listens to SQLite's own trace hook, so that a connection without a handler pays nothing.
///
/// Times are taken here, as SQLite's profile event counts in milliseconds on many systems. Confined like its connection.
final class Tracer {
    private let handler: TraceHandler
    private var running: [OpaquePointer: (start: UInt64, rows: Int)] = [:]

    init(handler: @escaping TraceHandler) {
        self.handler = handler
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

    private func receive(_ event: Int32, _ statement: OpaquePointer) {
        switch event {
        case SQLITE_TRACE_STMT:
            // Triggers report under the statement that fired them, whose start is already known.
            if running[statement] == nil { running[statement] = (BusyWait.now(), 0) }
        case SQLITE_TRACE_ROW:
            running[statement]?.rows += 1
        case SQLITE_TRACE_PROFILE:
            guard let run = running.removeValue(forKey: statement), let text = sqlite3_sql(statement) else { return }
            let duration = Duration.nanoseconds(Int64(BusyWait.now() &- run.start))
            handler(TraceEvent(sql: String(cString: text), duration: duration, rows: run.rows))
        default:
            break
        }
    }
}
