import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

/// Row locks of a server; `RowLockTests` has what any store must do.
@Suite("Rows that a server locks", .enabled(if: Server.isThere))
struct RowLockServerTests {
    private static func cities(_ format: String? = nil, _ lock: RowLock? = nil) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        if let format { request.predicate = NSPredicate(format: format) }
        request.rowLock = lock
        return request
    }

    private static func stack(_ names: [String], options: [AnyHashable: Any]? = nil) throws -> Stack {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        let context = stack.context()
        try context.performAndWait {
            for name in names { _ = context.insert("City", ["name": name, "population": 0]) }
            try context.save()
        }
        return stack
    }

    /// The names of the cities that another session could lock.
    private static func free(_ stack: Stack, _ strength: String = "UPDATE") throws -> [String] {
        try TestDatabase.texts(
            "SELECT name FROM city ORDER BY name FOR \(strength) SKIP LOCKED",
            in: stack.storeURL
        )
    }

    @Test func `only the rows that a fetch returns are locked`() throws {
        let stack = try Self.stack(["Bern", "Oslo", "Rome"])
        let context = stack.context()
        try context.performAndWait(locking: .seconds(300)) {
            // PostgreSQL does not evaluate the second predicate, so the process examines the rows.
            for (format, free) in [("name < 'C'", ["Oslo", "Rome"]), ("name MATCHES '.*slo'", ["Rome"])] {
                let found = try context.fetch(Self.cities(format, RowLock(.update)))
                expectEqual(found.count, 1)
                try expectEqual(Self.free(stack), free)
            }
            let skipping = Self.cities("name MATCHES '.*e'", RowLock(.update, lockedRows: .skip))
            try expectEqual(context.fetch(skipping).count, 1)
            // Others may relate rows to a locked one.
            try expectEqual(Self.free(stack, "KEY SHARE").count, 3)
        }
        try expectEqual(Self.free(stack).count, 3)
    }

    @Test func `a fetch with a limit locks no row behind it, even if the process examines the rows`() throws {
        let stack = try Self.stack(["Bern", "Lima", "Oslo", "Rome"])
        let (first, context) = (stack.context(), stack.context())
        try first.performAndWait(locking: .seconds(300)) {
            try expectEqual(first.fetch(Self.cities("name == 'Lima'", RowLock(.update))).count, 1)
            try context.performAndWait(locking: .seconds(300)) {
                let skipping = Self.cities("name MATCHES '.*'", RowLock(.update, lockedRows: .skip))
                skipping.fetchLimit = 2
                try expectEqual(context.fetch(skipping).map { $0.value(forKey: "name") as? String }, ["Bern", "Oslo"])
                try expectEqual(Self.free(stack), ["Rome"])
            }
        }
        try expectEqual(Self.free(stack).count, 4)
    }

    @Test func `blocks share rows that they only keep from changing`() throws {
        let stack = try Self.stack(["Bern"])
        let (context, other) = (stack.context(), stack.context())
        try context.performAndWait(locking: .seconds(300)) {
            try expectEqual(context.fetch(Self.cities(nil, RowLock(.share))).count, 1)
            try other.performAndWait(locking: .seconds(300)) {
                let sharing = RowLock(.share, lockedRows: .fail)
                try expectEqual(other.fetch(Self.cities(nil, sharing)).count, 1)
                let changing = RowLock(.update, lockedRows: .fail)
                let error = expectThrows(CocoaError.self) { try other.fetch(Self.cities(nil, changing)) }
                expectEqual(error?.code, .managedObjectContextLocking)
            }
        }
    }

    @Test func `of two blocks that wait for each other's rows, the server ends one, and that one says so`() throws {
        let stack = try Self.stack(["Bern", "Oslo"])
        let barrier = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
        let errands = [("Bern", "Oslo"), ("Oslo", "Bern")].enumerated().map { number, names in
            let context = stack.context()
            return Errand { () -> String in
                try context.performAndWait {
                    do {
                        try context.performAndWait(locking: .seconds(300)) {
                            let first = try require(
                                context.fetch(Self.cities("name == '\(names.0)'", RowLock(.update))).first
                            )
                            barrier[number].signal()
                            barrier[1 - number].wait()
                            first.setValue(number + 1, forKey: "population")
                            do {
                                _ = try context.fetch(Self.cities("name == '\(names.1)'", RowLock(.update)))
                            } catch {
                                // The block has no locks any more.
                                let again = expectThrows(CocoaError.self) { try context.save() }
                                expectEqual(again?.code, .managedObjectContextLocking)
                                throw error
                            }
                            try context.save()
                        }
                        return "saved"
                    } catch let error as CocoaError {
                        expectEqual(error.code, .managedObjectContextLocking)
                        let text = error.localizedDescription
                        expect(text.contains("1 row of City (City/p") && text.contains("again"), "\(text)")
                        expectEqual((error.userInfo[NSRowLockObjectIDsErrorKey] as? [NSManagedObjectID])?.count, 1)
                        expectEqual(CoreDataFailure(error), .conflict)
                        expectEqual((error.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "40P01")
                        expect(context.hasChanges)
                        return "ended"
                    }
                }
            }
        }
        try expectEqual(errands.map { try $0.wait() }.sorted(), ["ended", "saved"])
        try expectEqual(Server.column(stack, "SELECT count(*) FROM city WHERE population > 0"), [1])
    }

    @Test func `of two blocks with shared locks that both save, the server ends one at once, and the other one saves`()
        throws
    {
        let stack = try Self.stack(["Bern"])
        let barrier = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
        let errands = (0..<2).map { number in
            let context = stack.context()
            return Errand { () -> String in
                try context.performAndWait {
                    do {
                        try context.performAndWait(locking: .seconds(300)) {
                            let city = try require(context.fetch(Self.cities(nil, RowLock(.share))).first)
                            barrier[number].signal()
                            barrier[1 - number].wait()
                            city.setValue(number + 1, forKey: "population")
                            try context.save()
                        }
                        return "saved"
                    } catch let error as CocoaError {
                        expectEqual(error.code, .managedObjectContextLocking)
                        let text = error.localizedDescription
                        expect(text.contains("not saved") && text.contains("again"), "\(text)")
                        expectEqual(CoreDataFailure(error), .conflict)
                        expectEqual((error.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "40P01")
                        expect(context.hasChanges)
                        return "ended"
                    }
                }
            }
        }
        try expectEqual(errands.map { try $0.wait() }.sorted(), ["ended", "saved"])
        try expectEqual(Server.column(stack, "SELECT count(*) FROM city WHERE population > 0"), [1])
    }

    @Test func `a block whose session is lost writes nothing, and keeps its changes`() throws {
        let stack = try Self.stack(["Bern"])
        let context = stack.context()
        try context.performAndWait {
            let error = expectThrows(CocoaError.self) {
                try context.performAndWait(locking: .seconds(300)) {
                    let city = try require(context.fetch(Self.cities(nil, RowLock(.update))).first)
                    city.setValue(5, forKey: "population")
                    let session = try Server.connection()
                    try session.command(
                        """
                        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE state = 'idle in transaction' AND pid IN (
                            SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                            JOIN pg_namespace n ON n.oid = c.relnamespace
                            WHERE c.relname = 'city' AND n.nspname = '\(ConnectionTarget(TestDatabase.url(for: stack.storeURL)).schema)')
                        """
                    )
                    try context.save()
                }
            }
            expect(error != nil)
            try expectEqual(Server.column(stack, "SELECT population FROM city"), [0])
            // Without the block it is a save like any other.
            expect(context.hasChanges)
            try context.save()
        }
        try expectEqual(Server.column(stack, "SELECT population FROM city"), [5])
    }

    @Test func `blocks leave connections for their reads, however many there are`() throws {
        let stack = try Self.stack(["Bern", "Oslo"], options: [NSPersistentStoreConnectionPoolMaxSizeKey: 1])
        let errands = (0..<4).map { _ in
            let context = stack.context()
            return Errand {
                for _ in 0..<5 {
                    try context.performAndWait(locking: .seconds(300)) {
                        let city = try require(context.fetch(Self.cities("name == 'Bern'", RowLock(.update))).first)
                        try expectEqual(context.count(for: Self.cities()), 2)
                        city.setValue((city.value(forKey: "population") as? Int ?? 0) + 1, forKey: "population")
                        try context.save()
                    }
                }
            }
        }
        for errand in errands { try errand.wait() }
        try expectEqual(Server.column(stack, "SELECT population FROM city ORDER BY name"), [20, 0])
        // No session keeps a transaction, or a limit of one.
        try expectEqual(Self.free(stack).count, 2)
    }
}
