import Expectations
import Foundation
import StrataLocks
import Testing

@testable import StrataPostgreSQL

/// A role that the server lets have few sessions at a time.
private final class CrowdedRole: Sendable {
    let name = "strata_crowded_" + String(UInt64.random(in: 0 ... .max), radix: 36)
    private let limit: Int

    init(sessions limit: Int) throws {
        self.limit = limit
        try Server.connection().command("CREATE ROLE \(name) LOGIN CONNECTION LIMIT \(limit)")
    }

    deinit { _ = try? Server.connection().command("DROP ROLE \(name)") }

    /// The URL for the role.
    func url(_ item: String? = nil) throws -> URL {
        var parts = try require(URLComponents(url: Server.url(item), resolvingAgainstBaseURL: true))
        parts.user = nil
        parts.queryItems =
            (parts.queryItems ?? []).filter { $0.name != "user" } + [URLQueryItem(name: "user", value: name)]
        return try require(parts.url)
    }
}

@Suite("PostgreSQL pools without room for a session", .enabled(if: Server.isThere))
struct ServerRoomTests {
    @Test func `callers that find no room get the sessions that come back in the order of asking`() throws {
        let role = try CrowdedRole(sessions: 1)
        let shared = SharingPools(most: 9)
        let pools = try (0..<9).map { try shared.pool("s\($0)", at: role.url(), timeout: 60) }
        let held = try pools[0].lease()
        let process = held.serverProcess
        let order = Locked<[Int]>([])
        var threads: [JoinableThread] = []
        for index in 1..<9 {
            threads.append(
                onThread {
                    try pools[index].withConnection { connection in
                        expectEqual(connection.serverProcess, process)
                        order.withLock { $0.append(index) }
                    }
                }
            )
            try wait { pools[0].seekerCount == index }
        }
        pools[0].give(back: held)
        for thread in threads { try thread.join() }
        expectEqual(order.withLock { $0 }, Array(1..<9))
        expectEqual([pools[0].seekerCount, shared.budget.usedCount, shared.budget.idleCount], [0, 0, 1])
        for pool in pools { pool.close() }
    }

    @Test func `many callers share the sessions that there is room for`() throws {
        let role = try CrowdedRole(sessions: 2)
        let shared = SharingPools(most: 6)
        let pools = try (0..<5).map { try shared.pool("s\($0)", at: role.url(), timeout: 60) }
        let processes = Locked<Set<Int32>>([])
        let threads = (0..<8).map { thread in
            onThread {
                for round in 0..<25 {
                    try pools[(thread + round) % 5].withConnection { connection in
                        try expectEqual(connection.query("SELECT $1 + 1", [.int8(1)]).firstInt64, 2)
                        processes.withLock { _ = $0.insert(connection.serverProcess) }
                    }
                }
            }
        }
        for thread in threads { try thread.join() }
        expect(processes.withLock { $0.count } <= 2)
        for pool in pools { pool.close() }
    }

    @Test func `unused connections of other settings are given back if the server has no room`() throws {
        let role = try CrowdedRole(sessions: 1)
        let shared = SharingPools(most: 3)
        let (a, other) = (
            try shared.pool("a", at: role.url(), timeout: 60),
            try shared.pool("a", at: role.url("application_name=strata-elsewhere"), timeout: 60)
        )
        _ = try a.withConnection { $0.serverProcess }
        expectEqual(shared.budget.idleCount, 1)
        try expectEqual(other.withConnection { try $0.query("SELECT 1").firstInt64 }, 1)
        expectEqual([a.idleCount, other.idleCount], [0, 1])
        // A connection that belongs to no pool takes the place of one that is not in use.
        let listener = try a.open(timeout: 60)
        try expectEqual(listener.query("SELECT 1").firstInt64, 1)
        expectEqual(shared.budget.idleCount, 0)
        withExtendedLifetime(listener) {}
        for pool in [a, other] { pool.close() }
    }

    @Test func `a caller that finds no room for too long is told so, and may be cancelled`() throws {
        let role = try CrowdedRole(sessions: 1)
        let shared = SharingPools(most: 3)
        let (a, b) = (
            try shared.pool("a", at: role.url()), try shared.pool("b", at: role.url(), timeout: 0.5)
        )
        let held = try a.lease()
        let error = expectThrows(PostgreSQLError.self) { try b.lease() }
        expectEqual(error?.kind, .connection)
        expectEqual(error?.sqlState, "53300")
        let text = error?.message ?? ""
        expect(
            text.contains("no room for another connection for ") && text.contains("too many connections for role"),
            "\(text)"
        )
        let patient = try shared.pool("c", at: role.url(), timeout: 300)
        let cancellation = Cancellation()
        let kind = Locked<PostgreSQLError.Kind?>(nil)
        let thread = onThread {
            do { patient.give(back: try patient.lease(cancellation)) } catch let error as PostgreSQLError {
                kind.withLock { $0 = error.kind }
            }
        }
        try wait { patient.seekerCount == 1 }
        cancellation.cancel(throwing: CancellationError())
        try thread.join()
        expectEqual(kind.withLock { $0 }, .cancelled)
        a.give(back: held)
        try expectEqual(patient.withConnection { $0.serverProcess }, held.serverProcess)
        for pool in [a, b, patient] { pool.close() }
    }
}
