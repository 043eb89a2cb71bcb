import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import Synchronization
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

@Suite("Predicates that are evaluated while rows come from PostgreSQL", .enabled(if: Server.isThere))
struct StreamedEvaluationTests {
    /// A model of items in groups, with parts.
    private static func model() -> NSManagedObjectModel {
        let (item, group, part) = (
            StoreModels.entity("Item"), StoreModels.entity("Group"), StoreModels.entity("Part")
        )
        let (groupOf, items) = (StoreModels.toOne("group", group), StoreModels.toMany("items", item))
        let (parts, partOf) = (StoreModels.toMany("parts", part), StoreModels.toOne("item", item))
        StoreModels.connect(groupOf, items)
        StoreModels.connect(parts, partOf)
        item.properties = [
            StoreModels.attribute("name", .string), StoreModels.attribute("number", .integer64),
            StoreModels.attribute("payload", .string), groupOf, parts,
        ]
        group.properties = [StoreModels.attribute("title", .string), items]
        part.properties = [StoreModels.attribute("label", .string), partOf]
        return StoreModels.model(item, group, part)
    }

    /// Inserts items into a store: enough for two pieces, and a few of them with parts.
    private func fill(_ stack: Stack) throws {
        let context = stack.context()
        try context.performAndWait {
            let groups = (0..<12).map { number in
                let group = NSEntityDescription.insertNewObject(forEntityName: "Group", into: context)
                group.setValue(number == 5 ? nil : "\(number % 2 == 0 ? "G" : "g")\(number)", forKey: "title")
                return group
            }
            for number in 0..<2600 {
                let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                item.setValue(number, forKey: "number")
                let name = "\(number % 2 == 0 ? "Item" : "ITEM") \(number * 37 % 250)"
                item.setValue(number % 100 == 17 ? nil : name, forKey: "name")
                item.setValue(number % 13 == 12 ? nil : groups[number % 12], forKey: "group")
                guard number % 10 == 0 else { continue }
                for place in 0..<number / 10 % 4 {
                    let part = NSEntityDescription.insertNewObject(forEntityName: "Part", into: context)
                    part.setValue("\(place % 2 == 0 ? "P" : "p")\(place)", forKey: "label")
                    part.setValue(item, forKey: "item")
                }
            }
            try context.save()
        }
    }

    private static var sorts: [[NSSortDescriptor]] {
        [
            [], [NSSortDescriptor(key: "number", ascending: false)], [NSSortDescriptor(key: "name", ascending: true)],
            [NSSortDescriptor(key: "name", ascending: false, selector: .localizedStandardCompare)],
            [
                NSSortDescriptor(key: "group.title", ascending: true, selector: .localizedStandardCompare),
                NSSortDescriptor(key: "name", ascending: true),
            ],
        ]
    }

    private static let windows = [(0, 0), (7, 0), (7, 5), (0, 20), (900, 700), (100_000, 3), (5, 100_000)]

    /// Predicates about an item's attributes.
    private static let alone = [
        "name LIKE[c] 'item ?7'", "name CONTAINS[c] 'M 1'", "name MATCHES '.*[13]$'", "modulus:by:(number, 7) == 3",
        "NOT name BEGINSWITH[c] 'item'", "group != nil AND name ENDSWITH[c] '3'", "name ==[c] 'nobody'",
    ]
    private static let related = [
        "group.title LIKE[c] 'g1*'", "NOT group.title MATCHES '[g].*'", "name LIKE[c] '*7' OR group.title ==[c] 'G3'",
    ]
    // These ask each row for its members, which takes a while.
    private static let collections = [
        "SUBQUERY(parts, $p, $p.label LIKE[c] 'p?').@count > 1", "ANY parts.label MATCHES 'p.*'",
        "parts.@count + number == 133",
    ]

