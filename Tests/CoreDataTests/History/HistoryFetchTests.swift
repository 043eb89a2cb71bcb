import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Asking for history")
struct HistoryFetchTests {
    @Test
    func `the current token leaves out all up to now (CS-190)`() throws {
        let stack = try Stack.recording()
        let empty = try stack.currentToken
        expectEqual(empty.transactionNumbers, [stack.store.identifier: 0])
        try stack.saveCity()
        let token = try stack.currentToken
        try expect(stack.transactions(after: token).isEmpty)
        try stack.saveCity()
        try expectEqual(stack.transactions(after: token).map(\.transactionNumber), [2])
        try expectEqual(stack.transactions(after: empty).map(\.transactionNumber), [1, 2])
        try expectEqual(stack.transactions().map(\.token).last, stack.currentToken)
        expectEqual(
            stack.coordinator.currentPersistentHistoryToken(fromStores: [stack.store]),
            (try stack.currentToken)
        )
        expectEqual(stack.coordinator.currentPersistentHistoryToken(fromStores: []), nil)
    }

    @Test
    func `history can be asked after a date, a token or a transaction`() throws {
        let stack = try Stack.recording()
        for _ in 0..<3 { try stack.saveCity() }
        // Reading gives the transactions their numbers, from which each gets a different time.
        _ = try stack.transactions()
        try stack.sql(
            "UPDATE ATRANSACTION SET ZTIMESTAMP = Z_PK * 100",
            postgreSQL: "UPDATE strata_transaction SET time = number * 100"
        )
        let all = try stack.transactions()
        func numbers(_ request: NSPersistentHistoryChangeRequest) throws -> [Int64] {
            try require(try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction])
                .map(\.transactionNumber)
        }
        typealias Request = NSPersistentHistoryChangeRequest
        try expectEqual(numbers(.fetchHistory(after: Date(timeIntervalSinceReferenceDate: 200))), [3])
        try expectEqual(numbers(.fetchHistory(after: Date(timeIntervalSinceReferenceDate: 199))), [2, 3])
        try expectEqual(numbers(.fetchHistory(after: all[1])), [3])
        try expectEqual(numbers(.fetchHistory(after: all[0].token)), [2, 3])
        try expectEqual(numbers(.fetchHistory(after: NSPersistentHistoryToken?.none)), [1, 2, 3])
        try expectEqual(numbers(.fetchHistory(after: NSPersistentHistoryTransaction?.none)), [1, 2, 3])
        expectEqual(Request.fetchHistory(after: all[0].token).token, all[0].token)
        expectEqual(Request.fetchHistory(after: Date()).token, nil)
    }

    @Test
    func `each result type gives what it says (CS-202)`() throws {
        let stack = try Stack.recording()
        let city = try stack.saveCity()
        try stack.change(city, City.self) { city, context in
            city.name = "new"
            Tag(context: context).title = "t"
        }
        func result(_ type: NSPersistentHistoryResultType) throws -> Any? {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: NSPersistentHistoryToken?.none)
            expectEqual(request.resultType, .transactionsAndChanges)
            request.resultType = type
            return try stack.coordinator.result(request)
        }
        try expectEqual(result(.statusOnly) as? Bool, true)
        try expectEqual(result(.count) as? Int, 2)
        let only = try require(try result(.transactionsOnly) as? [NSPersistentHistoryTransaction])
        expect(only.map(\.transactionNumber) == [1, 2] && only.allSatisfy { $0.changes == nil })
        let changes = try require(try result(.changesOnly) as? [NSPersistentHistoryChange])
        expectEqual(changes.map(\.changeType), [.insert, .insert, .update])
        let ids = try require(try result(.objectIDs) as? [NSManagedObjectID])
        expect(ids.count == 2 && ids.first == city)
        let both = try require(try result(.transactionsAndChanges) as? [NSPersistentHistoryTransaction])
        expectEqual(both.map { $0.changes?.count }, [1, 2])
    }

    @Test
    func `deleting history before a token leaves the token's own transaction (CS-193)`() throws {
        let stack = try Stack.recording()
        for _ in 0..<4 { try stack.saveCity("city", author: "author") }
        let third = try stack.transactions()[2]
        let request = NSPersistentHistoryChangeRequest.deleteHistory(before: third.token)
        expect(request.resultType == .statusOnly && request.token == third.token)
        try expectEqual(stack.coordinator.result(request) as? Bool, true)
        try expectEqual(stack.transactions().map(\.transactionNumber), [3, 4])
        let left = try stack.column(
            "SELECT DISTINCT ZTRANSACTIONID FROM ACHANGE ORDER BY 1",
            postgreSQL:
                "SELECT DISTINCT t.number::text FROM strata_change AS c LEFT JOIN strata_transaction AS t USING (seq) ORDER BY 1"
        )
        expectEqual(left, ["3", "4"])
        if stack.kind == .sqlite {
            try expectEqual(stack.column("SELECT COUNT(*) FROM ATRANSACTIONSTRING WHERE ZNAME = 'author'"), ["1"])
        }
        let nothing = NSPersistentHistoryChangeRequest.deleteHistory(before: NSPersistentHistoryToken?.none)
        _ = try stack.coordinator.result(nothing)
        try expectEqual(stack.transactions().count, 2)
    }

    @Test
    func `deleting before a transaction or a date, and counting what went`() throws {
        let stack = try Stack.recording()
        for _ in 0..<5 { try stack.saveCity("city", author: "author") }
        // Reading gives the transactions their numbers.
        _ = try stack.transactions()
        try stack.sql(
            "UPDATE ATRANSACTION SET ZTIMESTAMP = Z_PK * 100",
            postgreSQL: "UPDATE strata_transaction SET time = number * 100"
        )
        let all = try stack.transactions()
        let before = NSPersistentHistoryChangeRequest.deleteHistory(before: all[1])
        before.resultType = .count
        try expectEqual(stack.coordinator.result(before) as? Int, 1)
        let date = Date(timeIntervalSinceReferenceDate: 400)
        _ = try stack.coordinator.result(.deleteHistory(before: date))
        try expectEqual(stack.transactions().map(\.transactionNumber), [4, 5])
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        try expect(stack.transactions().isEmpty)
        let left = try stack.column(
            "SELECT ZNAME FROM ATRANSACTIONSTRING",
            postgreSQL: "SELECT kind::text FROM strata_change"
        )
        expect(left.isEmpty)
        try expectEqual(stack.currentToken, all[4].token)
    }

    @Test
    func `a clock that was set back tears no hole into the history`() throws {
        let stack = try Stack.recording()
        for _ in 0..<4 { try stack.saveCity() }
        _ = try stack.transactions()
        try stack.sql(
            "UPDATE ATRANSACTION SET ZTIMESTAMP = CASE Z_PK WHEN 2 THEN 900 WHEN 3 THEN 100 ELSE Z_PK END",
            postgreSQL:
                "UPDATE strata_transaction SET time = CASE number WHEN 2 THEN 900 WHEN 3 THEN 100 ELSE number END"
        )
        _ = try stack.coordinator.result(.deleteHistory(before: Date(timeIntervalSinceReferenceDate: 500)))
        try expectEqual(stack.transactions().map(\.transactionNumber), [2, 3, 4])
    }

    @Test
    func `a token after which something was purged is expired, and the error names the oldest that is left (CS-194)`()
        throws
    {
        let stack = try Stack.recording()
        let beginning = try stack.currentToken
        for _ in 0..<4 { try stack.saveCity() }
        let all = try stack.transactions()
        try expectEqual(stack.transactions(after: beginning).count, 4)
        _ = try stack.coordinator.result(.deleteHistory(before: all[2].token))
        for token in [beginning, all[0].token] {
            let error = try require(historyError { _ = try stack.transactions(after: token) })
            expectEqual(error.code.rawValue, NSPersistentHistoryTokenExpiredError)
            expectEqual(error.userInfo[NSPersistentHistoryOldestTransactionNumberKey] as? Int64, 3)
            expect(error.localizedDescription.contains("3"))
        }
        // The token's transaction is gone, but none after it.
        try expectEqual(stack.transactions(after: all[1].token).map(\.transactionNumber), [3, 4])
        try expectEqual(stack.transactions(after: all[2].token).map(\.transactionNumber), [4])
        try expect(stack.transactions(after: all[3].token).isEmpty)
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        try expect(stack.transactions(after: all[3].token).isEmpty)
        let error = historyError { _ = try stack.transactions(after: all[2].token) }
        expectEqual(error?.userInfo[NSPersistentHistoryOldestTransactionNumberKey] as? Int64, 5)
    }

    @Test
    func `a reader that is up to date stays so when all is purged and others save`() throws {
        let stack = try Stack.recording()
        for _ in 0..<2 { try stack.saveCity() }
        let token = try stack.currentToken
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        try stack.saveCity()
        try expectEqual(stack.transactions(after: token).map(\.transactionNumber), [3])
        try stack.coordinator.setPersistentHistoryToken(token, forConsumer: "new")
        try stack.saveCity()
        try expectEqual(stack.transactions(after: token).map(\.transactionNumber), [3, 4])
        _ = try stack.coordinator.result(.deleteHistory(before: try stack.currentToken))
        let error = historyError { _ = try stack.transactions(after: token) }
        expectEqual(error?.code.rawValue, NSPersistentHistoryTokenExpiredError)
    }

    @Test
    func `numbers of purged transactions and changes are not used again once the store is reopened (CS-205)`() throws {
        let stack = try Stack.recording()
        for _ in 0..<3 { try stack.saveCity() }
        let used = try Set(stack.changes().map(\.changeID))
        expectEqual(used.count, 3)
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        try stack.coordinator.remove(stack.store)
        try stack.coordinator.addPersistentStore(
            type: StoreKind.database.type,
            at: stack.storeURL,
            options: Stack.tracking
        )
        try stack.saveCity()
        let transactions = try stack.transactions()
        expectEqual(transactions.map(\.transactionNumber), [4])
        let ids = try require(transactions.first?.changes?.map(\.changeID))
        expect(ids.count == 1 && !used.contains(ids[0]))
        if stack.kind == .sqlite { expectEqual(ids, [4]) }
    }

    @Test
    func `a token of another store is refused, and a store that a token does not name is read from its beginning`()
        throws
    {
        let stack = try Stack.recording()
        try stack.saveCity()
        let foreign = NSPersistentHistoryToken(transactionNumbers: [UUID().uuidString: 1])
        let error = historyError { _ = try stack.transactions(after: foreign) }
        expectEqual(error?.code.rawValue, NSPersistentHistoryTokenStoreNotFoundError)
        let deleting = historyError { _ = try stack.coordinator.result(.deleteHistory(before: foreign)) }
        expectEqual(deleting?.code.rawValue, NSPersistentHistoryTokenStoreNotFoundError)
        try expectEqual(stack.transactions(after: NSPersistentHistoryToken(transactionNumbers: [:])).count, 1)
        let token = try stack.currentToken
        let second = try stack.coordinator.addPersistentStore(
            type: StoreKind.database.type,
            at: stack.folder.appendingPathComponent("second.sqlite"),
            options: Stack.tracking
        )
        try stack.write { context in
            let city = City(context: context)
            city.name = "there"
            context.assign(city, to: second)
            return city
        }
        let found = try stack.transactions(after: token)
        expectEqual(found.map(\.storeID), [second.identifier])
        try expectEqual(stack.currentToken.transactionNumbers.count, 2)
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: NSPersistentHistoryToken?.none)
        request.affectedStores = [stack.store]
        let own = try require(try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction])
        expectEqual(own.map(\.storeID), [stack.store.identifier])
    }

    @Test
    func `a request can be copied`() throws {
        let stack = try Stack.recording()
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: try stack.currentToken)
        request.resultType = .count
        request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        let copy = try require(request.copy() as? NSPersistentHistoryChangeRequest)
        expect(copy.token == request.token && copy.resultType == .count)
        expect(copy.fetchRequest?.entity === request.fetchRequest?.entity)
        expect(copy.fetchRequest !== request.fetchRequest)
        expectEqual(request.requestType, .persistentHistoryRequestType)
    }
}
