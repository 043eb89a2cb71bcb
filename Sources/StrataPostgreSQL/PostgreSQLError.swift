/// An error of a database; it never contains a value of a row, a parameter or a secret.
package struct PostgreSQLError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// The server has refused a statement; the connection still works.
        case server
        /// There is no connection, or it was lost.
        case connection
        /// The server, or the pool, has not answered in time; the connection is given up.
        case deadline
        /// The caller has given up.
        case cancelled
        /// The server did not report whether a transaction was committed, and it was found that it was not.
        case rolledBack
        /// The library was asked for something impossible.
        case misuse
    }

    package let kind: Kind
    /// The SQLSTATE, or an empty text if the server has not said anything.
    package let sqlState: String
    package let message: String
    /// The constraint that was broken.
    package var constraint: String?
    package var table: String?

    package init(
        _ kind: Kind,
        sqlState: String = "",
        _ message: String,
        constraint: String? = nil,
        table: String? = nil
    ) {
        self.kind = kind
        self.sqlState = sqlState
        self.message = message
        self.constraint = constraint
        self.table = table
    }

    /// Whether the transaction was certainly rolled back, and may be tried again.
    package var isTransient: Bool { sqlState == "40001" || sqlState == "40P01" }

    /// Whether the server itself does not know how the transaction has ended.
    package var leavesDoubt: Bool { sqlState == "40003" }

    /// Whether the server accepts no connection for now: it starts, recovers, stops, or has no room for one more.
    package var isBusy: Bool { kind == .connection && ["57P03", "53300"].contains(sqlState) }

    /// Whether the server, the database or the role has no room for another connection.
    var hasNoRoom: Bool { kind == .connection && sqlState == "53300" }

    /// The error at the end of a wait for the server; it says for how long there was no room, if that was the reason.
    func afterWaiting(_ seconds: Double) -> PostgreSQLError {
        guard hasNoRoom else { return self }
        let time = (seconds * 10).rounded() / 10
        return PostgreSQLError(
            kind,
            sqlState: sqlState,
            "the server had no room for another connection for \(time) s: \(message)"
        )
    }

    /// Whether the server will always refuse such a connection: the password is wrong, or the database does not exist.
    var isRefusal: Bool { kind == .connection && (sqlState.hasPrefix("28") || sqlState.hasPrefix("3D")) }

    /// The SQLSTATE of a connection that was closed before its session was ready.
    static let cutOff = "08006"
    /// The SQLSTATE of a connection that no server has accepted.
    static let unreached = "08001"

    /// Whether no server has accepted the connection, but one may soon: the server restarts, or another one replaces
    /// it.
    var isUnreached: Bool { kind == .connection && (sqlState == Self.cutOff || sqlState == Self.unreached) }

    /// Whether statements have to be prepared anew: the tables have changed since, or the pooler has switched to
    /// another server.
    package var isStale: Bool { sqlState == "0A000" || sqlState == "26000" || isNameTaken }

    /// Whether the session already has a statement of that name, which another client of the pooler has prepared.
    var isNameTaken: Bool { sqlState == "42P05" }

    /// Whether the server does not know the request, does not allow it to the role, or is only a replica.
    package var isUnavailable: Bool { ["0A000", "25006", "42501", "42601", "42883"].contains(sqlState) }

    /// Whether a unique index has refused a row.
    package var isUniqueViolation: Bool { sqlState == "23505" }

    /// Whether a foreign key has refused a change of the transaction.
    package var isForeignKeyViolation: Bool { sqlState == "23503" }

    package var description: String {
        guard !sqlState.isEmpty else { return "PostgreSQL: \(message)" }
        let key = isForeignKeyViolation ? constraint.map { ", by the foreign key \($0)" } ?? "" : ""
        return "PostgreSQL, SQLSTATE \(sqlState): \(message)\(key)"
    }

    /// The classes of SQLSTATEs whose messages name the server, objects of the schema or parts of the statement, but no
    /// values.
    private static let harmlessClasses: Set<String> = [
        "08", "0A", "25", "26", "28", "34", "3B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "XX",
    ]

    /// The text of a server's message, or a general text if the message may repeat a value.
    package static func harmless(_ message: String, sqlState: String) -> String {
        harmlessClasses.contains(String(sqlState.prefix(2))) ? message : meaning(sqlState)
    }

    /// The first line of libpq's message about a lost connection; `nil` if it may repeat a value.
    ///
    /// That line comes from libpq itself and names hosts, or it is the beginning of the server's last message.
    static func reportedLoss(_ line: String) -> String? {
        guard let severity = line.range(of: ":  ") else { return line.isEmpty ? nil : line }
        let state = line[severity.upperBound...].prefix { $0 != ":" }
        return harmlessClasses.contains(String(state.prefix(2))) && state.count == 5 ? line : nil
    }

    private static func meaning(_ sqlState: String) -> String {
        switch sqlState {
        case "23505": "a unique value is there already"
        case "23503": "a row that is referred to is not there"
        case "23502": "a value is missing"
        case "23514": "a check has failed"
        case "22003": "a number is out of range"
        case "22021": "a text has a character that the database cannot keep"
        case "22008": "a date is out of range"
        default: "the server has refused a value"
        }
    }
}
