import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Asking a long history")
struct HistoryPortionTests {
    private let stack: Stack
    private static let count: Int64 = 1300

    /// Makes the transactions 1 to 1300, each with a change of the same city.
    ///
    /// Every hundredth is by "a".
    init() throws {
        stack = try Stack.recording()
        try stack.saveCity(author: "b")
        try stack.write(author: "a") { context in
            let city = try require(try context.fetch(NSFetchRequest<City>(entityName: "City")).first)
            city.name = "changed"
            return city
        }
        // Reading gives the transactions their numbers.
        _ = try stack.transactions()
        try stack.sql(
            """
            BEGIN;
            CREATE TEMP TABLE N AS WITH RECURSIVE N(I) AS (SELECT 3 UNION ALL SELECT I + 1 FROM N WHERE I < \(Self.count))
            SELECT I FROM N;
            INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZTIMESTAMP)
            SELECT I, 16002, (SELECT ZAUTHORTS FROM ATRANSACTION WHERE Z_PK = CASE WHEN I % 100 THEN 1 ELSE 2 END), I FROM N;
            INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID)
            SELECT I, 16001, 1, (SELECT ZENTITY FROM ACHANGE WHERE Z_PK = 1), 1, I FROM N;
            UPDATE Z_PRIMARYKEY SET Z_MAX = \(Self.count) WHERE Z_ENT IN (16001, 16002);
            COMMIT
            """,
            postgreSQL: """
                BEGIN;
                INSERT INTO strata_transaction (id, number, author, time)
                SELECT gen_random_uuid(), i, CASE WHEN i % 100 = 0 THEN 'a' ELSE 'b' END, i
                FROM generate_series(3, \(Self.count)) AS i ORDER BY i;
                INSERT INTO strata_change (seq, place, kind, entity, keys) SELECT t.seq, 1, 1, c.entity, c.keys
                FROM strata_transaction AS t, strata_change AS c WHERE t.number > 2 AND c.kind = 0;
                UPDATE strata_history SET last = \(Self.count);
                COMMIT
                """
        )
    }

    private func request(
        _ type: NSPersistentHistoryResultType,
        _ fetch: NSFetchRequest<any NSFetchRequestResult>?,
        _ predicate: NSPredicate?,
        limit: Int = 0
    ) throws -> NSPersistentHistoryChangeRequest {
        let fetch = try require(fetch)
        fetch.predicate = predicate
        fetch.fetchLimit = limit
        let request = NSPersistentHistoryChangeRequest.fetchHistory(withFetch: fetch)
        request.resultType = type
        return request
    }

