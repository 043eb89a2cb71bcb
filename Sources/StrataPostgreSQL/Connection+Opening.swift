import CStrataPostgreSQL
import Foundation

extension Connection {
    /// Opens a connection: of several hosts to the first that lets somebody in, and is what the URL wants.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - timeout: For how many seconds the server may let it wait, in all.
    ///   - check: Looks at a connection; if it throws, the next host is tried.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``.
    package static func open(
        _ target: ConnectionTarget,
        timeout: Double,
        check: (Connection) throws -> Void = { _ in }
    ) throws -> Connection {
        let end = ContinuousClock.now + .seconds(timeout)
        // libpq goes on to the next host when one refuses, and waits for ever for one that is silent.
        let choices = HostChoices.of(target)
        var failure: (any Error)?
        for (index, choice) in choices.enumerated() {
            let rest = max((end - .now) / .seconds(1), 0)
            let isLast = index == choices.count - 1
            do {
                let connection = try open(
                    target.parameters + choice,
                    timeout: isLast ? rest : min(rest / Double(choices.count - index), longestWait),
                    patience: max(timeout, 1),
                    prepares: target.preparesStatements
                )
                try check(connection)
                return connection
            } catch let error as PostgreSQLError where error.kind != .misuse {
                if error.kind == .deadline { HostChoices.noteSilence(choice) }
                failure = error
            }
        }
        throw failure ?? PostgreSQLError(.connection, "the URL has no host")
    }

    /// For how many seconds one host of several is waited for.
    private static let longestWait = 10.0

    private static func open(
        _ parameters: [(String, String)],
        timeout: Double,
        patience: Double,
        prepares: Bool
    ) throws -> Connection {
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
        do {
            try finish(handle, timeout: timeout)
            strata_pq_be_quiet(handle)
            PQsetnonblocking(handle, 1)
            let encoding = PQparameterStatus(handle, "server_encoding").map { String(cString: $0) } ?? ""
            guard encoding == "UTF8" else {
                throw PostgreSQLError(.misuse, "the database has the encoding \(encoding), and must have UTF8")
            }
            guard PQserverVersion(handle) >= 130_000 else {
                throw PostgreSQLError(.misuse, "the server is older than PostgreSQL 13")
            }
        } catch {
            PQfinish(handle)
            throw error
        }
        return Connection(handle, patience: patience, prepares: prepares)
    }

    private static func finish(_ handle: OpaquePointer, timeout: Double) throws(PostgreSQLError) {
        let end = ContinuousClock.now + .seconds(timeout)
        var state = PGRES_POLLING_WRITING
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
            state = PQconnectPoll(handle)
        }
        throw PostgreSQLError(.connection, text(PQerrorMessage(handle), else: "the server cannot be reached"))
    }
}
