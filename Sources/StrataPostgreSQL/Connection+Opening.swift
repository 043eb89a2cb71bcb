import CStrataPostgreSQL
import Foundation

extension Connection {
    /// Opens a connection.
    ///
    /// If there are several hosts, then it leads to the first one that accepts it and has the role that the URL asks
    /// for.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - timeout: How many seconds to wait for the servers, in all.
    ///   - most: The most seconds to wait for each of several hosts, the last one included; `nil` for no such limit.
    ///   - process: Returns the number of this process; tests pass other functions.
    ///   - check: Examines a connection; if it throws, the next host is tried.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``.
    package static func open(
        _ target: ConnectionTarget,
        timeout: Double,
        most: Double? = nil,
        process: @escaping @Sendable () -> pid_t = { getpid() },
        check: (Connection) throws -> Void = { _ in }
    ) throws -> Connection {
        let end = ContinuousClock.now + .seconds(timeout)
        // libpq goes on to the next host when one refuses, but it waits forever for a silent host.
        let choices = try HostChoices.of(target)
        var failure: (any Error)?
        for (index, choice) in choices.enumerated() {
            let rest = max((end - .now) / .seconds(1), 0)
            let isLast = index == choices.count - 1
            let fair = isLast ? rest : min(rest / Double(choices.count - index), longestWait)
            let share = choices.count > 1 ? min(fair, most ?? fair) : fair
            let shareEnd = ContinuousClock.now + .seconds(share)
            do {
                let handle = try open(target, choice, timeout: share)
                // The server may accept the connection and then be silent. After the last host there is no next one to
                // save time for.
                let connection = Connection(
                    handle,
                    to: target,
                    patience: max((shareEnd - .now) / .seconds(1), isLast && most == nil ? 1 : shortestWait),
                    process: process
                )
                do {
                    try check(connection)
                } catch let error as PostgreSQLError where error.kind == .connection && connection.isBroken {
                    // The server was about to stop or to restart when it accepted the connection.
                    throw PostgreSQLError(.connection, sqlState: PostgreSQLError.cutOff, error.message)
                }
                connection.patience = max(timeout, 1)
                return connection
            } catch let error as PostgreSQLError where error.kind != .misuse {
                // If the host had too little time to answer, it may still be a good one.
                if error.kind == .deadline, share >= tellingWait { HostChoices.addSilent(choice) }
                failure = error
            }
        }
        throw failure ?? PostgreSQLError(.connection, "the URL has no host")
    }

    /// The most seconds to wait for one of several hosts.
    private static let longestWait = 10.0
    private static let shortestWait = 0.1
    /// How many seconds a host has to be silent before other connections try it last.
    private static let tellingWait = 0.5

    private static func open(
        _ target: ConnectionTarget,
        _ choice: [(String, String)],
        timeout: Double
    ) throws -> OpaquePointer {
        let handle = try start(target, choice)
        do {
            try finish(handle, timeout: min(timeout, connectTimeout(handle)))
            PQsetnonblocking(handle, 1)
            for (name, owner) in [("server_encoding", "database"), ("client_encoding", "session")] {
                let encoding = PQparameterStatus(handle, name).map { String(cString: $0) } ?? ""
                guard encoding == "UTF8" else {
                    throw PostgreSQLError(.misuse, "the \(owner) has the encoding \(encoding), and must have UTF8")
                }
            }
            guard PQserverVersion(handle) >= 130_000 else {
                throw PostgreSQLError(.misuse, "the server is older than PostgreSQL 13")
            }
        } catch {
            PQfinish(handle)
            throw error
        }
        return handle
    }

    /// The most seconds that a host may take, from the URL, a service file or the environment; libpq obeys this setting
    /// only in its blocking calls.
    private static func connectTimeout(_ handle: OpaquePointer) -> Double {
        guard let seconds = settings(handle)["connect_timeout"].flatMap(Double.init), seconds > 0 else {
            return .infinity
        }
        return seconds
    }

