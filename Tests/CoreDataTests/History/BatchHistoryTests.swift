import CoreData
import TestSupport
import Testing

@Suite("What batch requests record in the history")
struct BatchHistoryTests {
    private func execute(_ request: NSPersistentStoreRequest, on stack: Stack) throws {
        let context = stack.context("batches")
        try context.performAndWait {
            context.transactionAuthor = "importer"
            try context.execute(request)
        }
    }

    private func insertCities(_ count: Int, on stack: Stack) throws {
        let objects = (0..<count).map { ["name": "City \($0)", "population": $0] as [String: Any] }
        try execute(NSBatchInsertRequest(entityName: "City", objects: objects), on: stack)
    }

    @Test
    func `CS-176 a batch insert is one transaction with one change for each row`() throws {
        let stack = try Stack.recording()
        try insertCities(50, on: stack)
        let transaction = try #require(try stack.transactions().first)
        #expect(try stack.transactions().count == 1)
        #expect(transaction.author == "importer" && transaction.contextName == "batches")
        let changes = try #require(transaction.changes)
        #expect(changes.count == 50 && changes.allSatisfy { $0.changeType == .insert })
        #expect(Set(changes.map(\.changedObjectID)).count == 50)
        #expect(try stack.verificationProblems() == [])
    }

    @Test
    func `CS-176 a batch update tells the rows it has changed and the properties`() throws {
        let stack = try Stack.recording()
        try insertCities(10, on: stack)
        let token = try stack.currentToken
        let request = NSBatchUpdateRequest(entityName: "City")
        request.predicate = NSPredicate(format: "population >= 6")
        request.propertiesToUpdate = ["name": "large"]
        try execute(request, on: stack)
        let changes = try stack.changes(after: token)
        #expect(changes.count == 4)
        #expect(changes.allSatisfy { $0.changeType == .update && $0.updatedProperties?.map(\.name) == ["name"] })
        let none = NSBatchUpdateRequest(entityName: "City")
        none.predicate = NSPredicate(format: "population > 100")
        none.propertiesToUpdate = ["name": "none"]
        try execute(none, on: stack)
        #expect(try stack.transactions(after: token).count == 1)
        #expect(try stack.verificationProblems() == [])
    }

    @Test
    func `CS-176 a batch delete tells the rows that went, and what is kept of them`() throws {
        let stack = try Stack.recording()
        try stack.write { context in
            let city = City(context: context)
            city.name = "Porto"
            for index in 0..<3 {
                let venue = index == 0 ? Bar(context: context) : Venue(context: context)
                venue.name = "venue \(index)"
                venue.city = city
                venue.photos = [Photo(context: context)]
            }
            return city
        }
        let token = try stack.currentToken
        let fetch = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
        fetch.predicate = NSPredicate(format: "name != %@", "venue 2")
        try execute(NSBatchDeleteRequest(fetchRequest: fetch), on: stack)
        let changes = try stack.changes(after: token)
        let deleted = changes.filter { $0.changeType == .delete }
        let venues = deleted.filter { $0.changedObjectID.entity.name != "Photo" }
        #expect(Set(venues.compactMap { $0.tombstone?["name"] as? String }) == ["venue 0", "venue 1"])
        #expect(deleted.count == 4 && venues.count == 2)
        #expect(changes.count == deleted.count)
        #expect(try stack.verificationProblems() == [])
    }

    @Test
    func `a batch that is refused records nothing`() throws {
        let stack = try Stack.recording()
        let clash: [[String: Any]] = [["email": "a"], ["email": "a"]]
        #expect(throws: (any Error).self) {
            try execute(NSBatchInsertRequest(entityName: "User", objects: clash), on: stack)
        }
        #expect(try stack.transactions().isEmpty)
        #expect(try stack.verificationProblems() == [])
    }
}
