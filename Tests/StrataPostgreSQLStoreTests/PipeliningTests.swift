import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

@Suite("Statements that are sent together", .enabled(if: Server.isThere))
struct PipeliningTests {
    @Test func `each statement has its own answer, whichever is asked for first`() throws {
        let connection = try Server.connection()
        let posted = try (1...5).map { try connection.post("SELECT $1 * 2", [.int8($0)]) }
        try expectEqual(connection.answer(posted[3]).firstInt64, 8)
        try expectEqual(posted.map { try connection.answer($0).firstInt64 }, [2, 4, 6, 8, 10])
        // A connection can run other statements before the answer to this one is read.
        let next = try connection.post("SELECT 7::bigint")
        try expectEqual(connection.query("SELECT 8::bigint").firstInt64, 8)
        try connection.command("SET LOCAL statement_timeout = 0")
        try expectEqual(connection.answer(next).firstInt64, 7)
    }

    @Test func `a statement takes one round trip, also where it is new to the session`() throws {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        let connection = try Connection.open(ConnectionTarget(proxy.url), timeout: 30)
        for _ in 0..<2 {
            let before = proxy.answers.withLock { $0 }
            try expectEqual(connection.query("SELECT 1::bigint + $1", [.int8(1)]).firstInt64, 2)
            expectEqual(proxy.answers.withLock { $0 }, before + 1)
        }
    }

    @Test func `rows that come one by one take one round trip, also of a statement that is new to the session`() throws
    {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        let connection = try Connection.open(ConnectionTarget(proxy.url), timeout: 30)
        for _ in 0..<2 {
            let before = proxy.answers.withLock { $0 }
            var seen: [Int64] = []
            try connection.each("SELECT pg_catalog.generate_series(1, $1)", [.int8(3)]) { row in
                seen.append(row.int64(0))
                return true
            }
            expectEqual(seen, [1, 2, 3])
            expectEqual(proxy.answers.withLock { $0 }, before + 1)
        }
    }

    @Test(arguments: [
        // The server refuses these when it prepares them, before it has rows, and after some rows.
        ("SELECT nothing", "42703"), ("SELECT 1 / 0", "22012"),
        ("SELECT 1 / (4 - n) FROM pg_catalog.generate_series(1, 9) AS n", "22012"),
    ])
    func `a statement that fails while its rows come one by one leaves a connection that is as good as before`(
        sql: String,
        state: String
    ) throws {
        let connection = try Server.connection()
        func check() throws {
            try expectEqual(connection.query("SELECT 1::bigint").firstInt64, 1)
            try expectEqual(connection.answer(connection.post("SELECT 2::bigint")).firstInt64, 2)
            var count = 0
            try connection.each("SELECT pg_catalog.generate_series(1, 3)") { _ in
                count += 1
                return true
            }
            expectEqual(count, 3)
        }
        for _ in 0..<2 {
            let error = expectThrows(PostgreSQLError.self) { try connection.each(sql) { _ in true } }
            expectEqual(error?.sqlState, state)
            try check()
            try connection.command("BEGIN")
            let again = expectThrows(PostgreSQLError.self) { try connection.each(sql) { _ in true } }
            expectEqual(again?.sqlState, state)
            expect(!connection.isIdle)
            try connection.rollback()
            try check()
        }
    }

    @Test func `rows that come one by one can be given up, or cancelled, the first time and the next`() throws {
        struct Enough: Error {}
        let connection = try Server.connection()
        let canceller = connection.canceller
        let sql = "SELECT pg_catalog.generate_series(1, 1000000000)"
        for _ in 0..<2 {
            var seen = 0
            try connection.each(sql) { _ in
                seen += 1
                return seen < 3
            }
            expectEqual(seen, 3)
            connection.forgetPrepared()
            expectThrows(Enough.self) { try connection.each(sql) { _ in throw Enough() } }
            connection.forgetPrepared()
            let error = expectThrows(PostgreSQLError.self) {
                try connection.each(sql) { row in
                    if row.int64(0) == 1 { canceller.cancel() }
                    return true
                }
            }
            expectEqual(error?.sqlState, "57014")
            connection.awaitCancel()
            try expectEqual(connection.query("SELECT 1::bigint").firstInt64, 1)
        }
    }

