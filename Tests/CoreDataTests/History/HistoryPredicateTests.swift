import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Asking for history by a fetch request")
struct HistoryPredicateTests {
    private let stack: Stack
    private let city: NSManagedObjectID

    /// Makes four transactions: "a" and "b" insert a city each, "a" changes one, and a deletion has no author.
    init() throws {
        stack = try Stack.recording()
        city = try stack.saveCity("one", author: "a")
        let second = try stack.saveCity("two", author: "b")
        let id = city
        try stack.write(author: "a") { context in
            let city = try require(try context.existingObject(with: id) as? City)
            city.name = "changed"
            Tag(context: context).title = "t"
            return city
        }
        try stack.change(second, City.self) { city, context in context.delete(city) }
    }

    private func request(
        _ entity: NSEntityDescription?,
        _ format: String,
        _ arguments: Any...
    ) -> NSFetchRequest<any NSFetchRequestResult> {
        let request = NSFetchRequest<any NSFetchRequestResult>()
        request.entity = entity
        request.predicate = NSPredicate(format: format, argumentArray: arguments)
        return request
    }

    private func transactions(_ format: String, _ arguments: Any...) throws -> [Int64] {
        let fetch = NSFetchRequest<any NSFetchRequestResult>()
        fetch.entity = NSPersistentHistoryTransaction.entityDescription(with: stack.context())
        fetch.predicate = NSPredicate(format: format, argumentArray: arguments)
        let result = try stack.coordinator.result(.fetchHistory(withFetch: fetch))
        return try require(result as? [NSPersistentHistoryTransaction]).map(\.transactionNumber)
    }

    private func changes(_ format: String, _ arguments: Any...) throws -> [NSPersistentHistoryChange] {
        let fetch = NSFetchRequest<any NSFetchRequestResult>()
        fetch.entity = NSPersistentHistoryChange.entityDescription(with: stack.context())
        fetch.predicate = NSPredicate(format: format, argumentArray: arguments)
        let request = NSPersistentHistoryChangeRequest.fetchHistory(withFetch: fetch)
        request.resultType = .changesOnly
        return try require(try stack.coordinator.result(request) as? [NSPersistentHistoryChange])
    }

    @Test
    func `predicates on transactions see the author, the number, the time and the changes (CS-199)`() throws {
        try expectEqual(transactions("author == %@", "a"), [1, 3])
        try expectEqual(transactions("author != %@", "a"), [2, 4])
        try expectEqual(transactions("author == nil"), [4])
        try expectEqual(transactions("transactionNumber > %@", 2), [3, 4])
        try expectEqual(transactions("transactionNumber IN %@", [1, 4]), [1, 4])
        let third = try stack.transactions()[2]
        try expectEqual(transactions("token == %@", third.token), [3])
        try expect(transactions("timestamp < %@", Date.distantPast).isEmpty)
        try expectEqual(transactions("storeID == %@", try require(stack.store.identifier)).count, 4)
        try expectEqual(transactions("ANY changes.changedObjectID == %@", city), [1, 3])
        try expectEqual(transactions("changes.@count > 1"), [3])
        let process = ProcessInfo.processInfo.processName
        try expect(transactions("processID == %@ AND contextName == nil AND bundleID == ''", process).count <= 4)
    }

    @Test
    func `a request for changes answers changes (CS-199)`() throws {
        try expectEqual(changes("changedObjectID == %@", city).map(\.changeType), [.insert, .update])
        try expectEqual(changes("changeType == %@", NSPersistentHistoryChangeType.delete.rawValue).count, 1)
        try expectEqual(changes("transaction.author == %@", "a").count, 3)
        try expectEqual(changes("changedEntity == %@", city.entity).count, 4)
        try expectEqual(changes("'name' IN updatedProperties").map(\.changedObjectID), [city])
        let first = try require(stack.changes().first?.changeID)
        try expectEqual(changes("changeID == %@", first).map(\.transaction?.transactionNumber), [1])
    }