    private func numbers(_ request: NSPersistentHistoryChangeRequest) throws -> [Int64] {
        try require(try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction]).map(
            \.transactionNumber
        )
    }

    @Test
    func `all that matches is found in its order, however long the history is`() throws {
        let isOfA = NSPredicate(format: "author == 'a'")
        let hundreds = [2] + stride(from: Int64(100), through: Self.count, by: 100)
        let transactions = try request(.transactionsOnly, NSPersistentHistoryTransaction.fetchRequest, isOfA)
        try expectEqual(numbers(transactions), hundreds)
        let whole = try request(.transactionsAndChanges, NSPersistentHistoryTransaction.fetchRequest, isOfA, limit: 9)
        let found = try require(try stack.coordinator.result(whole) as? [NSPersistentHistoryTransaction])
        expectEqual(found.map(\.transactionNumber), Array(hundreds.prefix(9)))
        expect(found.allSatisfy { $0.changes?.count == 1 && $0.changes?.first?.transaction == $0 })
        guard stack.kind == .sqlite else { return }
        expect(found.allSatisfy { $0.changes?.map(\.changeID) == [$0.transactionNumber] })
        let changes = try request(
            .changesOnly,
            NSPersistentHistoryChange.fetchRequest,
            NSPredicate(format: "changeID > 1200"),
            limit: 3
        )
        let ids = try require(try stack.coordinator.result(changes) as? [NSPersistentHistoryChange]).map(\.changeID)
        expectEqual(ids, [1201, 1202, 1203])
    }

    @Test
    func `a count gives as many as there are`() throws {
        func count(_ request: NSPersistentHistoryChangeRequest) throws -> Int? {
            request.resultType = .count
            return try stack.coordinator.result(request) as? Int
        }
        let all = Int(Self.count)
        try expectEqual(count(.fetchHistory(after: NSPersistentHistoryToken?.none)), all)
        try expectEqual(count(.fetchHistory(after: Date(timeIntervalSinceReferenceDate: 500))), all - 500 + 2)
        try expectEqual(count(request(.count, NSPersistentHistoryChange.fetchRequest, nil)), all)
        try expectEqual(count(request(.count, NSPersistentHistoryChange.fetchRequest, nil, limit: 700)), 700)
        try expectEqual(count(request(.count, NSPersistentHistoryTransaction.fetchRequest, nil, limit: 700)), 700)
        let isOfB = NSPredicate(format: "author == 'b'")
        try expectEqual(count(request(.count, NSPersistentHistoryTransaction.fetchRequest, isOfB, limit: 600)), 600)
    }

    @Test
    func `changes are read only if the predicate or the answer is about them`() throws {
        try stack.sql(
            "ALTER TABLE ACHANGE RENAME TO HIDDEN",
            postgreSQL: "ALTER TABLE strata_change RENAME TO hidden"
        )
        let fetch = NSPersistentHistoryTransaction.fetchRequest
        let isOfA = NSPredicate(format: "author IN {'a', 'c'} AND NOT transactionNumber > 250 AND TRUEPREDICATE")
        try expectEqual(numbers(request(.transactionsOnly, fetch, isOfA)), [2, 100, 200])
        try expectEqual(stack.coordinator.result(request(.count, fetch, isOfA)) as? Int, 3)
        for format in ["changes.@count == 1", "ANY changes.changeID == 1", "author == 'a' AND SELF.changes != nil"] {
            expectThrows(CocoaError.self) {
                try numbers(request(.transactionsOnly, fetch, NSPredicate(format: format)))
            }
        }
        let code = NSPredicate { object, _ in (object as? NSPersistentHistoryTransaction)?.changes?.count == 1 }
        expectThrows(CocoaError.self) { try numbers(request(.transactionsOnly, fetch, code)) }
    }

    @Test
    func `what comes while the history is read is left out, and what is purged meanwhile is not half there`() throws {
        let fetch = NSPersistentHistoryTransaction.fetchRequest
        let stack = stack
        let hasWritten = Shared(false)
        let writing = NSPredicate { _, _ in
            if !hasWritten.current {
                hasWritten.update { $0 = true }
                #expect(throws: Never.self) { try stack.saveCity("late") }
            }
            return true
        }
        try expectEqual(numbers(request(.transactionsOnly, fetch, writing)), Array(1...Self.count))

        let last = try require(try stack.transactions().last)
        let hasPurged = Shared(false)
        let purging = NSPredicate { _, _ in
            if !hasPurged.current {
                hasPurged.update { $0 = true }
                #expect(throws: Never.self) { try stack.coordinator.result(.deleteHistory(before: last)) }
            }
            return true
        }
        try expectEqual(numbers(request(.transactionsOnly, fetch, purging)), [Self.count + 1])
    }

    @Test(arguments: [0, 550])
    func `what is picked out while the history is read is left out as a whole`(_ limit: Int) throws {
        let stack = stack
        let hasPicked = Shared(false)
        let picking = NSPredicate { _, _ in
            if !hasPicked.current {
                hasPicked.update { $0 = true }
                // This deletes one transaction of each portion.
                #expect(throws: Never.self) {
                    let request = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
                    request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
                    request.fetchRequest?.predicate = NSPredicate(format: "transactionNumber IN {400, 510, 1100}")
                    request.resultType = .count
                    try expectEqual(stack.coordinator.result(request) as? Int, 3)
                }
            }
            return true
        }
        let request = try request(
            .transactionsOnly,
            NSPersistentHistoryTransaction.fetchRequest,
            picking,
            limit: limit
        )
        let left = (1...Self.count).filter { ![400, 510, 1100].contains($0) }
        try expectEqual(numbers(request), limit == 0 ? left : Array(left.prefix(limit)))
    }

    @Test
    func `a long history is picked from as a whole`() throws {
        let request = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        request.fetchRequest?.predicate = NSPredicate(format: "author != 'a'")
        request.resultType = .count
        let hundreds = [2] + stride(from: Int64(100), through: Self.count, by: 100)
        try expectEqual(stack.coordinator.result(request) as? Int, Int(Self.count) - hundreds.count)
        try expectEqual(stack.transactions().map(\.transactionNumber), hundreds)
    }
}
