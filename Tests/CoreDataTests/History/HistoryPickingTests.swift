import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Transactions that are picked out of a history")
struct HistoryPickingTests {
    private let stack: Stack
    /// The token before all transactions, and the token after each of them.
    private let tokens: [NSPersistentHistoryToken]

    /// Makes six transactions with an insertion each, by "a", "b", "a", "b", "a" and "b".
    ///
    /// The first two come from a context "x", and the others from "y".
    init() throws {
        let stack = try Stack.recording()
        var tokens = [try stack.currentToken]
        for number in 1...6 {
            try Self.save(stack, by: number % 2 == 1 ? "a" : "b", in: number < 3 ? "x" : "y")
            tokens.append(try stack.currentToken)
        }
        (self.stack, self.tokens) = (stack, tokens)
    }

    private static func save(_ stack: Stack, by author: String, in name: String = "y") throws {
        let context = stack.context(name)
        try context.performAndWait {
            context.transactionAuthor = author
            let city = City(context: context)
            city.name = "Porto"
            try context.save()
        }
    }

    /// Restricts a deletion to the transactions that match a format.
    private func picking(
        _ format: String,
        _ request: NSPersistentHistoryChangeRequest = .deleteHistory(before: Date.distantFuture)
    ) -> NSPersistentHistoryChangeRequest {
        request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        request.fetchRequest?.predicate = NSPredicate(format: format)
        request.resultType = .count
        return request
    }

    private func pick(_ numbers: [Int64]) throws {
        let list = numbers.map(String.init).joined(separator: ", ")
        try expectEqual(stack.coordinator.result(picking("transactionNumber IN {\(list)}")) as? Int, numbers.count)
    }

    private func numbers(after token: NSPersistentHistoryToken? = nil) throws -> [Int64] {
        try stack.transactions(after: token).map(\.transactionNumber)
    }

    /// Checks that the tokens from a number on give the transactions left after them, and that earlier tokens have
    /// expired.
    private func check(_ left: [Int64], tokensFrom first: Int = 0) throws {
        try expectEqual(numbers(), left)
        let last = try require(try stack.currentToken.transactionNumbers.values.first)
        for (number, token) in tokens.enumerated() {
            guard number < first else {
                try expectEqual(numbers(after: token), left.filter { $0 > Int64(number) })
                continue
            }
            let error = historyError { _ = try stack.transactions(after: token) }
            expectEqual(error?.code.rawValue, NSPersistentHistoryTokenExpiredError)
            let oldest = error?.userInfo[NSPersistentHistoryOldestTransactionNumberKey] as? Int64
            expectEqual(oldest, left.first ?? last + 1)
        }
        try expectEqual(stack.transactions().allSatisfy { $0.changes?.count == 1 }, true)
        try expectEqual(stack.verificationProblems(), [])
    }

    // MARK: - What is picked

    @Test
    func `a deletion with a predicate removes what it matches, and nothing else`() throws {
        try stack.sql(
            "UPDATE ATRANSACTION SET ZBUNDLEIDTS = NULL, ZBUNDLEID = CASE Z_PK % 3 WHEN 0 THEN 'org.third' ELSE '' END",
            postgreSQL: "UPDATE strata_transaction SET bundle = CASE number % 3 WHEN 0 THEN 'org.third' ELSE '' END"
        )
        try expectEqual(stack.coordinator.result(picking("author == 'a' AND contextName == 'x'")) as? Int, 1)
        try check([2, 3, 4, 5, 6])
        try expectEqual(stack.coordinator.result(picking("contextName == 'x'")) as? Int, 1)
        try check([3, 4, 5, 6])
        try expectEqual(stack.coordinator.result(picking("bundleID == 'org.third'")) as? Int, 2)
        try check([4, 5])
        try expectEqual(stack.coordinator.result(picking("author != 'a'")) as? Int, 1)
        try check([5])
        try expectEqual(stack.coordinator.result(picking("author != 'a'")) as? Int, 0)
        let left = try stack.column(
            "SELECT DISTINCT ZTRANSACTIONID FROM ACHANGE",
            postgreSQL:
                "SELECT DISTINCT t.number::text FROM strata_change AS c LEFT JOIN strata_transaction AS t USING (seq)"
        )
        expectEqual(left, ["5"])
        if stack.kind == .sqlite {
            try expectEqual(stack.column("SELECT COUNT(*) FROM ATRANSACTIONSTRING WHERE ZNAME IN ('b', 'x')"), ["0"])
        }
    }

