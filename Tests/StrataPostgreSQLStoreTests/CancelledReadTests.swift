import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataRows
import TestSupport
import Testing

@testable import CoreData
@testable import StrataPostgreSQLStore

@Suite("Reads of PostgreSQL stores that are cancelled while they wait", .enabled(if: Server.isThere))
struct CancelledReadTests {
    /// How many cities a reading finds.
    @Sendable
    private static func count(_ pinned: PinnedStack, _ reading: PostgreSQLReading, _ control: FetchControl) throws
        -> Int
    {
        let model = pinned.stack.coordinator.managedObjectModel
        var specification = FetchSpecification()
        specification.entity = model.entitiesByName["City"]
        let store = try require(pinned.stack.coordinator.openStores.first)
        var plan = try FetchPlanner(model: pinned.stack.context().model).plan(specification)
            .asked(ofStore: store.number)
        plan.control = control
        return try reading.rows(for: plan).count
    }

    /// Cancels a read once `isWaiting` holds, and expects that it ends by that, long before the store's time-out.
    private func cancel(_ control: FetchControl, _ read: Errand<Int>, once isWaiting: () -> Bool) throws {
        try waitUntil(isWaiting)
        let start = ContinuousClock.now
        control.cancel()
        let error = expectThrows(CocoaError.self) { try read.wait() }
        expectEqual(error?.code, .userCancelled)
        expect(.now - start < .seconds(20))
    }

    @Test func `who waits for a connection`() throws {
        let pinned = try PinnedStack([NSPersistentStoreConnectionPoolMaxSizeKey: 1, NSPersistentStoreTimeoutOption: 40])
        let taken = try pinned.database.pool.take()
        let control = FetchControl()
        let reading = PostgreSQLReading(pinned.database)
        let read = Errand { try Self.count(pinned, reading, control) }
        try cancel(control, read) { pinned.database.pool.waiterCount == 1 }
        pinned.database.pool.give(back: taken)
        try expectEqual(pinned.stack.cities(), [])
    }

    @Test func `who waits for others that read the same version`() throws {
        let pinned = try PinnedStack([NSPersistentStoreConnectionPoolMaxSizeKey: 1, NSPersistentStoreTimeoutOption: 40])
        try pinned.stack.insert("Rome")
        let version = try pinned.version()
        let taken = try pinned.database.pool.take()
        let control = FetchControl()
        let reading = PostgreSQLReading(pinned.database, at: version)
        try version.read { _ in
            let read = Errand { try Self.count(pinned, reading, control) }
            try cancel(control, read) { version.waiterCount == 1 }
        }
        pinned.database.pool.give(back: taken)
        try expectEqual(Self.count(pinned, reading, FetchControl()), 1)
    }
}
