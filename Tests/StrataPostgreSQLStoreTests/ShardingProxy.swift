import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport

/// A proxy that makes a PostgreSQL server behave like the coordinator of an engine that shards by schema.
///
/// It rewrites statements so that the server refuses what such an engine refuses, with the same SQLSTATE, and answers what a node would answer to a
/// statement that reads a table. So the tests show what the store does on such an engine, as far as its behaviour is known; they are no test of any
/// engine.
final class ShardingProxy: Sendable {
    /// The URL of the server through the proxy.
    let url: URL
    /// The statements that were refused.
    let refused = Locked<[String]>([])
    /// Whether the next connection that sends COMMIT is cut before the server has received it.
    let cutsCommit = Locked(false)
    private let folder = "/tmp/strata-shards-\(UInt32.random(in: 0 ... .max))"
    private let server: String
    private let door: Int32
    private let sockets = Locked<Set<Int32>>([])
    /// The number of a transaction of somebody else that was committed: the number that a node would give.
    private let foreign: String

    init(to direct: URL) throws {
        var parts = try require(URLComponents(url: direct, resolvingAgainstBaseURL: true))
        let items = parts.queryItems ?? []
        server = try require(items.first { $0.name == "host" }?.value) + "/.s.PGSQL.5432"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        parts.queryItems = items.filter { $0.name != "host" } + [URLQueryItem(name: "host", value: folder)]
        url = try require(parts.url)
        let session = try Connection.open(ConnectionTarget(direct), timeout: 60)
        foreign = try session.command("SELECT pg_catalog.pg_current_xact_id()::text")[0].string(0)
        door = try require(UnixSocket.listening(at: folder + "/.s.PGSQL.5432"))
        Thread.detachNewThread { [self] in accept() }
    }

    /// Accepts no more connections, and breaks the existing ones.
    func close() {
        shutdown(door, Int32(SHUT_RDWR))
        for socket in sockets.withLock({ $0 }) { shutdown(socket, Int32(SHUT_RDWR)) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    // MARK: - What a sharded server does

    /// What a session has done so far.
    private struct Session {
        var forcesGenericPlans = false
    }

    /// A statement that the server refuses because it does not support it: 0A000.
    private static let unsupported = "SELECT DISTINCT 1 FROM pg_catalog.pg_class FOR UPDATE"
    /// A statement that the server refuses because of its syntax: 42601.
    private static let wrong = "SELECT FROM FROM"

    /// The statement that the server gets instead; `nil` to cut the connection.
    private func rewritten(_ sql: String, _ session: inout Session) -> String? {
        if sql == "COMMIT", cutsCommit.withLock({ $0 ? ($0 = false, true).1 : false }) { return nil }
        if sql.contains("force_generic_plan") { session.forcesGenericPlans = true }
        let writes = ["INSERT", "UPDATE", "DELETE", "WITH"].contains { sql.hasPrefix($0) }
        if session.forcesGenericPlans, writes, sql.contains("unnest(") { return refuse(sql, Self.unsupported) }
        let hasTable = sql.contains(" AS t ") || sql.contains("FROM strata_")
        if sql.contains("nextval("), hasTable { return refuse(sql, Self.unsupported) }
        if sql.split(separator: ";").filter({ $0.contains("CREATE ") }).count > 1 { return refuse(sql, Self.wrong) }
        var sql = sql
        if hasTable {
            sql.replace("pg_catalog.pg_current_xact_id()", with: "'\(foreign)'::xid8")
            sql.replace("pg_catalog.pg_backend_pid()", with: "(pg_catalog.pg_backend_pid() + 1)")
            // The lock is taken in the session of a node, which is not the session of the client.
            sql.replace("pg_catalog.pg_advisory_lock_shared(", with: "pg_catalog.pg_advisory_xact_lock_shared(")
        }
        // Nodes have no common snapshot.
        sql.replace("ISOLATION LEVEL REPEATABLE READ", with: "ISOLATION LEVEL READ COMMITTED")
        return sql
    }

    private func refuse(_ sql: String, _ instead: String) -> String {
        refused.withLock { $0.append(sql) }
        return instead
    }

    // MARK: - Messages

    /// Rewrites a message of the client; `nil` to cut the connection.
    private func rewritten(_ type: UInt8, _ body: [UInt8], _ session: inout Session) -> [UInt8]? {
        var body = body
        switch type {
        case UInt8(ascii: "Q"):
            guard let sql = rewritten(Self.text(body, from: 0), &session) else { return nil }
            body = Array(sql.utf8) + [0]
        case UInt8(ascii: "P"):
            let start = (body.firstIndex(of: 0) ?? 0) + 1
            let old = Self.text(body, from: start)
            guard let sql = rewritten(old, &session) else { return nil }
            body.replaceSubrange(start..<(start + old.utf8.count), with: Array(sql.utf8))
        default: break
        }
        let length = UInt32(body.count + 4)
        return [type] + (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + body
    }

    private static func text(_ bytes: [UInt8], from start: Int) -> String {
        String(decoding: bytes[start...].prefix { $0 != 0 }, as: UTF8.self)
    }

    // MARK: - Sockets

    private func accept() {
        while true {
            let client = Foundation.accept(door, nil, nil)
            guard client >= 0 else { return }
            guard let other = UnixSocket.connected(to: server) else {
                Foundation.close(client)
                continue
            }
            sockets.withLock { $0.formUnion([client, other]) }
            let ends = Locked(0)
            let shared = Ends(ends)
            Thread.detachNewThread { [self] in
                passMessages(from: client, to: other)
                end(client, other, shared)
            }
            Thread.detachNewThread { [self] in
                UnixSocket.relay(from: other, to: client)
                end(client, other, shared)
            }
        }
    }

    /// The number of directions of a connection that have ended.
    private final class Ends: Sendable {
        private let count: Locked<Int>
        init(_ count: consuming Locked<Int>) { self.count = count }
        /// Whether this was the last one.
        func add() -> Bool {
            count.withLock {
                $0 += 1
                return $0 == 2
            }
        }
    }

    private func end(_ client: Int32, _ other: Int32, _ ends: Ends) {
        for socket in [client, other] { shutdown(socket, Int32(SHUT_RDWR)) }
        guard ends.add() else { return }
        sockets.withLock { $0.subtract([client, other]) }
        for socket in [client, other] { Foundation.close(socket) }
    }

    /// Passes the messages of a client, the first of which has no type.
    private func passMessages(from client: Int32, to server: Int32) {
        var session = Session()
        guard let start = ClientMessage.start(from: client), UnixSocket.send(start, to: server) else { return }
        // A request to cancel is such a message alone.
        while let message = ClientMessage(from: client),
            let rewritten = rewritten(message.type, message.body, &session), UnixSocket.send(rewritten, to: server)
        {}
    }
}
