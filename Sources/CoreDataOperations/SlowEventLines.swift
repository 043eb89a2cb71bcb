import CoreDataEssentials
import Foundation

/// Writes one line of JSON for each event that took long, or ended with an error that is not a conflict.
///
/// See <doc:Instruments>.
///
/// ```swift
/// coordinator.instrument = SlowEventLines(from: .milliseconds(100)) { line in print(line) }
/// ```
///
/// The members are `time` (ISO 8601), `kind` and `ms`, and, if they are known, `storeMs`, `rows`, `context`, `entity`,
/// `statement`, `store` and `error`. Any thread may use it.
///
/// An addition to Apple's API.
public struct SlowEventLines: CoreDataInstrument {
    private let log: SlowLog<String>

    /// Makes an instrument that writes lines.
    ///
    /// - Parameters:
    ///   - threshold: The shortest duration that is reported.
    ///   - write: A function that receives a line without a line break, on the thread of the operation. Default:
    ///     standard error.
    public init(from threshold: Duration, write: (@Sendable (String) -> Void)? = nil) {
        log = SlowLog(threshold: threshold, handler: write)
    }

    /// Writes a line, if the event took long or has failed.
    ///
    /// - Parameter event: The event.
    public func record(_ event: CoreDataEvent) {
        if event.hasFailed {
            log.report(Self.line(of: event, at: Date()))
        } else {
            log.report(Self.line(of: event, at: Date()), ifSlow: event.duration)
        }
    }

    /// The line for an event.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - time: The time when it ended.
    /// - Returns: A JSON object without line breaks.
    public static func line(of event: CoreDataEvent, at time: Date) -> String {
        var members = ["\"time\":\"\(time.ISO8601Format())\"", "\"kind\":\"\(event.kind.rawValue)\""]
        func add(_ name: String, _ text: String?) {
            if let text { members.append("\"\(name)\":\(quoted(text))") }
        }
        members.append("\"ms\":\(milliseconds(event.duration))")
        if event.storeTime > .zero { members.append("\"storeMs\":\(milliseconds(event.storeTime))") }
        if event.rows > 0 { members.append("\"rows\":\(event.rows)") }
        add("context", event.context)
        add("entity", event.entity)
        add("statement", event.statement)
        add("store", event.store)
        if let code = event.errorCode { members.append("\"error\":\(code)") }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func milliseconds(_ duration: Duration) -> Double {
        Double(duration.wholeNanoseconds / 1000) / 1000
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case let scalar where scalar.value < 0x20: result += String(format: "\\u%04x", scalar.value)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

extension CoreDataEvent {
    /// Whether an error that is no conflict has ended it; conflicts are normal for a server with many clients.
    fileprivate var hasFailed: Bool {
        guard let errorCode else { return false }
        return errorCode != NSManagedObjectMergeError && errorCode != NSManagedObjectConstraintMergeError
    }
}