    @Test func `rows of a table that has changed since its statement was prepared come one by one`() throws {
        let connection = try Server.connection()
        try connection.command("CREATE TEMPORARY TABLE numbers (number bigint)")
        try connection.command("INSERT INTO numbers VALUES (1), (2)")
        func numbers() throws -> [Int64] {
            var seen: [Int64] = []
            try connection.each("SELECT number FROM numbers ORDER BY number") { row in
                seen.append(row.int64(0))
                return true
            }
            return seen
        }
        try expectEqual(numbers(), [1, 2])
        try connection.command("ALTER TABLE numbers ALTER COLUMN number TYPE integer")
        try expectEqual(numbers(), [1, 2])
        // In a transaction the statement fails once.
        try connection.command("ALTER TABLE numbers ALTER COLUMN number TYPE bigint")
        try connection.command("BEGIN")
        expectEqual(expectThrows(PostgreSQLError.self) { try numbers() }?.isStale, true)
        try connection.rollback()
        try connection.command("BEGIN")
        try expectEqual(numbers(), [1, 2])
        try connection.command("COMMIT")
    }

    @Test func `the server begins with what was sent before the answer is asked for`() throws {
        let (connection, other) = (try Server.connection(), try Server.connection())
        let key = Int64(UInt32.random(in: 1 ... .max))
        let taken = try connection.post("SELECT pg_catalog.pg_advisory_lock($1)", [.int8(key)])
        try connection.sendPosted()
        let sql = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks WHERE objid = $1::int8::oid"
        let end = ContinuousClock.now + .seconds(30)
        var holders: Int64? = 0
        while holders == 0, ContinuousClock.now < end { holders = try other.query(sql, [.int8(key)]).firstInt64 }
        expectEqual(holders, 1)
        try expectEqual(connection.answer(taken).rowCount, 1)
    }