    @Test
    func `a predicate on transactions may look at their changes`() throws {
        let second = try require(stack.changes().first { $0.transaction?.transactionNumber == 2 }?.changedObjectID)
        let request = picking("TRUEPREDICATE")
        request.fetchRequest?.predicate = NSPredicate(
            format: "ANY changes.changedObjectID == %@",
            argumentArray: [second]
        )
        try expectEqual(stack.coordinator.result(request) as? Int, 1)
        try check([1, 3, 4, 5, 6])
    }

    @Test
    func `the bound and the limit hold for what is picked too`() throws {
        try stack.sql(
            "UPDATE ATRANSACTION SET ZTIMESTAMP = CASE Z_PK WHEN 2 THEN 900 ELSE Z_PK * 100 END",
            postgreSQL: "UPDATE strata_transaction SET time = CASE number WHEN 2 THEN 900 ELSE number * 100 END"
        )
        let nothing = picking("TRUEPREDICATE", .deleteHistory(before: NSPersistentHistoryToken?.none))
        try expectEqual(stack.coordinator.result(nothing) as? Int, 0)
        let early = picking("author == 'a'", .deleteHistory(before: tokens[3]))
        try expectEqual(stack.coordinator.result(early) as? Int, 1)
        try check([2, 3, 4, 5, 6])
        // Each transaction's own time counts, whatever stays before it.
        let date = Date(timeIntervalSinceReferenceDate: 500)
        try expectEqual(stack.coordinator.result(picking("TRUEPREDICATE", .deleteHistory(before: date))) as? Int, 2)
        try check([2, 5, 6])
        let last = try require(try stack.transactions().last)
        let limited = picking("TRUEPREDICATE", .deleteHistory(before: last))
        limited.fetchRequest?.fetchLimit = 1
        try expectEqual(stack.coordinator.result(limited) as? Int, 1)
        try check([5, 6])
        limited.resultType = .statusOnly
        try expectEqual(stack.coordinator.result(limited) as? Bool, true)
        try check([6])
    }

    @Test
    func `requests that cannot be answered delete nothing`() throws {
        let request = picking("TRUEPREDICATE")
        request.fetchRequest = NSPersistentHistoryChange.fetchRequest
        let sorted = picking("TRUEPREDICATE")
        sorted.fetchRequest?.sortDescriptors = [NSSortDescriptor(key: "author", ascending: true)]
        let unknown = picking("population > 1")
        for request in [request, sorted, unknown] {
            let error = historyError { _ = try stack.coordinator.result(request) }
            expectEqual(error?.code, .persistentStoreOperation)
        }
        let foreign = NSPersistentHistoryToken(transactionNumbers: [UUID().uuidString: 1])
        let error = historyError {
            _ = try stack.coordinator.result(picking("TRUEPREDICATE", .deleteHistory(before: foreign)))
        }
        expectEqual(error?.code.rawValue, NSPersistentHistoryTokenStoreNotFoundError)
        try check([1, 2, 3, 4, 5, 6])
    }

    @Test
    func `a fetch request that matches all purges as none does`() throws {
        let request = NSPersistentHistoryChangeRequest.deleteHistory(before: tokens[4])
        request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        request.resultType = .count
        try expectEqual(stack.coordinator.result(request) as? Int, 3)
        try check([4, 5, 6], tokensFrom: 3)
    }

    // MARK: - What is left

    @Test(arguments: [[1, 2], [3, 4], [5, 6], [1, 3, 6], [2, 4, 5]] as [[Int64]])
    func `tokens before, in and behind holes stay good`(_ picked: [Int64]) throws {
        try pick(picked)
        try check((1...6).filter { !picked.contains($0) })
        try expectEqual(stack.currentToken, tokens[6])
        try Self.save(stack, by: "a")
        try check((1...7).filter { !picked.contains($0) })
    }

    @Test
    func `all can be picked out, and no number is given again`() throws {
        let used = try Set(stack.changes().map(\.changeID))
        try pick([1, 2, 3, 4, 5, 6])
        try check([])
        try expectEqual(stack.currentToken, tokens[6])
        let second = try stack.secondStack()
        try expectEqual(second.transactions(after: tokens[2]).count, 0)
        try stack.coordinator.remove(stack.store)
        try stack.coordinator.addPersistentStore(
            type: StoreKind.database.type,
            at: stack.storeURL,
            options: Stack.tracking
        )
        try Self.save(stack, by: "a")
        try check([7])
        try expectEqual(second.transactions(after: tokens[0]).map(\.transactionNumber), [7])
        try expect(stack.changes().allSatisfy { !used.contains($0.changeID) })
    }