    @Test
    func `the form of the answer, a limit and a token go together with a predicate`() throws {
        let context = stack.context()
        let entity = NSPersistentHistoryChange.entityDescription(with: context)
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: try stack.transactions()[0].token)
        request.fetchRequest = self.request(entity, "changeType != 2")
        let both = try require(try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction])
        expect(both.map(\.transactionNumber) == [2, 3] && both.map { $0.changes?.count } == [1, 2])
        request.resultType = .count
        try expectEqual(stack.coordinator.result(request) as? Int, 3)
        request.resultType = .transactionsOnly
        let owners = try require(try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction])
        expectEqual(owners.map(\.transactionNumber), [2, 3])
        request.resultType = .objectIDs
        expectEqual((try stack.coordinator.result(request) as? [NSManagedObjectID])?.count, 3)
        request.resultType = .changesOnly
        request.fetchRequest?.fetchLimit = 2
        expectEqual((try stack.coordinator.result(request) as? [NSPersistentHistoryChange])?.count, 2)
        let limited = NSPersistentHistoryChangeRequest.fetchHistory(after: NSPersistentHistoryToken?.none)
        limited.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        limited.fetchRequest?.fetchLimit = 3
        let first = try require(try stack.coordinator.result(limited) as? [NSPersistentHistoryTransaction])
        expectEqual(first.map(\.transactionNumber), [1, 2, 3])
        limited.fetchRequest?.predicate = NSPredicate(format: "author == %@", "a")
        limited.fetchRequest?.fetchLimit = 1
        limited.resultType = .changesOnly
        let changes = try require(try stack.coordinator.result(limited) as? [NSPersistentHistoryChange])
        try expectEqual(changes.map(\.changeID), stack.changes().prefix(1).map(\.changeID))
    }

    @Test
    func `a request for changes gives transactions with what was found of their changes`() throws {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(
            withFetch: self.request(
                NSPersistentHistoryChange.entityDescription(with: stack.context()),
                "changedObjectID == %@",
                city
            )
        )
        let found = try require(try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction])

        expectEqual(found.map(\.transactionNumber), [1, 3])
        expectEqual(found.map { $0.changes?.map(\.changedObjectID) }, [[city], [city]])
        expectEqual(found.map(\.author), ["a", "a"])
        request.fetchRequest?.fetchLimit = 1
        expectEqual((try stack.coordinator.result(request) as? [NSPersistentHistoryTransaction])?.count, 1)
    }

    @Test
    func `predicates compare tokens`() throws {
        let second = try stack.transactions()[1].token
        try expectEqual(transactions("token > %@", second), [3, 4])
        try expectEqual(transactions("token >= %@", second), [2, 3, 4])
        try expectEqual(transactions("token < %@", second), [1])
        try expectEqual(transactions("token <= %@", second), [1, 2])
        try expectEqual(transactions("%@ < token", second), [3, 4])
        try expectEqual(transactions("token > %@ AND author != nil", second), [3])
        try expectEqual(transactions("NOT token > %@", second), [1, 2])
        // A token counts with its number for the transaction's store. If it does not name the store, then nothing of
        // the store has been read.
        let more = NSPersistentHistoryToken(
            transactionNumbers: second.transactionNumbers.merging(["other": 9]) { $1 }
        )
        try expectEqual(transactions("token > %@", more), [3, 4])
        try expectEqual(transactions("token <= %@", more), [1, 2])
        let other = NSPersistentHistoryToken(transactionNumbers: ["other": 9])
        try expectEqual(transactions("token > %@", other), [1, 2, 3, 4])
        try expectEqual(transactions("token > %@", NSNull()), [])
        expectThrows(CocoaError.self) { try transactions("token > 2") }
    }

    @Test
    func `the entities need no context once a store with a history was opened (CS-200)`() {
        let (transaction, change) = (NSPersistentHistoryTransaction.self, NSPersistentHistoryChange.self)
        expectEqual(transaction.entityDescription?.name, "Transaction")
        expect(transaction.entityDescription === transaction.entityDescription(with: stack.context()))
        expectEqual(change.entityDescription?.name, "Change")
        expect(change.fetchRequest?.entity === change.entityDescription)
        expect(transaction.fetchRequest !== transaction.fetchRequest)
        expectEqual(transaction.entityDescription?.attributesByName["author"]?.attributeType, .stringAttributeType)
    }

    @Test
    func `before that there is no entity without a context, and no fetch request (CS-200)`() async {
        await #expect(processExitsWith: .success) {
            let (transaction, change) = (NSPersistentHistoryTransaction.self, NSPersistentHistoryChange.self)
            precondition(transaction.entityDescription == nil && change.entityDescription == nil)
            precondition(transaction.fetchRequest == nil && change.fetchRequest == nil)
        }
    }

    @Test
    func `sort descriptors, offsets, other entities and unknown properties are refused (CS-201)`() throws {
        func refusal(_ change: (NSFetchRequest<any NSFetchRequestResult>) -> Void) throws -> CocoaError? {
            let fetch = try require(NSPersistentHistoryTransaction.fetchRequest)
            change(fetch)
            return historyError { _ = try stack.coordinator.result(.fetchHistory(withFetch: fetch)) }
        }
        let sorted = try refusal { $0.sortDescriptors = [NSSortDescriptor(key: "author", ascending: true)] }
        expectEqual(sorted?.code, .persistentStoreOperation)
        try expectEqual(refusal { $0.fetchOffset = 1 }?.code, .persistentStoreOperation)
        try expectEqual(refusal { $0.fetchLimit = -1 }?.code, .persistentStoreOperation)
        try expectEqual(refusal { $0.entity = city.entity }?.code, .persistentStoreOperation)
        let unknown = try refusal { $0.predicate = NSPredicate(format: "writer == 'a'") }
        expect(unknown?.code == .persistentStoreOperation && unknown?.localizedDescription.contains("writer") == true)
        try expectEqual(refusal { _ in }, nil)
    }
}
