import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// A server whose processes all stand still: it accepts connections and data, and never answers.
@Suite("PostgreSQL stores whose server stands still", .enabled(if: Server.isThere))
struct StoppedServerTests {
    private static let timeout = 2.0

    private static var options: [String: Any] {
        [NSPersistentStoreTimeoutOption: timeout, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }

    /// The error of work that may take only some time-outs, however slow the machine is.
    private func failure(_ body: @escaping @Sendable () throws -> Void) throws -> CocoaError? {
        let start = ContinuousClock.now
        let error = expectThrows(CocoaError.self) { try Errand(body).wait() }
        expect(.now - start < .seconds(30))
        return error
    }

    @Test func `reading, saving, opening and closing a store fail after the time-out, and go on afterwards`()
        throws
    {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, history: true, Self.options)
        let other = try ServerStack(server.url, history: true, Self.options)
        try stack.insert("Rome")
        try expectEqual(other.cities(), ["Rome"])
        let processes = try server.freeze()
        defer { server.thaw(processes) }
        try expectEqual(failure { _ = try stack.cities() }?.code, .persistentStoreTimeout)
        try expectEqual(failure { try stack.insert("Oslo") }?.code, .persistentStoreTimeout)
        try expect(failure { _ = try ServerStack(server.url, Self.options) } != nil)
        let start = ContinuousClock.now
        try Errand { for store in other.coordinator.persistentStores { try other.coordinator.remove(store) } }.wait()
        expect(.now - start < .seconds(30))
        server.thaw(processes)
        try stack.insert("Bern")
        try expectEqual(stack.cities(), ["Bern", "Rome"])
        try expectEqual(server.text("SELECT count(*) FROM city"), "2")
    }

    @Test func `a number that was computed while the server was away is not saved, under any policy`() throws {
        let server = try PrivateServer(["synchronous_commit=on"])
        let writer = try ServerStack(server.url)
        let setup = writer.context()
        let uri = try setup.performAndWait { () throws in
            let city = City(context: setup)
            city.name = "Rome"
            city.population = 1000
            try setup.save()
            return city.objectID.uriRepresentation()
        }
        // The row cache of this store is empty.
        let stack = try ServerStack(server.url, [NSPersistentStoreTimeoutOption: 1])
        let id = try require(stack.coordinator.managedObjectID(forURIRepresentation: uri))
        try server.halt()
        let contexts = try Policy.allCases.map { policy in
            let context = stack.context()
            context.mergePolicy = policy.policy
            let failure = expectThrows(CocoaError.self) {
                try context.performAndWait { () throws in
                    let city: City = try typed(context.object(with: id))
                    city.population += 10
                }
            }
            try expect(CoreDataFailure(require(failure)) != nil)
            return context
        }
        try server.resume()
        for context in contexts {
            try context.performAndWait { () throws in
                let error = try require(expectThrows(CocoaError.self) { try context.save() })
                expectEqual(error.code, .persistentStoreSave)
                expectEqual(CoreDataFailure(error), .environment)
            }
        }
        try expectEqual(server.text("SELECT population::text FROM city"), "1000")
        for (number, context) in contexts.enumerated() {
            try context.performAndWait { () throws in
                context.rollback()
                let city: City = try typed(context.object(with: id))
                expectEqual(city.population, 1000 + 10 * Int64(number))
                city.population += 10
                try context.save()
            }
            try expectEqual(server.text("SELECT population::text FROM city"), "\(1010 + 10 * number)")
        }
        withExtendedLifetime((writer, stack)) {}
    }

    @Test func `a server that has gone is waited for once, and not once more, by saves, reads and checks`() throws {
        let server = try PrivateServer()
        let timeout = 4.0
        let stack = try ServerStack(server.url, history: true, [NSPersistentStoreTimeoutOption: timeout])
        try stack.insert("Rome")
        try server.halt()
        // The first request loses the existing connection, and later requests find none.
        expect(expectThrows(CocoaError.self) { _ = try stack.cities() } != nil)
        let requests: [() throws -> Void] = [
            { _ = try stack.cities() }, { try stack.insert("Oslo") },
            { for store in stack.coordinator.openStores { try store.rows.check(timeout: timeout) } },
        ]
        for request in requests {
            let start = ContinuousClock.now
            expect(expectThrows(CocoaError.self) { try request() } != nil)
            expect(.now - start < .seconds(timeout * 1.75))
        }
    }

    @Test func `a fetch that is cancelled ends, though the server does not hear of it`() throws {
        let server = try PrivateServer()
        let stack = try ServerStack(server.url, [NSPersistentStoreTimeoutOption: 240])
        try stack.insert("Rome")
        let database = try stack.database
        let processes = try server.freeze()
        defer { server.thaw(processes) }
        let control = FetchControl()
        let read = stack.reading(control)
        // The read has a connection, and waits for the server.
        try read.cancel(by: control) { database.pool.usedCount == 1 }
    }

    @Test func `a connection whose cancel does not end is given up`() throws {
        let server = try PrivateServer()
        let pool = ConnectionPool(try ConnectionTarget(server.url), size: 1, timeout: Self.timeout) { _ in }
        defer { pool.close() }
        let connection = try pool.lease()
        let processes = try server.freeze()
        defer { server.thaw(processes) }
        connection.canceller.cancel()
        let start = ContinuousClock.now
        pool.give(back: connection)
        expect(.now - start < .seconds(30))
        expect(connection.isBroken)
        expectEqual(pool.idleCount, 0)
    }
}
