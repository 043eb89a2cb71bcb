import CoreData
import Expectations
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
    func `a batch insert is one transaction with one change for each row (CS-176)`() throws {
        let stack = try Stack.recording()
        try insertCities(50, on: stack)
        let transaction = try require(try stack.transactions().first)
        try expectEqual(stack.transactions().count, 1)
        expect(transaction.author == "importer" && transaction.contextName == "batches")
        let changes = try require(transaction.changes)
        expect(changes.count == 50 && changes.allSatisfy { $0.changeType == .insert })
        expectEqual(Set(changes.map(\.changedObjectID)).count, 50)
        try expectEqual(stack.verificationProblems(), [])
    }

    @Test(arguments: [
        NSPersistentStoreRequestType.batchInsertRequestType, .batchUpdateRequestType, .batchDeleteRequestType,
    ])
    func `a batch that a child executes has the author and the name of the root`(_ type: NSPersistentStoreRequestType)
        throws
    {
        let stack = try Stack.recording()
        try insertCities(1, on: stack)
        let root = stack.context("root")
        root.performAndWait { root.transactionAuthor = "author of the root" }
        let middle = NSManagedObjectContext(.privateQueue)
        middle.parent = root
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = middle
        for context in [middle, child] {
            context.name = "child"
            context.performAndWait { context.transactionAuthor = "author of a child" }
        }
        let request: NSPersistentStoreRequest
        switch type {
        case .batchInsertRequestType: request = NSBatchInsertRequest(entityName: "City", objects: [["name": "new"]])
        case .batchUpdateRequestType:
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["name": "changed"]
            request = update
        default: request = NSBatchDeleteRequest(fetchRequest: NSFetchRequest(entityName: "City"))
        }
        _ = try child.performAndWait { try child.execute(request) }
        let written = try require(try stack.transactions().last)
        try expectEqual(stack.transactions().count, 2)
        expect(written.author == "author of the root" && written.contextName == "root")
    }

    @Test
    func `a batch update records the rows it has changed and the properties (CS-176)`() throws {
        let stack = try Stack.recording()
        try insertCities(10, on: stack)
        let token = try stack.currentToken
        let request = NSBatchUpdateRequest(entityName: "City")
        request.predicate = NSPredicate(format: "population >= 6")
        request.propertiesToUpdate = ["name": "large"]
        try execute(request, on: stack)
        let changes = try stack.changes(after: token)
        expectEqual(changes.count, 4)
        expect(changes.allSatisfy { $0.changeType == .update && $0.updatedProperties?.map(\.name) == ["name"] })
        let none = NSBatchUpdateRequest(entityName: "City")
        none.predicate = NSPredicate(format: "population > 100")
        none.propertiesToUpdate = ["name": "none"]
        try execute(none, on: stack)
        try expectEqual(stack.transactions(after: token).count, 1)
        try expectEqual(stack.verificationProblems(), [])
    }

    @Test
    func `a batch delete records the rows that went, and what is kept of them (CS-176)`() throws {
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
        expectEqual(Set(venues.compactMap { $0.tombstone?["name"] as? String }), ["venue 0", "venue 1"])
        expect(deleted.count == 4 && venues.count == 2)
        // The city has lost venues, though its row has not changed.
        let others = changes.filter { $0.changeType != .delete }
        expectEqual(others.map { $0.changedObjectID.entity.name }, ["City"])
        expectEqual(others.first?.updatedProperties?.map(\.name), ["venues"])
        try expectEqual(stack.verificationProblems(), [])
    }

    /// A guide with relationships of every kind.
    private func guide() throws -> Stack {
        let stack = try Stack.recording()
        let context = stack.context()
        try context.performAndWait {
            let cities = (0..<3).map { number in
                let city = City(context: context)
                city.name = "city \(number)"
                return city
            }
            let tags = (0..<2).map { _ in Tag(context: context) }
            let users = (0..<3).map { number in
                let user = User(context: context)
                user.email = "user \(number)"
                return user
            }
            users[1].boss = users[0]
            var venues: [Venue] = []
            for number in 0..<9 {
                let venue = number % 3 == 0 ? Bar(context: context) : Venue(context: context)
                (venue.name, venue.price) = ("venue \(number)", Int16(number))
                venue.city = number == 8 ? nil : cities[number % 3]
                venue.tags = number % 2 == 0 ? Set(tags) : [tags[0]]
                venue.photos = (0..<number % 3).map { _ in Photo(context: context) }
                if number % 4 == 0 { venue.licence = Licence(context: context) }
                users[number % 2].favourites.append(venue)
                venues.append(venue)
            }
            try context.save()
        }
        return stack
    }

    @Test(arguments: [
        ("Venue", "price > 6"), ("Venue", "price < 3"), ("Bar", "TRUEPREDICATE"), ("City", "name != 'city 2'"),
        ("Tag", "TRUEPREDICATE"), ("Photo", "venue.price > 4"), ("Licence", "TRUEPREDICATE"),
        ("User", "email == 'user 1'"),
    ])
    func `a batch delete records what deleting the objects records (CS-176)`(_ entity: String, _ predicate: String)
        throws
    {
        func told(_ delete: (Stack, NSFetchRequest<any NSFetchRequestResult>) throws -> Void) throws -> [String] {
            let stack = try guide()
            let token = try stack.currentToken
            let fetch = NSFetchRequest<any NSFetchRequestResult>(entityName: entity)
            fetch.predicate = NSPredicate(format: predicate)
            try delete(stack, fetch)
            try expectEqual(stack.transactions(after: token).count, 1)
            try expectEqual(stack.verificationProblems(), [])
            return try stack.changes(after: token).map { change in
                let names = change.updatedProperties?.map(\.name).sorted().joined(separator: ",") ?? ""
                let kept = change.tombstone?["name"].map { " \($0)" } ?? ""
                let id = change.changedObjectID.uriRepresentation()
                return "\(change.changeType) \(id.pathComponents.suffix(2).joined()) \(names)\(kept)"
            }.sorted()
        }
        let byObjects = try told { stack, fetch in
            let context = stack.context()
            try context.performAndWait {
                for object in try context.fetch(fetch) { (object as? NSManagedObject).map(context.delete) }
                try context.save()
            }
        }
        let byBatch = try told { try execute(NSBatchDeleteRequest(fetchRequest: $1), on: $0) }
        expect(!byObjects.isEmpty && byBatch == byObjects)
    }

    // MARK: - All that has changed

    /// Work on teams and their members.
    enum Work: CaseIterable { case renameTeam, moveMembers, deleteMembers, deleteTeam, insertMembers }

    /// Teams with ordered members, and with attributes that are derived from each other's.
    private static func teams() -> NSManagedObjectModel {
        let (team, member) = (StoreModels.entity("Team"), StoreModels.entity("Member"))
        func now() -> NSPropertyDescription { StoreModels.derived("savedAt", .date, NSExpression(format: "now()")) }
        team.properties = [
            StoreModels.attribute("name", .string), now(),
            StoreModels.derived("upper", .string, NSExpression(format: "uppercase:(name)")),
            StoreModels.derived("size", .integer64, NSExpression(format: "members.@count")),
        ]
        member.properties = [
            StoreModels.attribute("name", .string), now(),
            StoreModels.derived("teamName", .string, NSExpression(forKeyPath: "team.name")),
        ]
        GuideModel.relate(member, "team", .one(.nullifyDeleteRule), team, "members", .ordered(.nullifyDeleteRule))
        return StoreModels.model(team, member)
    }

    /// The objects of an entity whose names are in a list.
    private func named(_ entity: String, _ names: String...) -> NSFetchRequest<any NSFetchRequestResult> {
        let fetch = NSFetchRequest<any NSFetchRequestResult>(entityName: entity)
        fetch.predicate = NSPredicate(format: "name IN %@", names)
        fetch.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        return fetch
    }

    private func objects(_ fetch: NSFetchRequest<any NSFetchRequestResult>, _ context: NSManagedObjectContext) throws
        -> [NSManagedObject]
    {
        try context.fetch(fetch).compactMap { $0 as? NSManagedObject }
    }

    /// The changes that the history has of a piece of work, a line for each.
    private func told(_ work: (NSManagedObjectContext) throws -> Void) throws -> [String] {
        let model = Self.teams()
        let stack = try Stack.recording(model)
        let context = stack.context()
        let token = try context.performAndWait {
            for name in ["a", "b"] {
                let team = context.insert("Team", ["name": name])
                for number in 0..<3 { context.insert("Member", ["name": "\(name)\(number)", "team": team]) }
            }
            try context.save()
            let token = try stack.currentToken
            try work(context)
            if context.hasChanges { try context.save() }
            return token
        }
        try expectEqual(stack.transactions(after: token).count, 1)
        try expectEqual(stack.problems(of: model), [])
        return try stack.changes(after: token).map { change in
            let names = change.updatedProperties?.map(\.name).sorted().joined(separator: ",") ?? ""
            // A batch that is made again gives its new rows other keys.
            let parts = change.changedObjectID.uriRepresentation().pathComponents.suffix(2)
            let id = change.changeType == .insert ? parts.first ?? "" : parts.joined()
            return "\(change.changeType) \(id) \(names)"
        }.sorted()
    }

    @Test(arguments: Work.allCases)
    func `a batch records the derived attributes that saving the objects records`(_ work: Work) throws {
        let byObjects = try told { context in
            switch work {
            case .renameTeam: try objects(named("Team", "a"), context).first?.setValue("new", forKey: "name")
            case .moveMembers:
                let team = try objects(named("Team", "b"), context).first
                for member in try objects(named("Member", "a0", "a2"), context) {
                    member.setValue(team, forKey: "team")
                }
            case .deleteMembers:
                for member in try objects(named("Member", "a0", "b2"), context) { context.delete(member) }
            case .deleteTeam: for team in try objects(named("Team", "a"), context) { context.delete(team) }
            case .insertMembers:
                let team = try objects(named("Team", "a"), context).first
                for name in ["a3", "a4"] { context.insert("Member", ["name": name, "team": team]) }
            }
        }
        let byBatch = try told { context in
            switch work {
            case .renameTeam:
                let request = NSBatchUpdateRequest(entityName: "Team")
                request.predicate = named("Team", "a").predicate
                request.propertiesToUpdate = ["name": "new"]
                try context.execute(request)
            case .moveMembers:
                let request = NSBatchUpdateRequest(entityName: "Member")
                request.predicate = named("Member", "a0", "a2").predicate
                let team = try require(objects(named("Team", "b"), context).first)
                request.propertiesToUpdate = ["team": team.objectID]
                try context.execute(request)
            case .deleteMembers:
                try context.execute(NSBatchDeleteRequest(fetchRequest: named("Member", "a0", "b2")))
            case .deleteTeam: try context.execute(NSBatchDeleteRequest(fetchRequest: named("Team", "a")))
            case .insertMembers:
                let team = try require(objects(named("Team", "a"), context).first).objectID
                let rows = ["a3", "a4"].map { ["name": $0, "team": team] as [String: Any] }
                try context.execute(NSBatchInsertRequest(entityName: "Member", objects: rows))
            }
        }
        expect(!byObjects.isEmpty)
        expectEqual(byBatch, byObjects)
    }

    @Test func `several rows of a batch that change one stored object record all of its properties that changed`()
        throws
    {
        let model = ModelSketch.model("Item: code String, x Int32, y Int32, z Int32 | unique code")
        let stack = try Stack.recording(model)
        let codes = try stack.write { context in
            context.insert("Item", ["code": "a"])
            return context.insert("Item", ["code": "b"])
        }
        expectEqual(codes.entity.name, "Item")
        let token = try stack.currentToken
        let rows: [[String: Any]] = [
            ["code": "a", "x": 1], ["code": "b", "z": 1], ["code": "a", "y": 2], ["code": "new", "x": 4],
            ["code": "a", "x": 3], ["code": "new", "y": 5],
        ]
        let request = NSBatchInsertRequest(entityName: "Item", objects: rows)
        request.resultType = .objectIDs
        let context = stack.context()
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        try context.performAndWait {
            let result = try context.execute(request) as? NSBatchInsertResult
            let ids = try require(result?.result as? [NSManagedObjectID])
            expect(ids.count == 3 && Set(ids).count == 3)
            let told = try stack.changes(after: token).map { change in
                let item = try context.existingObject(with: change.changedObjectID)
                let names = change.updatedProperties?.map(\.name).filter { $0 != "code" }.sorted() ?? []
                let values = ["code", "x", "y", "z"].map { "\(item.value(forKey: $0) ?? "-")" }
                return "\(change.changeType) \(values.joined(separator: " ")): \(names.joined(separator: ","))"
            }
            expectEqual(
                told.sorted(),
                [
                    "\(NSPersistentHistoryChangeType.insert) new 4 5 -: ",
                    "\(NSPersistentHistoryChangeType.update) a 3 2 -: x,y",
                    "\(NSPersistentHistoryChangeType.update) b - - 1: z",
                ].sorted()
            )
        }
        try expectEqual(stack.problems(of: model), [])
    }

    @Test
    func `a batch that is refused records nothing`() throws {
        let stack = try Stack.recording()
        let clash: [[String: Any]] = [["email": "a"], ["email": "a"]]
        #expect(throws: (any Error).self) {
            try execute(NSBatchInsertRequest(entityName: "User", objects: clash), on: stack)
        }
        try expect(stack.transactions().isEmpty)
        try expectEqual(stack.verificationProblems(), [])
    }
}