    @Test
    func `a purge removes what is left before its bound, and holes before it are closed`() throws {
        try pick([1, 2, 4])
        let purge = NSPersistentHistoryChangeRequest.deleteHistory(before: tokens[5])
        purge.resultType = .count
        try expectEqual(stack.coordinator.result(purge) as? Int, 1)
        try check([5, 6], tokensFrom: 4)
        try pick([5])
        try check([6], tokensFrom: 4)
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        try check([], tokensFrom: 6)
        try Self.save(stack, by: "a")
        try check([7], tokensFrom: 6)
    }

    @Test
    func `what was purged before stays purged`() throws {
        _ = try stack.coordinator.result(.deleteHistory(before: tokens[3]))
        try check([3, 4, 5, 6], tokensFrom: 2)
        try pick([3, 4])
        try check([5, 6], tokensFrom: 2)
        try pick([5, 6])
        let error = historyError { _ = try stack.transactions(after: tokens[1]) }
        expectEqual(error?.code.rawValue, NSPersistentHistoryTokenExpiredError)
        try expect(numbers(after: tokens[2]).isEmpty)
    }

    @Test
    func `a purge by others, who know of no holes, lets tokens expire`() throws {
        // Only this framework uses a server's store.
        guard stack.kind == .sqlite else { return }
        try pick([1, 2])
        try check([3, 4, 5, 6])
        try stack.sql("DELETE FROM ACHANGE WHERE ZTRANSACTIONID < 5; DELETE FROM ATRANSACTION WHERE Z_PK < 5")
        try check([5, 6], tokensFrom: 4)
        try pick([5])
        try check([6], tokensFrom: 4)
    }

    @Test
    func `consumers stand in holes as elsewhere`() throws {
        let coordinator = stack.coordinator
        try coordinator.setPersistentHistoryToken(tokens[2], forConsumer: "known")
        try pick([1, 2, 3])
        try coordinator.setPersistentHistoryToken(tokens[1], forConsumer: "new")
        try expectEqual(coordinator.purgePersistentHistory(), 0)
        try expectEqual(numbers(after: coordinator.persistentHistoryToken(forConsumer: "known")), [4, 5, 6])
        try coordinator.setPersistentHistoryToken(tokens[5], forConsumer: "known")
        try coordinator.setPersistentHistoryToken(tokens[5], forConsumer: "new")
        try expectEqual(coordinator.purgePersistentHistory(), 1)
        try check([5, 6], tokensFrom: 4)
    }

    @Test
    func `a picking that fails leaves all as it was`() throws {
        try stack.sql(
            """
            CREATE TRIGGER held BEFORE DELETE ON ATRANSACTION WHEN old.Z_PK = 5
            BEGIN SELECT RAISE(ABORT, 'held'); END
            """,
            postgreSQL: """
                CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN IF OLD.number = 5 THEN RAISE EXCEPTION 'held'; END IF; RETURN OLD; END $$;
                CREATE TRIGGER held BEFORE DELETE ON strata_transaction FOR EACH ROW EXECUTE FUNCTION hold()
                """
        )
        expectThrows(CocoaError.self) { try stack.coordinator.result(picking("author == 'a'")) }
        try stack.sql("DROP TRIGGER held", postgreSQL: "DROP TRIGGER held ON strata_transaction; DROP FUNCTION hold()")
        try check([1, 2, 3, 4, 5, 6])
        try expectEqual(stack.coordinator.result(picking("author == 'a'")) as? Int, 3)
        try check([2, 4, 6])
    }

