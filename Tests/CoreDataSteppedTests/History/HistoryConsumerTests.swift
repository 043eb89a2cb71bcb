import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Named consumers of a history")
struct HistoryConsumerTests {
    private func purgedAll(_ stack: Stack) throws -> [Int64] { try stack.transactions().map(\.transactionNumber) }

    @Test
    func `a store keeps how far each consumer has read, for all processes`() throws {
        let stack = try Stack.recording()
        try expect(stack.coordinator.persistentHistoryConsumers().isEmpty)
        try expectEqual(stack.coordinator.persistentHistoryToken(forConsumer: "search"), nil)
        try stack.saveCity()
        let token = try stack.currentToken
        let before = Date()
        try stack.coordinator.setPersistentHistoryToken(token, forConsumer: "search")
        try stack.saveCity()
        let second = try stack.secondStack()
        try expectEqual(second.persistentHistoryToken(forConsumer: "search"), token)
        try second.setPersistentHistoryToken(try stack.currentToken, forConsumer: "mail")
        let consumers = try stack.coordinator.persistentHistoryConsumers()
        expectEqual(consumers.map(\.name), ["mail", "search"])
        expect(consumers.allSatisfy { $0.lastSeen >= before && $0.lastSeen <= Date() })
        try second.removePersistentHistoryConsumer(named: "mail")
        try second.removePersistentHistoryConsumer(named: "nobody")
        try expectEqual(stack.coordinator.persistentHistoryConsumers().map(\.name), ["search"])
    }

    @Test
    func `a consumer never goes back, and cannot be ahead of the store`() throws {
        let stack = try Stack.recording()
        let start = try stack.currentToken
        try stack.saveCity()
        let later = try stack.currentToken
        try stack.coordinator.setPersistentHistoryToken(later, forConsumer: "a")
        try stack.coordinator.setPersistentHistoryToken(start, forConsumer: "a")
        try expectEqual(stack.coordinator.persistentHistoryToken(forConsumer: "a"), later)
        let ahead = NSPersistentHistoryToken(transactionNumbers: later.transactionNumbers.mapValues { $0 + 1 })
        let error = historyError { try stack.coordinator.setPersistentHistoryToken(ahead, forConsumer: "a") }
        expectEqual(error?.code.rawValue, NSPersistentHistoryTokenExpiredError)
        let fetch = historyError { _ = try stack.transactions(after: ahead) }
        expectEqual(fetch?.code.rawValue, NSPersistentHistoryTokenExpiredError)
        let foreign = NSPersistentHistoryToken(transactionNumbers: [UUID().uuidString: 1])
        let other = historyError { try stack.coordinator.setPersistentHistoryToken(foreign, forConsumer: "a") }
        expectEqual(other?.code.rawValue, NSPersistentHistoryTokenStoreNotFoundError)
    }

    @Test
    func `a new consumer hears that its token is expired, and one that is known may be late`() throws {
        let stack = try Stack.recording()
        for _ in 0..<4 { try stack.saveCity() }
        let all = try stack.transactions()
        let coordinator = stack.coordinator
        try coordinator.setPersistentHistoryToken(all[3].token, forConsumer: "known")
        try expectEqual(coordinator.purgePersistentHistory(), 3)
        for expired in [all[0].token, all[1].token] {
            let error = historyError { try coordinator.setPersistentHistoryToken(expired, forConsumer: "new") }
            expectEqual(error?.code.rawValue, NSPersistentHistoryTokenExpiredError)
            expectEqual(error?.userInfo[NSPersistentHistoryOldestTransactionNumberKey] as? Int64, 4)
            try expectEqual(coordinator.persistentHistoryConsumers().map(\.name), ["known"])
            try coordinator.setPersistentHistoryToken(expired, forConsumer: "known")
            try expectEqual(coordinator.persistentHistoryToken(forConsumer: "known"), all[3].token)
        }
        try coordinator.setPersistentHistoryToken(all[2].token, forConsumer: "new")
        try expectEqual(coordinator.persistentHistoryConsumers().map(\.name), ["known", "new"])
    }

    @Test
    func `a purge removes what every consumer has read, and leaves each token good`() throws {
        let stack = try Stack.recording()
        for _ in 0..<5 { try stack.saveCity() }
        let all = try stack.transactions()
        try expectEqual(stack.coordinator.purgePersistentHistory(), 0)
        try stack.coordinator.setPersistentHistoryToken(all[1].token, forConsumer: "slow")
        try stack.coordinator.setPersistentHistoryToken(all[4].token, forConsumer: "fast")
        try expectEqual(stack.coordinator.purgePersistentHistory(), 1)
        try expectEqual(purgedAll(stack), [2, 3, 4, 5])
        let slow = try require(try stack.coordinator.persistentHistoryToken(forConsumer: "slow"))
        try expectEqual(stack.transactions(after: slow).count, 3)
        try stack.coordinator.setPersistentHistoryToken(all[4].token, forConsumer: "slow")
        try expectEqual(stack.coordinator.purgePersistentHistory(), 3)
        try expectEqual(purgedAll(stack), [5])
    }

    @Test
    func `consumers that were not seen for long are given up, and hear that they were`() throws {
        let stack = try Stack.recording()
        for _ in 0..<3 { try stack.saveCity() }
        let all = try stack.transactions()
        try stack.coordinator.setPersistentHistoryToken(all[0].token, forConsumer: "dead")
        try stack.coordinator.setPersistentHistoryToken(all[2].token, forConsumer: "live")
        try stack.sql(
            "UPDATE ASTRATACONSUMER SET ZTIMESTAMP = 0 WHERE ZNAME = 'dead'",
            postgreSQL: "UPDATE strata_consumer SET seen = 0 WHERE name = 'dead'"
        )
        let limit = Date(timeIntervalSinceReferenceDate: 1000)
        try expectEqual(stack.coordinator.purgePersistentHistory(consumersLiveSince: limit), 2)
        try expectEqual(stack.coordinator.persistentHistoryToken(forConsumer: "dead"), nil)
        try expectEqual(stack.coordinator.persistentHistoryConsumers().map(\.name), ["live"])
        expectThrows(CocoaError.self) { try stack.transactions(after: all[0].token) }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a consumer that reads, merges and says so never misses a change while others write and purge`() async throws {
        let stack = try Stack.recording()
        let coordinator = stack.coordinator
        try coordinator.setPersistentHistoryToken(try stack.currentToken, forConsumer: "reader")
        let count = 60
        let writers = (0..<3).map { writer in
            Task.detached {
                for index in 0..<(count / 3) {
                    try stack.saveCity("\(writer) \(index)")
                    try coordinator.purgePersistentHistory()
                }
            }
        }
        var seen: [Int64] = []
        while seen.count < count {
            let token = try require(try coordinator.persistentHistoryToken(forConsumer: "reader"))
            let transactions = try coordinator.transactions(after: token)
            seen += transactions.map(\.transactionNumber)
            if let last = transactions.last {
                try coordinator.setPersistentHistoryToken(last.token, forConsumer: "reader")
            }
            await Task.yield()
        }
        for writer in writers { try await writer.value }
        expectEqual(seen, Array(1...Int64(count)))
        try coordinator.purgePersistentHistory()
        try expectEqual(purgedAll(stack), [Int64(count)])
    }
}