    /// A context on a coordinator.
    private func context(_ coordinator: NSPersistentStoreCoordinator) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    @Test func `a save takes two round trips, whatever the number of rows`() throws {
        try FaultProxy.withStore { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                let city = City(context: context)
                city.name = "Lagos"
                // The first save draws keys, and identifies the context to the session.
                Venue(context: context).city = city
                try context.save()
                // Each second save also writes the city.
                for count in [1, 1, 20, 20] {
                    for _ in 0..<count { Venue(context: context).city = city }
                    city.name = "Lagos \(count)"
                    let before = proxy.answers.withLock { $0 }
                    try context.save()
                    expectEqual(proxy.answers.withLock { $0 }, before + 2, "\(count) rows")
                }
            }
        }
    }

    @Test func `all rows that others have changed are read in one round trip, while they are locked`() throws {
        try FaultProxy.withStore { proxy, schema, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                let cities = (0..<100).map { number in
                    let city = City(context: context)
                    city.name = "\(number)"
                    return city
                }
                try context.save()
                for city in cities { city.population = 7 }
                try Server.connection().command(
                    "UPDATE \"\(schema)\".city SET strata_version = strata_version + (1 << 28), population = 5"
                )
                let before = proxy.trips.withLock { $0 }
                let error = expectThrows(CocoaError.self) { try context.save() }
                // There is one round trip for the locks, one for the rows, and one for the end.
                expectEqual(proxy.trips.withLock { $0 }, before + 3)
                let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                expectEqual(conflicts.count, 100)
                for conflict in conflicts {
                    expectEqual(conflict.persistedSnapshot?["population"] as? Int64, 5)
                    expectEqual(
                        conflict.sourceObject.value(forKey: "name") as? String,
                        conflict.persistedSnapshot?["name"] as? String
                    )
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `a batch update that computes numbers is one statement, and no row comes`(isRecorded: Bool) throws {
        try FaultProxy.withStore(options: [NSPersistentHistoryTrackingKey: isRecorded]) { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                let rows = (0..<2000).map {
                    ["name": String(repeating: "x", count: 100), "population": $0] as [String: Any]
                }
                _ = try context.execute(NSBatchInsertRequest(entityName: "City", objects: rows))
                let request = NSBatchUpdateRequest(entityName: "City")
                request.propertiesToUpdate = ["population": NSExpression(format: "population * 2 + 1"), "name": "new"]
                request.resultType = .updatedObjectsCountResultType
                let (trips, bytes) = (proxy.answers.withLock { $0 }, proxy.bytes.withLock { $0 })
                let result = try context.execute(request) as? NSBatchUpdateResult
                expectEqual(result?.result as? Int, 2000)
                // The history needs the keys.
                expect(proxy.bytes.withLock { $0 } - bytes < (isRecorded ? 100_000 : 2_000))
                if !isRecorded { expectEqual(proxy.answers.withLock { $0 }, trips + 2) }
                let fetch = NSFetchRequest<NSManagedObject>(entityName: "City")
                fetch.predicate = NSPredicate(format: "name == 'new' AND population IN {1, 3, 3999}")
                try expectEqual(context.count(for: fetch), 3)
            }
        }
    }

    @Test func `the first fetch after a store was opened takes one round trip, and so does the next`() throws {
        try FaultProxy.withStore { proxy, _, coordinator in
            for name in ["made", "opened"] {
                let context = context(coordinator)
                try context.performAndWait {
                    for entity in ["City", "City", "Venue"] {
                        let before = proxy.answers.withLock { $0 }
                        try expectEqual(context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity)), [])
                        expectEqual(proxy.answers.withLock { $0 }, before + 1, "\(entity), \(name)")
                    }
                }
                let store = try require(coordinator.persistentStores.first)
                let url = try require(store.url)
                try coordinator.remove(store)
                try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url)
            }
        }
    }

    @Test
    func `a context is pinned in one round trip, on an idle connection, which is used again afterwards`()
        throws
    {
        try FaultProxy.withStore { proxy, schema, coordinator in
            let (context, other) = (context(coordinator), context(coordinator))
            let direct = try Server.connection()
            try direct.command("SET search_path TO \"\(schema)\"")
            try context.performAndWait {
                _ = context.insert("City", ["name": "Rome"])
                try context.save()
            }
            try expectEqual(Cities.fetched(other), ["Rome"])
            for round in 0..<3 {
                var (trips, callers) = (proxy.answers.withLock { $0 }, proxy.callers.withLock { $0 })
                try context.performAndWait { try context.setQueryGenerationFrom(.current) }
                try expectEqual(Cities.fetched(context), ["Rome"])
                // There is one round trip for the version, and one for the read.
                expectEqual(proxy.answers.withLock { $0 }, trips + 2)
                expectEqual(proxy.callers.withLock { $0 }, callers)
                try expectEqual(PinnedStack.holders(direct), 1)
                // Meanwhile another context has a connection, which is new the first time.
                callers += round == 0 ? 1 : 0
                try expectEqual(Cities.fetched(other), ["Rome"])
                expectEqual(proxy.callers.withLock { $0 }, callers)
                try context.performAndWait { try context.setQueryGenerationFrom(nil) }
                try waitUntil { try PinnedStack.holders(direct) == 0 }
                // The connection comes back after its rollback.
                let store = try require(coordinator.persistentStores.first as? PostgreSQLStore)
                let pool = try require(store.engine as? PostgreSQLEngine).openDatabase().pool
                try waitUntil { pool.idleCount == 2 }
            }
        }
    }

    @Test func `a context is pinned though the idle connection turns out to be lost`() throws {
        try FaultProxy.withStore { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                _ = context.insert("City", ["name": "Rome"])
                try context.save()
                // The connection breaks when it is used.
                proxy.arm(.cutBefore, at: "pg_export_snapshot")
                try context.setQueryGenerationFrom(.current)
            }
            try expectEqual(Cities.fetched(context), ["Rome"])
            expect(proxy.hasStruck)
        }
    }

    @Test(arguments: [nil, 600])
    func `a read of a pinned version takes one round trip`(age: Int?) throws {
        let options: [AnyHashable: Any]? = age.map { [NSPostgreSQLPinnedVersionAgeOption: $0 as NSNumber] }
        try FaultProxy.withStore(options: options) { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                for name in ["Lagos", "Rome"] { City(context: context).name = name }
                try context.save()
                try context.setQueryGenerationFrom(.current)
                func trips(_ body: () throws -> Void) rethrows -> Int {
                    let before = proxy.answers.withLock { $0 }
                    try body()
                    return proxy.answers.withLock { $0 } - before
                }
                for _ in 0..<2 {
                    context.reset()
                    // The first read pins the context.
                    try expectEqual(context.count(for: NSFetchRequest<Venue>(entityName: "Venue")), 0)
                    var cities: [City] = []
                    try expectEqual(trips { cities = try context.fetch(NSFetchRequest<City>(entityName: "City")) }, 1)
                    expectEqual(trips { expectEqual(cities.first?.venues.count, 0) }, 1)
                    let sum = NSFetchRequest<NSDictionary>(entityName: "City")
                    sum.resultType = .dictionaryResultType
                    sum.propertiesToFetch = ["name"]
                    sum.returnsDistinctResults = true
                    try expectEqual(trips { try expectEqual(context.fetch(sum).count, 2) }, 1)
                }
            }
        }
    }

    @Test
    func `dictionaries that one statement gives take one round trip, and what takes several statements one for COMMIT`()
        throws
    {
        try FaultProxy.withStore { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                for name in ["Lagos", "Rome", "Rome"] { City(context: context).name = name }
                try context.save()
                func trips(_ body: () throws -> Void) rethrows -> Int {
                    let before = proxy.answers.withLock { $0 }
                    try body()
                    return proxy.answers.withLock { $0 } - before
                }
                let groups = NSFetchRequest<NSDictionary>(entityName: "City")
                groups.resultType = .dictionaryResultType
                groups.propertiesToFetch = ["name"]
                groups.propertiesToGroupBy = ["name"]
                try expectEqual(trips { try expectEqual(context.fetch(groups).count, 2) }, 1)
                try expectEqual(trips { try expectEqual(context.count(for: groups), 2) }, 1)
                groups.predicate = NSPredicate(format: "venues.@sum.visits < 3")
                try expectEqual(trips { try expectEqual(context.fetch(groups).count, 2) }, 2)
                let matching = NSFetchRequest<City>(entityName: "City")
                matching.predicate = NSPredicate(format: "name LIKE[c] 'r*'")
                try expectEqual(trips { try expectEqual(context.fetch(matching).count, 2) }, 2)
            }
        }
    }

    @Test func `many insertions seldom wait for keys`() throws {
        try FaultProxy.withStore { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                func save(_ count: Int) throws {
                    for _ in 0..<count { _ = Venue(context: context) }
                    try context.save()
                }
                try save(1)
                let before = proxy.answers.withLock { $0 }
                for _ in 0..<25 { try save(400) }
                // There are 10,000 keys: the first 1,000, then 2,000, 4,000 and 8,000. Plans are dropped twice, since
                // the table has grown.
                expectEqual(proxy.answers.withLock { $0 }, before + 25 * 2 + 3 + 2)
            }
        }
    }

    @Test func `new rows are on their way before the locks are answered`() throws {
        try FaultProxy.withStore { proxy, _, coordinator in
            let context = context(coordinator)
            try context.performAndWait {
                let city = City(context: context)
                city.name = "Lagos"
                let first = Venue(context: context)
                first.name = "draws the keys"
                try context.save()
                let venue = Venue(context: context)
                venue.name = "is sent ahead"
                venue.city = city
                proxy.holdAnswers(until: "is sent ahead")
                try context.save()
            }
        }
    }

    @Test func `new rows that lead to one which is gone are never there`() throws {
        try FaultProxy.withStore { _, schema, coordinator in
            let (context, other) = (context(coordinator), context(coordinator))
            func venues() throws -> Int64? {
                try Server.connection().query("SELECT pg_catalog.count(*) FROM \"\(schema)\".venue").firstInt64
            }
            try context.performAndWait {
                let (city, rest) = (City(context: context), City(context: context))
                for city in [city, rest] { city.name = "Lagos" }
                try context.save()
                let id = city.objectID
                try other.performAndWait {
                    other.delete(other.object(with: id))
                    try other.save()
                }
                let new = (0..<10).map { _ in Venue(context: context) }
                for venue in new { venue.city = rest }
                new[7].city = city
                let error = expectThrows(CocoaError.self) { try context.save() }
                expectEqual(error?.code, .managedObjectMerge)
                try expectEqual(venues(), 0)
                expect(new.allSatisfy(\.isInserted))
                // The context goes on with the same connection.
                new[7].city = rest
                try context.save()
                try expectEqual(venues(), 10)
            }
        }
    }

    @Test func `behind a statement that fails none is carried out, and the error is the first`() throws {
        let connection = try Server.connection()
        try connection.command("CREATE TEMPORARY TABLE numbers (number bigint PRIMARY KEY)")
        try connection.post("BEGIN")
        try connection.post("INSERT INTO numbers VALUES ($1)", [.int8(1)])
        try connection.post("INSERT INTO numbers VALUES ($1)", [.int8(1)])
        let late = try connection.post("SELECT 1 / 0")
        let commit = try connection.post("COMMIT", isKept: false)
        let error = expectThrows(PostgreSQLError.self) { try connection.answer(commit) }
        expectEqual(error?.sqlState, "23505")
        expectThrows(PostgreSQLError.self) { try connection.answer(late) }
        expect(!connection.isBroken && !connection.isIdle)
        try connection.rollback()
        try expectEqual(connection.query("SELECT pg_catalog.count(*) FROM numbers").firstInt64, 0)
        // A statement that could not be prepared because another one failed is prepared the next time.
        try connection.query("INSERT INTO numbers VALUES ($1)", [.int8(1)])
        expectThrows(PostgreSQLError.self) { try connection.query("SELECT 1 / 0") }
        try expectEqual(connection.query("SELECT number FROM numbers").firstInt64, 1)
    }

    @Test func `behind a statement whose rows came one by one all answers are whole`() throws {
        let connection = try Server.connection()
        let sql = "SELECT pg_catalog.generate_series(1, 3)"
        // The statement is prepared already, so that it is the first to be sent the next time.
        try expectEqual(connection.answer(connection.post(sql)).rowCount, 3)
        for _ in 0..<2 {
            var count = 0
            try connection.each("SELECT pg_catalog.generate_series(1, 5)") { _ in
                count += 1
                return true
            }
            expectEqual(count, 5)
            try expectEqual(connection.answer(connection.post(sql)).rowCount, 3)
        }
    }

    @Test func `large values and large answers pass each other`() throws {
        let connection = try Server.connection()
        // This is much more than the sockets hold in either direction.
        let value = Data(repeating: 7, count: 4 << 20)
        let posted = try (0..<16).map { _ in try connection.post("SELECT $1", [.bytea(value)]) }
        for statement in posted {
            let result = try connection.answer(statement)
            expectEqual(result[0].data(0).count, value.count)
        }
    }

    @Test func `many small statements with large answers pass each other`() throws {
        let connection = try Server.connection()
        let posted = try (0..<3_000).map { _ in
            try connection.post("SELECT pg_catalog.repeat('x', 10000), $1", [.text("small")])
        }
        for statement in posted {
            let result = try connection.answer(statement)
            expectEqual(result[0].data(0).count, 10_000)
        }
    }

    @Test func `each of several statements that wait for others has the time of a single one`() throws {
        let connection = try Server.connection()
        connection.patience = 1
        let posted = try (0..<3).map { _ in try connection.post("SELECT pg_catalog.pg_sleep(0.6)", mayWait: true) }
        try expectEqual(connection.answer(posted[2]).rowCount, 1)
    }

    @Test func `a silent server's answers are not waited for`() throws {
        let connection = try Server.connection()
        connection.patience = 0.2
        try connection.post("SELECT 1")
        try connection.post("SELECT pg_catalog.pg_sleep(60)")
        let last = try connection.post("SELECT 2")
        let error = expectThrows(PostgreSQLError.self) { try connection.answer(last) }
        expectEqual(error?.kind, .deadline)
        expect(connection.isBroken)
    }

    @Test func `a server that takes nothing more is given up`() throws {
        let connection = try Server.connection()
        connection.patience = 0.2
        let value = PostgreSQLValue.bytea(Data(repeating: 7, count: 4 << 20))
        let error = expectThrows(PostgreSQLError.self) {
            try connection.post("SELECT pg_catalog.pg_sleep(60)")
            for _ in 0..<16 { try connection.post("SELECT pg_catalog.length($1)", [value]) }
            try connection.readPostedAnswers()
        }
        expectEqual(error?.kind, .deadline)
        expect(connection.isBroken)
    }

    @Test func `another thread cancels statements that were sent together`() throws {
        let connection = try Server.connection()
        let canceller = connection.canceller
        try connection.post("SELECT pg_catalog.pg_sleep(60)")
        let last = try connection.post("SELECT 1")
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { canceller.cancel() }
        let error = expectThrows(PostgreSQLError.self) { try connection.answer(last) }
        expectEqual(error?.sqlState, "57014")
        connection.awaitCancel()
        try expectEqual(connection.query("SELECT 1").firstInt64, 1)
    }

    @Test func `a session that ends between statements breaks its connection, and the pool opens another`() throws {
        let pool = ConnectionPool(try Server.target(), size: 1, timeout: 5) { _ in }
        defer { pool.close() }
        let error = expectThrows(PostgreSQLError.self) {
            try pool.withConnection { connection in
                try connection.post("BEGIN")
                try connection.post("SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())")
                _ = try connection.answer(try connection.post("COMMIT", isKept: false))
            }
        }
        expectEqual(error?.kind, .connection)
        try expectEqual(pool.withConnection { try $0.query("SELECT 1").firstInt64 }, 1)
    }

    @Test func `statements whose answers were not read are over when the connection comes back`() throws {
        let pool = ConnectionPool(try Server.target(), size: 1, timeout: 5) { _ in }
        defer { pool.close() }
        try pool.withConnection { connection in
            try connection.post("BEGIN")
            try connection.post("CREATE TABLE public.never (number bigint)")
        }
        let isThere = try pool.withConnection { connection in
            expect(connection.isIdle && !connection.hasPosted)
            let found = try connection.query("SELECT pg_catalog.to_regclass('public.never')::text")
            return !found[0].isNull(0)
        }
        expect(!isThere)
    }
}
