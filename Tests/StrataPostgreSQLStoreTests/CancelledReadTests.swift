import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

extension ServerStack {
    /// Counts the cities that a read finds, on a separate thread, unless the read is cancelled.
    ///
    /// The newest data are read, or those of a version.
    func reading(_ control: FetchControl, at version: PinnedPostgreSQLVersion? = nil) -> Errand<Int> {
        Errand { [self] in
            var specification = FetchSpecification()
            specification.entity = coordinator.managedObjectModel.entitiesByName["City"]
            let store = try require(coordinator.openStores.first)
            var plan = try FetchPlanner(model: context().model).plan(specification).asked(ofStore: store.number)
            plan.control = control
            return try (version ?? store.rows as any RowSource).rows(for: plan).count
        }
    }
}

extension Errand {
    /// Cancels this read once `isWaiting` holds, and expects that this ends it, long before the store's time-out.
    ///
    /// It uses threads only, since tasks would wait for other tests.
    func cancel(by control: FetchControl, once isWaiting: () throws -> Bool) throws {
        try waitUntil(isWaiting)
        let start = ContinuousClock.now
        control.cancellation.cancel()
        let error = expectThrows(CocoaError.self) { _ = try wait() }
        expectEqual(error?.code, .userCancelled)
        expect(.now - start < .seconds(20))
    }
}

@Suite("Reads of PostgreSQL stores that are cancelled while they wait", .enabled(if: Server.isThere))
struct CancelledReadTests {
    private static var options: [String: Any] {
        [NSPersistentStoreConnectionPoolMaxSizeKey: 1, NSPersistentStoreTimeoutOption: 40]
    }

    @Test func `those that wait for a connection`() throws {
        let pinned = try PinnedStack(Self.options)
        let taken = try pinned.database.pool.lease()
        let control = FetchControl()
        let read = pinned.stack.reading(control)
        try read.cancel(by: control) { pinned.database.pool.waiterCount == 1 }
        pinned.database.pool.give(back: taken)
        try expectEqual(pinned.stack.cities(), [])
    }

    @Test func `those that wait for others that read the same version`() throws {
        let pinned = try PinnedStack(Self.options)
        try pinned.stack.insert("Rome")
        let version = try pinned.version()
        let taken = try pinned.database.pool.lease()
        let control = FetchControl()
        try version.read { _ in
            try pinned.stack.reading(control, at: version).cancel(by: control) { version.waiterCount == 1 }
        }
        pinned.database.pool.give(back: taken)
        try expectEqual(pinned.stack.reading(FetchControl(), at: version).wait(), 1)
    }

    @Test func `those that wait on the server for a lock, whose connection serves the next one`() throws {
        let pinned = try PinnedStack(Self.options)
        try pinned.stack.insert("Porto")
        let session = try pinned.direct()
        /// The server's processes that wait for the table.
        func waiters() throws -> [Int64] {
            let sql = "SELECT pid::bigint FROM pg_catalog.pg_locks WHERE relation = 'city'::regclass AND NOT granted"
            return try session.query(sql).rows.map { $0.int64(0) }
        }
        var processes: Set<Int64> = []
        for _ in 1...2 {
            try session.command("BEGIN; LOCK TABLE city IN ACCESS EXCLUSIVE MODE")
            let control = FetchControl()
            try pinned.stack.reading(control).cancel(by: control) {
                let found = try waiters()
                processes.formUnion(found)
                return !found.isEmpty
            }
            // Only the cancellation can stop it, since the table stays locked.
            try waitUntil { try waiters().isEmpty }
            try session.command("COMMIT")
            try expectEqual(pinned.stack.reading(FetchControl()).wait(), 1)
        }
        expectEqual(processes.count, 1)
    }
}
