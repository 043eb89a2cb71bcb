import CStrataPostgreSQL
import Foundation

extension Connection {
    /// Opens a connection: of several hosts to the first that lets somebody in, and is what the URL wants.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - timeout: For how many seconds the server may let it wait, in all.
    ///   - most: For how many seconds each of several hosts is waited for at most, also the last one; `nil` for no such limit.
    ///   - process: Tells the number of this process; tests have others.
    ///   - check: Looks at a connection; if it throws, the next host is tried.
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
        // libpq goes on to the next host when one refuses, and waits for ever for one that is silent.
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
                // It may let in, and then say nothing. Whoever is last keeps nobody from the next.
                let connection = Connection(
                    handle,
                    patience: max((shareEnd - .now) / .seconds(1), isLast && most == nil ? 1 : shortestWait),
                    prepares: target.preparesStatements,
                    process: process
                )
                try check(connection)
                connection.patience = max(timeout, 1)
                return connection
            } catch let error as PostgreSQLError where error.kind != .misuse {
                // Who had no time for an answer may be as good as any.
                if error.kind == .deadline, share >= tellingWait { HostChoices.noteSilence(choice) }
                failure = error
            }
        }
        throw failure ?? PostgreSQLError(.connection, "the URL has no host")
    }

    /// For how many seconds one host of several is waited for.
    private static let longestWait = 10.0
    private static let shortestWait = 0.1
    /// For how many seconds a host has to be silent before others pass it over.
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

    /// How long a host may take at most, as the URL, a service file or the environment says: libpq looks at that in its waiting calls only.
    private static func connectTimeout(_ handle: OpaquePointer) -> Double {
        guard let seconds = settings(handle)["connect_timeout"].flatMap(Double.init), seconds > 0 else {
            return .infinity
        }
        return seconds
    }

    /// Begins to connect: nothing was sent yet.
    ///
    /// A server that is not this machine has to prove who it is, unless somebody has said how. Where it is may be said in a service file or in
    /// the environment, so libpq is asked for what it has found.
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

    /// What libpq would ask a server for to prove who it is: the `sslmode` that is in effect.
    package static func verification(of target: ConnectionTarget) throws(PostgreSQLError) -> String? {
        try settings(of: target)["sslmode"]
    }

    /// What libpq makes of a target, with what it finds in service files and in the environment.
    static func settings(of target: ConnectionTarget) throws(PostgreSQLError) -> [String: String] {
        // With a value that libpq refuses it has read everything, and does not begin to connect.
        let handle = try start(target, [("channel_binding", "unknown")])
        defer { PQfinish(handle) }
        return settings(handle)
    }

    /// What a connection is made with, from the URL, a service file, the environment and libpq itself.
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
        // A server may have something to say as soon as it lets in.
        strata_pq_be_quiet(handle)
        // With the SQLSTATE, which tells a server that starts from one that refuses.
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
            // Who takes a connection, and closes it without a word, is about to stop or to start again.
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
