/// An error of SQLite, with the operation and the statement.
///
/// It contains the text of the statement but never a value bound to it, so that it may be logged.
public struct SQLiteError: Error, Sendable {
    /// The operation during which the error occurred.
    public enum Operation: String, Sendable {
        case open = "opening"
        case configure = "configuring"
        case prepare = "preparing"
        case bind = "binding"
        case step = "stepping"
        case begin = "beginning a transaction"
        case commit = "committing"
        case checkpoint = "checkpointing"
        case waitForReader = "waiting for a reader connection"
        case waitForWriter = "waiting for the writer connection"
        case write = "writing a file beside the database"
        case pin = "pinning a snapshot"
        case close = "closing"
    }

    /// The duration and the cause of a wait that was given up.
    package struct Wait: Sendable, Equatable {
        package enum Blocker: String, Sendable {
            /// Another thread of this process has the connection, or the turn to write to this file.
            case otherThread = "another thread of this process"
            /// Another process holds a lock on the file, or a connection of this process outside this layer does.
            case otherConnection = "another process, or a foreign connection of this one"
        }

        package var seconds: Double
        package let blocker: Blocker
        /// The process in the way, if the system reports it.
        package let holder: LockHolder?

        package init(seconds: Double, blocker: Blocker, holder: LockHolder? = nil) {
            self.seconds = seconds
            self.blocker = blocker
            self.holder = holder
        }

        /// The text for the cause of the wait.
        package var blockerText: String { holder?.description ?? blocker.rawValue }
    }

    /// The primary code; ``extendedCode`` has the detail.
    package var code: ResultCode { extendedCode.primary }

    package let extendedCode: ResultCode
    package let message: String
    /// The statement with its parameters as placeholders, or `nil` if no statement was running.
    package let sql: String?
    package var operation: Operation
    /// The wait, if the error is a time-out.
    package var wait: Wait?

    package init(
        code: ResultCode,
        message: String,
        sql: String? = nil,
        operation: Operation,
        wait: Wait? = nil
    ) {
        self.extendedCode = code
        self.message = message
        self.sql = sql
        self.operation = operation
        self.wait = wait
    }

    /// The error of an operation that was cancelled before it reached SQLite.
    static func cancelled(_ operation: Operation) -> SQLiteError {
        SQLiteError(code: .interrupt, message: "cancelled", operation: operation)
    }

    /// The error of a call to a pool that is closed.
    static func closed(_ operation: Operation) -> SQLiteError {
        SQLiteError(code: .misuse, message: "the pool is closed", operation: operation)
    }

    /// The error of a wait that ended because of its deadline.
    static func timedOut(
        _ operation: Operation,
        after seconds: Double,
        blocker: Wait.Blocker,
        holder: LockHolder? = nil,
        extendedCode: ResultCode = .busy
    ) -> SQLiteError {
        let time = (seconds * 1000).rounded() / 1000
        let wait = Wait(seconds: seconds, blocker: blocker, holder: holder)
        return SQLiteError(
            code: extendedCode,
            message: "gave up after waiting \(time) s for \(wait.blockerText)",
            operation: operation,
            wait: wait
        )
    }
}

extension SQLiteError: CustomStringConvertible {
    /// The code, the operation, the message and the statement, in one line.
    public var description: String {
        let reason = extendedCode.inputOutputText.map { "\($0), \(message)" } ?? message
        var text = "SQLite error \(extendedCode.rawValue) while \(operation.rawValue): \(reason)"
        if let sql { text += " – in: \(sql)" }
        return text
    }
}
