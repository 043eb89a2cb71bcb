import CStrataPostgreSQL
import Foundation

extension Connection {
    /// Opens a connection.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - timeout: For how many seconds the server may let it wait, in all.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``.
    package static func open(_ target: ConnectionTarget, timeout: Double) throws -> Connection {
        let parameters = target.parameters
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
        return Connection(handle, patience: max(timeout, 1), prepares: target.preparesStatements)
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
