import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@Suite("Fetches from PostgreSQL that are cancelled", .enabled(if: Server.isThere))
struct CancellingTests {
    @Test(.timeLimit(.minutes(1)))
    func `the server stops what it does for a cancelled fetch, and its connection serves the next one`() async throws {
        let options: [AnyHashable: Any] = [NSPersistentStoreConnectionPoolMaxSizeKey: 1]
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        try stack.storeCities(["Porto"])
        let session = try TestDatabase.session(stack.storeURL)
        /// The processes of the server that wait for the table.
        func waiters() throws -> [Int64] {
            try session.query(
                "SELECT pid::bigint FROM pg_catalog.pg_locks WHERE relation = 'city'::regclass AND NOT granted"
            )
            .rows.map { $0.int64(0) }
        }
        var processes: Set<Int64> = []
        for _ in 1...2 {
            try session.command("BEGIN; LOCK TABLE city IN ACCESS EXCLUSIVE MODE")
            let context = stack.context()
            let task = Task { try await context.fetch(citiesByName(), progress: nil) { $0.count } }
            while try waiters().isEmpty { await Task.yield() }
            try processes.formUnion(waiters())
            let start = ContinuousClock.now
            task.cancel()
            // Nobody else would: the table stays locked.
            await expectThrows(CancellationError.self) { try await task.value }
            expect(.now - start < .seconds(20))
            while try !waiters().isEmpty { await Task.yield() }
            try session.command("COMMIT")
            try await expectEqual(context.fetch(citiesByName(), progress: nil) { $0.count }, 1)
        }
        expectEqual(processes.count, 1)
    }
}