    @Test
    func `two coordinators may pick at once, and code of the predicate may save`() throws {
        let stack = stack
        let second = try stack.secondStack()
        let hasWorked = Shared(false)
        let request = picking("TRUEPREDICATE")
        request.fetchRequest?.predicate = NSPredicate { object, _ in
            if !hasWorked.current {
                hasWorked.update { $0 = true }
                #expect(throws: Never.self) {
                    let other = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
                    other.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
                    other.fetchRequest?.predicate = NSPredicate(format: "transactionNumber IN {1, 2}")
                    other.resultType = .count
                    try expectEqual(second.result(other) as? Int, 2)
                    try Self.save(stack, by: "a")
                }
            }
            return (object as? NSPersistentHistoryTransaction)?.author == "a"
        }
        // Number 1 is gone already, and number 7 is too late.
        try expectEqual(stack.coordinator.result(request) as? Int, 2)
        try check([4, 6, 7])
        try expectEqual(second.transactions(after: tokens[0]).map(\.transactionNumber), [4, 6, 7])
    }

    // MARK: - Verification

    @Test
    func `holes are no fault, and what does not fit behind them is`() throws {
        let city = try stack.saveCity("kept")
        try stack.change(city, City.self) { city, _ in city.name = "changed" }
        let doomed = try stack.saveCity("doomed")
        try stack.change(doomed, City.self) { city, _ in city.name = "changed" }
        try stack.change(doomed, City.self) { city, context in context.delete(city) }
        try expectEqual(numbers().count, 11)
        for number in [11, 7, 10] as [Int64] {
            try pick([number])
            try expectEqual(stack.verificationProblems(), [])
        }
        let last = try stack.saveCity("last")
        try expectEqual(stack.verificationProblems(), [])
        guard stack.kind == .sqlite else { return }
        try stack.sql("DELETE FROM ZCITY WHERE ZNAME = 'last'")
        let problems = try stack.verificationProblems()
        expect(problems.contains { $0.contains("missing although in the history") }, "\(last) \(problems)")
    }

    @Test
    func `numbers that are missing without a picking are found on a server`() throws {
        guard stack.kind == .postgreSQL else { return }
        try stack.sql(
            """
            DELETE FROM strata_change WHERE seq = (SELECT seq FROM strata_transaction WHERE number = 4);
            DELETE FROM strata_transaction WHERE number = 4
            """
        )
        let problems = try stack.verificationProblems()
        expect(problems.contains { $0.contains("missing between others") }, "\(problems)")
    }

    // MARK: - How far a fetch has looked

    @Test
    func `a fetch says how far it has looked, whether or not anything matched`() throws {
        func end(
            _ request: NSPersistentHistoryChangeRequest,
            _ format: String?,
            limit: Int = 0,
            _ type: NSPersistentHistoryResultType = .transactionsOnly
        ) throws -> NSPersistentHistoryToken? {
            request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
            request.fetchRequest?.predicate = format.map { NSPredicate(format: $0) }
            request.fetchRequest?.fetchLimit = limit
            request.resultType = type
            return try stack.coordinator.historyResult(request).endToken
        }
        for type in [.statusOnly, .count, .objectIDs, .changesOnly, .transactionsAndChanges]
            as [NSPersistentHistoryResultType]
        {
            try expectEqual(end(.fetchHistory(after: tokens[1]), "author == 'none'", type), tokens[6])
        }
        try expectEqual(end(.fetchHistory(after: tokens[6]), nil), tokens[6])
        try expectEqual(end(.fetchHistory(after: Date.distantFuture), nil), tokens[6])
        try expectEqual(end(.fetchHistory(after: tokens[0]), "author == 'b'", limit: 2), tokens[4])
        try expectEqual(end(.fetchHistory(after: tokens[0]), nil, limit: 2), tokens[2])
        try expectEqual(end(.fetchHistory(after: tokens[5]), "author == 'b'", limit: 2), tokens[6])
        try pick([5, 6])
        try expectEqual(end(.fetchHistory(after: tokens[4]), nil), tokens[6])
        let deletion = try stack.coordinator.historyResult(.deleteHistory(before: tokens[1]))
        expectEqual(deletion.endToken, nil)
    }

    @Test
    func `a request for changes ends behind the transactions that were reported completely`() throws {
        try stack.write { context in
            for _ in 0..<3 { City(context: context).name = "Porto" }
            let city = City(context: context)
            city.name = "Porto"
            return city
        }
        let whole = try stack.currentToken
        func end(_ limit: Int) throws -> NSPersistentHistoryToken? {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: tokens[5])
            request.fetchRequest = NSPersistentHistoryChange.fetchRequest
            request.fetchRequest?.fetchLimit = limit
            request.resultType = .changesOnly
            return try stack.coordinator.historyResult(request).endToken
        }
        try expectEqual(end(1), tokens[6])
        try expectEqual(end(3), tokens[6])
        try expectEqual(end(5), whole)
        try expectEqual(end(0), whole)
    }

    @Test
    func `a consumer gets past what its predicate leaves out, so that it can be purged`() throws {
        let coordinator = stack.coordinator
        try coordinator.setPersistentHistoryToken(tokens[0], forConsumer: "index")
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: tokens[0])
        request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        request.fetchRequest?.predicate = NSPredicate(format: "author == 'none'")
        let result = try coordinator.historyResult(request)
        expectEqual((result.result as? [NSPersistentHistoryTransaction])?.count, 0)
        try coordinator.setPersistentHistoryToken(require(result.endToken), forConsumer: "index")
        try expectEqual(coordinator.purgePersistentHistory(), 5)
        try check([6], tokensFrom: 5)
    }

    @Test
    func `what was not asked stays in the token as it was`() throws {
        let other = UUID().uuidString
        let store = try require(stack.store.identifier)
        let start = NSPersistentHistoryToken(transactionNumbers: [store: 2, other: 9])
        let end = try require(try stack.coordinator.historyResult(.fetchHistory(after: start)).endToken)
        expectEqual(end.transactionNumbers, [store: 6, other: 9])
    }
}