    @Test func `every predicate, order and window gives what a store in memory gives`() throws {
        let (stack, memory) = (try Stack(.postgreSQL, model: Self.model()), try Stack(.memory, model: Self.model()))
        for stack in [stack, memory] { try fill(stack) }
        let (context, pinned, expected) = (stack.context(), stack.context(), memory.context())
        try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
        func request<Result>(_ format: String, _ sort: [NSSortDescriptor], _ window: (Int, Int), _: Result.Type)
            -> NSFetchRequest<Result>
        {
            let request = NSFetchRequest<Result>(entityName: "Item")
            request.predicate = NSPredicate(format: format)
            request.sortDescriptors = sort
            (request.fetchLimit, request.fetchOffset) = window
            return request
        }
        func number(_ object: NSManagedObject) -> Int? { object.value(forKey: "number") as? Int }
        func check(_ format: String, _ sort: [NSSortDescriptor], _ window: (Int, Int)) throws {
            let wanted = try expected.performAndWait {
                try expected.fetch(request(format, sort, window, NSManagedObject.self)).map(number)
            }
            for (context, name) in [(context, "newest"), (pinned, "pinned")] {
                let comment: Comment = "\(format), \(sort), \(window), \(name)"
                try context.performAndWait {
                    let found = try context.fetch(request(format, sort, window, NSManagedObject.self))
                    expectEqual(found.map(number), wanted, comment)
                    let identifiers = request(format, sort, window, NSManagedObjectID.self)
                    identifiers.resultType = .managedObjectIDResultType
                    try expectEqual(context.fetch(identifiers), found.map(\.objectID), comment)
                    try expectEqual(
                        context.count(for: request(format, sort, window, NSManagedObject.self)),
                        wanted.count,
                        comment
                    )
                }
            }
        }
        var place = 0
        for format in Self.alone + Self.related {
            for sort in Self.sorts {
                for _ in 0..<2 {
                    try check(format, sort, Self.windows[place % Self.windows.count])
                    place += 1
                }
            }
        }
        for format in Self.collections {
            try check(format, Self.sorts[1], (30, 20))
            try check(format, [], (0, 3))
        }
    }

    // MARK: - Many rows