    /// Begins to connect; nothing is sent yet.
    ///
    /// If a server is not on this machine, then it has to prove its identity, unless the URL, a service file or the
    /// environment says otherwise. A service file or the environment may name the host too, so libpq is asked for the
    /// settings that it has found.
    private static func start(_ target: ConnectionTarget, _ choice: [(String, String)]) throws(PostgreSQLError)
        -> OpaquePointer
    {
        let handle = try start(target.parameters + choice)
        guard !target.saysHowToVerify, !target.verifiesServer else { return handle }
        let found = settings(handle)
        let places = (found["hostaddr"] ?? found["host"] ?? "").split(separator: ",").map(String.init)
        guard !places.allSatisfy(ConnectionTarget.isNear), found["sslmode"] == "prefer" else { return handle }
        PQfinish(handle)
        return try start([("sslmode", "verify-full")] + target.parameters + choice)
    }

    /// The `sslmode` that is in effect: how a server has to prove its identity.
    package static func verification(of target: ConnectionTarget) throws(PostgreSQLError) -> String? {
        try settings(of: target)["sslmode"]
    }

    /// The settings that libpq finds for a target, including those of service files and of the environment.
    static func settings(of target: ConnectionTarget) throws(PostgreSQLError) -> [String: String] {
        // The invalid value makes libpq stop after it has read all settings, so it does not begin to connect.
        let handle = try start(target, [("channel_binding", "unknown")])
        defer { PQfinish(handle) }
        return settings(handle)
    }

    /// The settings of a connection, from the URL, a service file, the environment and libpq itself.
    private static func settings(_ handle: OpaquePointer) -> [String: String] {
        guard let options = PQconninfo(handle) else { return [:] }
        defer { PQconninfoFree(options) }
        var settings: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val, value.pointee != 0 {
                settings[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        return settings
    }

    private static func start(_ parameters: [(String, String)]) throws(PostgreSQLError) -> OpaquePointer {
        var keywords = parameters.map { UnsafePointer<CChar>(strdup($0.0)) }
        var values = parameters.map { UnsafePointer<CChar>(strdup($0.1)) }
        defer {
            for text in keywords + values { free(UnsafeMutableRawPointer(mutating: text)) }
        }
        keywords.append(nil)
        values.append(nil)
        guard let handle = PQconnectStartParams(keywords, values, 1) else {
            throw PostgreSQLError(.connection, "there is no memory for a connection")
        }
        // A server may send notices as soon as it accepts the connection.
        strata_pq_be_quiet(handle)
        // Messages contain the SQLSTATE, which distinguishes a server that is starting from one that refuses.
        PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        return handle
    }

    private static func finish(_ handle: OpaquePointer, timeout: Double) throws(PostgreSQLError) {
        let end = ContinuousClock.now + .seconds(timeout)
        var state = PGRES_POLLING_WRITING
        var hasSpoken = false
        while PQstatus(handle) != CONNECTION_BAD {
            if state == PGRES_POLLING_OK { return }
            if state == PGRES_POLLING_FAILED { break }
            let rest = max(0, (end - .now) / .seconds(1))
            guard
                try wait(
                    for: PQsocket(handle),
                    state == PGRES_POLLING_READING ? POLLIN : POLLOUT,
                    seconds: rest
                )
            else { throw PostgreSQLError(.deadline, "the server has not answered for \(timeout) s") }
            hasSpoken = hasSpoken || state == PGRES_POLLING_READING
            state = PQconnectPoll(handle)
        }
        let message = text(PQerrorMessage(handle), else: "the server cannot be reached")
        let whole = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
        guard let found = whole.firstMatch(of: #/:  ([0-9A-Z]{5}): /#) else {
            // A server that accepts a connection and closes it without an answer is about to stop or to restart.
            throw PostgreSQLError(
                .connection,
                sqlState: hasSpoken ? PostgreSQLError.cutOff : PostgreSQLError.unreached,
                message
            )
        }
        throw PostgreSQLError(
            .connection,
            sqlState: String(found.1),
            message.replacing(":  \(found.1): ", with: ": ")
        )
    }
}
