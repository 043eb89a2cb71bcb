import CoreData
import TestSupport
import Testing

@Suite("History of batch requests")
struct BatchHistoryTests {
    private let stack: Stack

    init() throws {
        stack = try Stack.recording()
    }

    private func text(_ change: NSPersistentHistoryChange) -> String {
        let kind = [NSPersistentHistoryChangeType.insert: "+", .update: "~", .delete: "-"][change.changeType] ?? "?"
        let names = (change.updatedProperties ?? []).map(\.name).sorted().joined(separator: ",")
        return "\(kind)\(change.changedObjectID.entity.name ?? "") \(names)"
    }

    /// What a request adds to the history: one transaction.
    private func recorded(_ request: NSPersistentStoreRequest) throws -> [String] {
        let token = try stack.currentToken
        try stack.execute(request)
        let transactions = try stack.transactions(after: token)
        #expect(transactions.count == 1)
        #expect(transactions.first?.contextName == "batch")
        #expect(try stack.problems() == [])
        return (transactions.first?.changes ?? []).map(text)
    }

    @Test
    func `inserted rows are recorded, and those that were changed instead`() throws {
        let rows = (0..<3).map { ["name": "v\($0)", "price": $0] }
        let insert = NSBatchInsertRequest(entity: Venue.entity(), objects: rows)
        #expect(try recorded(insert) == ["+Venue ", "+Venue ", "+Venue "])
    }

    @Test
    func `updated rows are recorded with the properties that were set`() throws {
        try stack.storeNumberedVenues(4)
        let update = NSBatchUpdateRequest(entityName: "Venue")
        update.predicate = NSPredicate(format: "price > 1")
        update.propertiesToUpdate = ["price": NSExpression(format: "price + 10"), "favorite": true]
        #expect(try recorded(update) == ["~Venue favorite,price", "~Venue favorite,price"])
    }

    @Test
    func `a row that changes for several reasons is one change`() throws {
        let old = try stack.saveCity("Porto")
        let new = try stack.saveCity("Braga")
        try stack.storeNumberedVenues(2) { _, venue, context in venue.city = context.object(with: old) as? City }
        let update = NSBatchUpdateRequest(entityName: "Venue")
        update.propertiesToUpdate = ["city": new, "price": 3]
        let changes = try recorded(update)
        #expect(changes.filter { $0.hasPrefix("~Venue") } == ["~Venue city,price", "~Venue city,price"])
        #expect(changes.filter { $0.hasPrefix("~City") } == ["~City venues", "~City venues"])
    }

    @Test(arguments: [false, true])
    func `deleted rows are recorded with the values that are kept, and those that follow`(_ isLimited: Bool) throws {
        let city = try stack.saveCity()
        try stack.storeNumberedVenues(3) { _, venue, context in venue.city = context.object(with: city) as? City }
        let token = try stack.currentToken
        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
        fetch.predicate = NSPredicate(format: "price > 0")
        if isLimited {
            fetch.sortDescriptors = [NSSortDescriptor(key: "price", ascending: false)]
            fetch.fetchLimit = 1
        }
        let changes = try recorded(NSBatchDeleteRequest(fetchRequest: fetch))
        #expect(changes.filter { $0.hasPrefix("-Venue") }.count == (isLimited ? 1 : 2))
        #expect(changes.filter { $0.hasPrefix("~City") } == ["~City venues"])
        let names = try stack.changes(after: token).compactMap { $0.tombstone?["name"] as? String }
        #expect(Set(names) == (isLimited ? ["v2"] : ["v1", "v2"]))
    }

    @Test(arguments: [0, 2])
    func `rows without relationships are recorded before one statement deletes them`(_ limit: Int) throws {
        let note = NSEntityDescription()
        note.name = "Note"
        let title = GuideModel.attribute("title", .string)
        title.preservesValueInHistoryOnDeletion = true
        note.properties = [title]
        let model = NSManagedObjectModel()
        model.entities = [note]
        let stack = try Stack.recording(model)
        let rows = NSBatchInsertRequest(entityName: "Note", objects: (0..<5).map { ["title": "\($0)"] })
        try stack.execute(rows)
        let token = try stack.currentToken

        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Note")
        fetch.predicate = NSPredicate(format: "title > '1'")
        fetch.sortDescriptors = [NSSortDescriptor(key: "title", ascending: false)]
        fetch.fetchLimit = limit
        try stack.execute(NSBatchDeleteRequest(fetchRequest: fetch))
        let titles = try stack.changes(after: token).compactMap { $0.tombstone?["title"] as? String }
        #expect(titles.sorted() == (limit == 0 ? ["2", "3", "4"] : ["3", "4"]))
        #expect(try stack.problems() == [])
    }

    @Test
    func `a batch that is refused records nothing`() throws {
        try stack.storeNumberedVenues(1)
        let token = try stack.currentToken
        let insert = NSBatchInsertRequest(entity: Venue.entity(), objects: [["name": "a"], ["nothing": 1]])
        #expect(throws: (any Error).self) { () throws -> Void in try stack.execute(insert) }
        #expect(try stack.currentToken == token)
    }
}