    /// Makes the server insert items with payloads, numbered from 0.
    private static func makeItems(_ count: Int, _ size: Int, _ coordinator: NSPersistentStoreCoordinator, _ url: URL)
        throws
    {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "Item", into: context).setValue("first", forKey: "name")
            try context.save()
        }
        let target = try ConnectionTarget(url)
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        try connection.query(
            """
            INSERT INTO item (strata_id, strata_entity, strata_version, number, name, payload)
            SELECT 1000000 + n, i.strata_entity, 1, n, 'Item ' || n, pg_catalog.repeat('x', $2::integer)
            FROM item AS i, pg_catalog.generate_series(0, $1::bigint - 1) AS n
            """,
            [.int8(Int64(count)), .int8(Int64(size))]
        )
    }

    /// Runs `body` with a store of many items behind a proxy.
    private static func withItems(
        _ count: Int,
        size: Int = 500,
        _ body: (FaultProxy, NSManagedObjectContext) throws -> Void
    ) throws {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        let schema = "streamed_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let url = try require(URL(string: "\(proxy.url.absoluteString)&schema=\(schema)"))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model())
        try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url)
        defer {
            for store in coordinator.persistentStores { try? coordinator.remove(store) }
            _ = try? Server.connection().command("DROP SCHEMA \"\(schema)\" CASCADE")
        }
        try makeItems(count, size, coordinator, url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try body(proxy, context)
    }

    private func numbers(_ request: NSFetchRequest<NSManagedObject>, _ context: NSManagedObjectContext) throws -> [Int]
    {
        try context.performAndWait {
            try context.fetch(request).compactMap { $0.value(forKey: "number") as? Int }
        }
    }

    private static func request(_ format: String, limit: Int = 0, _ key: String? = "number") -> NSFetchRequest<
        NSManagedObject
    > {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
        request.predicate = NSPredicate(format: format)
        request.fetchLimit = limit
        request.sortDescriptors = key.map { [NSSortDescriptor(key: $0, ascending: true)] } ?? []
        return request
    }

    @Test func `a fetch with a limit reads no more than it takes to fill its window, on a pinned version too`() throws {
        try Self.withItems(30_000) { proxy, context in
            let formats = [
                "name LIKE[c] 'item *7'", "name MATCHES 'I.*7'", "name LIKE[c] '*7' OR group.title LIKE[c] 'g*'",
            ]
            for pins in [false, true] {
                try context.performAndWait { try context.setQueryGenerationFrom(pins ? .current : nil) }
                for format in formats {
                    let before = proxy.bytes.withLock { $0 }
                    try expectEqual(numbers(Self.request(format, limit: 3), context), [7, 17, 27], "\(format)")
                    let count = try context.performAndWait { try context.count(for: Self.request(format, limit: 5)) }
                    expectEqual(count, 5)
                    // This is the size of two pieces of 1,000 rows. All 30,000 rows would take 17 MB.
                    expect(proxy.bytes.withLock { $0 } - before < 2_000_000, "\(format)")
                }
                // This reads many pieces, and the last one is not full.
                try expectEqual(numbers(Self.request("name LIKE[c] 'item 29999'", limit: 3), context), [29_999])
            }
        }
    }

    @Test func `pieces of large rows are shorter`() throws {
        try Self.withItems(3_000, size: 20_000) { proxy, context in
            let before = proxy.bytes.withLock { $0 }
            try expectEqual(numbers(Self.request("name LIKE[c] 'item 1100'", limit: 1), context), [1100])
            // The first piece has 1,000 rows and 20 MB, and two more pieces of 200 rows suffice. 2,000 rows would be
            // 40 MB.
            expect(proxy.bytes.withLock { $0 } - before < 30_000_000)
        }
    }

    @Test func `what several pieces lead to is read once`() throws {
        // Foreign keys would read the table too.
        let stack = try Stack(.postgreSQL, model: Self.model(), options: [NSPostgreSQLForeignKeysOption: false])
        try fill(stack)
        let context = stack.context()
        let found = try numbers(Self.request("group.title MATCHES 'g7'"), context)
        expectEqual(found.count, 200)
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        // The server counts the reads of a session when the session ends.
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        let sql = "SELECT n_tup_ins, seq_scan + idx_scan FROM pg_stat_user_tables WHERE relid = '\"group\"'::regclass"
        var told = try connection.query(sql)
        let end = ContinuousClock.now + .seconds(30)
        while told[0].int64(0) < 12, ContinuousClock.now < end {
            usleep(10_000)
            told = try connection.query(sql)
        }
        // There are 14 reads: one for each of 12 groups, one of all groups for the index, and one that checks drawn
        // keys against rows. Without sharing, the groups would be read twice.
        expectEqual(told[0].int64(1), 14)
    }

    #if STRATA_TSAN
    // The sanitizer takes several times the memory of the program, and keeps it.
    private static let countsMemory = false
    #else
    private static let countsMemory = true
    #endif

    @Test(.enabled(if: countsMemory, "ThreadSanitizer takes memory of its own"))
    func `rows that do not match take no memory`() async {
        // This runs in a separate process, since other tests' memory would count too.
        await #expect(processExitsWith: .success) {
            endInTime()
            try StreamedEvaluationTests.withItems(60_000) { _, context in
                try context.performAndWait {
                    func fetch(_ format: String, limit: Int = 0) throws {
                        let request = StreamedEvaluationTests.request(format, limit: limit)
                        try require(try context.fetch(request).isEmpty && context.count(for: request) == 0)
                    }
                    try fetch("name == 'nobody'")
                    let before = StreamedEvaluationTests.mostMemory()
                    for limit in [0, 5] {
                        try fetch("name LIKE[c] 'nobody *'", limit: limit)
                        try fetch("name LIKE[c] 'nobody *' OR group.title LIKE[c] 'x*'", limit: limit)
                    }
                    // The rows take 50 MB.
                    let growth = StreamedEvaluationTests.mostMemory() - before
                    try require(before > 0 && growth < 25_000, "\(growth) kB")
                }
            }
        }
    }

    /// The most memory that the process has used so far, in kilobytes; 0 if it is not known.
    private static func mostMemory() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
    }

    @Test func `counts and identifiers take no more of a row than the predicate looks at`() throws {
        try Self.withItems(10_000) { proxy, context in
            let before = proxy.bytes.withLock { $0 }
            let format = "name LIKE[c] 'item *7'"
            try context.performAndWait {
                try expectEqual(context.count(for: Self.request(format)), 1000)
                let identifiers = NSFetchRequest<NSManagedObjectID>(entityName: "Item")
                identifiers.resultType = .managedObjectIDResultType
                identifiers.predicate = NSPredicate(format: format)
                try expectEqual(context.fetch(identifiers).count, 1000)
            }
            // The payloads alone are twice 5 MB.
            expect(proxy.bytes.withLock { $0 } - before < 2_000_000)
        }
    }

    @Test func `rows that are read whole are of the moment at which they were sorted, whatever others save in between`()
        throws
    {
        try Self.withItems(10_000) { proxy, context in
            let url = try require(context.persistentStoreCoordinator?.persistentStores.first?.url)
            let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems
            let target = try Server.target(schema: require(items?.last { $0.name == "schema" }?.value))
            let request = Self.request("number >= 0", limit: 12)
            request.sortDescriptors = [
                NSSortDescriptor(key: "name", ascending: true, selector: .localizedStandardCompare)
            ]
            let (before, changes) = (proxy.bytes.withLock { $0 }, Shared<Errand<Void>?>(nil))
            // The answer to the first statement is on its way, and the second statement is not sent yet.
            proxy.onBytes.withLock {
                $0 = { bytes in
                    guard bytes > before + 50_000, changes.current == nil else { return }
                    let errand = Errand {
                        let connection = try Connection.open(target, timeout: 30)
                        try connection.command("SET search_path TO \(target.quotedSchema)")
                        try connection.command("UPDATE item SET payload = 'late'; DELETE FROM item WHERE number = 3")
                    }
                    changes.update { $0 = errand }
                    do { try errand.wait() } catch { Issue.record(error) }
                }
            }
            defer { proxy.onBytes.withLock { $0 = nil } }
            try context.performAndWait {
                let found = try context.fetch(request)
                expectEqual(found.map { $0.value(forKey: "number") as? Int }, Array(0..<12))
                expectEqual(
                    found.map { ($0.value(forKey: "payload") as? String)?.count },
                    Array(repeating: 500, count: 12)
                )
            }
            expect(changes.current != nil)
        }
    }

    @Test func `only rows in the window are read whole if the process has to sort`() throws {
        try Self.withItems(10_000) { proxy, context in
            let order = [NSSortDescriptor(key: "name", ascending: true, selector: .localizedStandardCompare)]
            for format in ["number >= 0", "name LIKE[c] 'item *'"] {
                for pins in [false, true] {
                    try context.performAndWait { try context.setQueryGenerationFrom(pins ? .current : nil) }
                    let request = Self.request(format, limit: 12)
                    request.sortDescriptors = order
                    request.fetchOffset = 95
                    let before = proxy.bytes.withLock { $0 }
                    try expectEqual(numbers(request, context), Array(95..<107), "\(format)")
                    try context.performAndWait {
                        let payloads = try context.fetch(request).map {
                            ($0.value(forKey: "payload") as? String)?.count
                        }
                        expectEqual(payloads, Array(repeating: 500, count: 12))
                    }
                    // The payloads of all rows are twice 5 MB.
                    expect(proxy.bytes.withLock { $0 } - before < 2_000_000, "\(format)")
                }
            }
        }
    }

    @Test func `a fetch whose first piece is the last takes one round trip, and one more`() throws {
        try Self.withItems(20) { proxy, context in
            func trips(_ request: NSFetchRequest<NSManagedObject>, _ count: Int) throws -> Int {
                _ = try numbers(request, context)
                let before = proxy.answers.withLock { $0 }
                try expectEqual(numbers(request, context).count, count)
                return proxy.answers.withLock { $0 } - before
            }
            let few = NSFetchRequest<NSManagedObject>(entityName: "Item")
            few.predicate = NSPredicate(format: "name LIKE[c] 'item ?' AND number < 8")
            few.fetchLimit = 30
            // The first trip is BEGIN with the piece, and the second one COMMIT with CLOSE.
            try expectEqual(trips(few, 8), 2)
        }
    }

    // MARK: - Failures

    /// A plan for a fetch of items, and the store that answers it.
    private func plan(_ request: NSFetchRequest<NSManagedObject>, _ context: NSManagedObjectContext) throws
        -> (FetchPlan, OpenStore)
    {
        let coordinator = try require(context.persistentStoreCoordinator)
        var specification = FetchSpecification()
        specification.entity = coordinator.managedObjectModel.entitiesByName["Item"]
        specification.predicate = request.predicate
        specification.sortDescriptors = request.sortDescriptors ?? []
        specification.fetchLimit = request.fetchLimit
        let store = try require(coordinator.openStores.first)
        return (try FetchPlanner(model: context.model).plan(specification).asked(ofStore: store.number), store)
    }

    @Test(arguments: [
        ("name LIKE[c] 'item *'", 0), ("name LIKE[c] 'item *'", 9_000),
        ("group.title LIKE[c] 'x' OR name LIKE[c] 'item *'", 0),
    ])
    func `a fetch that is cancelled half-way ends, and the connection is as good as before`(
        format: String,
        limit: Int
    ) throws {
        try Self.withItems(10_000) { _, context in
            var (plan, store) = try plan(Self.request(format, limit: limit), context)
            let most = Atomic(0)
            let control = Locked(FetchControl?.none)
            plan.control = FetchControl(estimate: 10_000) { read, _ in
                most.max(read, ordering: .relaxed)
                if read == 2560 { control.withLock { $0 }?.cancellation.cancel() }
            }
            control.withLock { $0 = plan.control }
            let error = expectThrows(CocoaError.self) { try store.rows.rows(for: plan) }
            control.withLock { $0 = nil }
            expectEqual(error?.code, .userCancelled)
            // Matches are reported as they come.
            expectEqual(most.load(ordering: .relaxed), 2560)
            plan.control = nil
            try expectEqual(store.rows.rows(for: plan).count, limit == 0 ? 10_000 : limit)
        }
    }

    @Test func `a fetch that is cancelled while its rows are counted ends, and no row counts twice`() throws {
        try Self.withItems(30_000) { proxy, context in
            var (plan, store) = try plan(Self.request("name LIKE[c] 'item *7'"), context)
            let control = FetchControl { read, expected in
                expect(read <= expected ?? read, "\(read) of \(expected ?? 0)")
            }
            plan.control = control
            let before = proxy.bytes.withLock { $0 }
            proxy.onBytes.withLock { $0 = { if $0 - before > 1_500_000 { control.cancellation.cancel() } } }
            let error = expectThrows(CocoaError.self) { try store.rows.rows(for: plan) }
            expectEqual(error?.code, .userCancelled)
            // All rows take 17 MB, even if they are only counted.
            expect(proxy.bytes.withLock { $0 } - before < 8_000_000)
            proxy.onBytes.withLock { $0 = nil }

            // The session is lost once the rows are counted and some of them are reported.
            let told = Locked([(Int, Int?)]())
            let isCut = Atomic(false)
            let followed = FetchControl { read, expected in
                told.withLock { $0.append((read, expected)) }
                if read >= 512, !isCut.exchange(true, ordering: .acquiringAndReleasing) {
                    proxy.setOpen(false)
                    proxy.setOpen(true)
                }
            }
            plan.control = followed
            try expectEqual(store.rows.rows(for: plan).count, 3_000)
            expect(isCut.load(ordering: .acquiring))
            let last = told.withLock { $0.last }
            expectEqual(last?.0, 3_000)
            expectEqual(last?.1, 3_000)
        }
    }

    @Test func `an evaluation that fails leaves no cursor behind, on a pinned version too`() throws {
        try Self.withItems(3_000) { _, context in
            // The match of a text takes almost for ever. In the order, the last item that matches comes first.
            let hostile = Self.request("name LIKE[c] 'item *' AND payload MATCHES '(x*)*(x*)*(x*)*y'", limit: 3)
            hostile.evaluationTimeLimit = 0.2
            for pins in [false, true] {
                try context.performAndWait { try context.setQueryGenerationFrom(pins ? .current : nil) }
                for _ in 0..<2 {
                    let error = expectThrows(CocoaError.self) { try numbers(hostile, context) }
                    expect("\(error.debugDescription)".contains("raise evaluationTimeLimit"))
                    try expectEqual(numbers(Self.request("name LIKE[c] 'item *7'", limit: 2), context), [7, 17])
                }
            }
        }
    }

    @Test func `all pieces together have the time that a fetch has`() throws {
        try Self.withItems(2_600, size: 10) { proxy, context in
            let none = Self.request("name LIKE[c] 'nobody *'", limit: 3)
            none.evaluationTimeLimit = 0.35
            proxy.delay.withLock { $0 = 200_000 }
            // Two pieces share the time.
            let error = expectThrows(CocoaError.self) { try numbers(none, context) }
            expect("\(error.debugDescription)".contains("raise evaluationTimeLimit"))
            proxy.delay.withLock { $0 = 0 }
            none.evaluationTimeLimit = 30
            try expectEqual(numbers(none, context), [])
        }
    }

    @Test func `batches change the rows of all pieces`() throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        try fill(stack)
        let context = stack.context()
        try context.performAndWait {
            let update = NSBatchUpdateRequest(entityName: "Item")
            update.predicate = NSPredicate(format: "group.title LIKE[c] 'G7'")
            update.propertiesToUpdate = ["payload": "changed"]
            update.resultType = .updatedObjectsCountResultType
            try expectEqual((context.execute(update) as? NSBatchUpdateResult)?.result as? Int, 200)
            try expectEqual(context.count(for: Self.request("payload == 'changed'")), 200)
            let some = NSFetchRequest<any NSFetchRequestResult>(entityName: "Item")
            some.predicate = NSPredicate(format: "name MATCHES 'I.*'")
            some.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
            some.fetchLimit = 1500
            try context.execute(NSBatchDeleteRequest(fetchRequest: some))
            try expectEqual(context.count(for: Self.request("name != nil")), 2574 - 1500)
            try expectEqual(numbers(Self.request("name != nil", limit: 1), context), [1515])
        }
    }
}
