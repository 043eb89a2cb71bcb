import CoreData
import Expectations
import StrataSQLite
import TestSupport
import Testing

@Suite("What saves record in the history")
struct HistoryRecordingTests {
    @Test
    func `only stores opened with the option record, and others have no history to read (CS-187)`() throws {
        let stack = try Stack(.database, model: HistoryModels.guide())
        try stack.saveCity()
        let recorded = try stack.column(
            "SELECT name FROM sqlite_schema WHERE name LIKE 'A%TION'",
            postgreSQL: "SELECT id::text FROM strata_transaction"
        )
        expect(recorded.isEmpty)
        expectEqual(stack.coordinator.currentPersistentHistoryToken(fromStores: nil), nil)
        let error = historyError { _ = try stack.transactions() }
        expectEqual(error?.code.rawValue, NSPersistentStoreUnsupportedRequestTypeError)
    }

    @Test
    func `a store in memory has no history, and says so`() throws {
        let stack = try Stack(.memory, model: HistoryModels.guide(), options: Stack.tracking)
        try stack.saveCity()
        expectEqual(stack.coordinator.currentPersistentHistoryToken(fromStores: nil), nil)
        let error = historyError { _ = try stack.transactions() }
        expectEqual(error?.code.rawValue, NSPersistentStoreUnsupportedRequestTypeError)
        let text = error?.localizedDescription ?? ""
        expect(text.contains(NSInMemoryStoreType) && text.contains(stack.storeURL.path), "\(text)")
    }

    @Test(arguments: [true as Any, NSNumber(value: true), [String: Any](), NSDictionary()].map(UncheckedOption.init))
    func `the option is a Boolean or a dictionary`(_ option: UncheckedOption) throws {
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: option.value]
        let stack = try Stack(.database, model: HistoryModels.guide(), options: options)
        try stack.saveCity()
        try expectEqual(stack.transactions().count, 1)
    }

    @Test
    func `a SQLite database in memory records too (CS-224)`() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: HistoryModels.guide())
        try coordinator.addPersistentStore(
            type: StoreKind.database.type,
            at: URL(fileURLWithPath: "/dev/null"),
            options: Stack.tracking
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            City(context: context).name = "Porto"
            try context.save()
        }
        try expectEqual(coordinator.transactions().map { $0.changes?.count }, [1])
    }

    @Test
    func `each save that changes the store makes one transaction with one change for each object (CS-188)`() throws {
        let stack = try Stack.recording()
        let before = Date()
        let city = try stack.saveCity()
        try stack.change(city, City.self) { city, context in
            city.name = "Lisboa"
            for name in ["one", "two"] {
                let venue = Venue(context: context)
                venue.name = name
                venue.city = city
            }
        }
        let context = stack.context()
        try context.performAndWait { try context.save() }
        let transactions = try stack.transactions()
        expectEqual(transactions.map(\.transactionNumber), [1, 2])
        expect(transactions.allSatisfy { $0.timestamp >= before && $0.timestamp <= Date() })
        expect(transactions.allSatisfy { $0.storeID == stack.store.identifier })
        let (first, second) = (try require(transactions[0].changes), try require(transactions[1].changes))
        expect(first.map(\.changedObjectID) == [city] && first.map(\.changeType) == [.insert])
        expectEqual(second.map(\.changeType).sorted { $0.rawValue < $1.rawValue }, [.insert, .insert, .update])
        expectEqual(Set(second.map(\.changedObjectID)).count, 3)
        let ids = (first + second).map(\.changeID)
        expectEqual(ids, Set(ids).sorted())
        if stack.kind == .sqlite { expectEqual(ids, [1, 2, 3, 4]) }
        expect(second.allSatisfy { $0.transaction == transactions[1] && $0.transaction?.changes == nil })
    }

    @Test
    func `a transaction has the author and the name that the context had when it saved (CS-189)`() throws {
        let stack = try Stack.recording()
        let context = stack.context("importer")
        for author in ["nightly", nil, "nightly"] {
            try context.performAndWait {
                context.transactionAuthor = author
                City(context: context).name = "x"
                try context.save()
            }
        }
        let transactions = try stack.transactions()
        expectEqual(transactions.map(\.author), ["nightly", nil, "nightly"])
        expectEqual(transactions.map(\.contextName), ["importer", "importer", "importer"])
        expect(transactions.allSatisfy { $0.processID == ProcessInfo.processInfo.processName })
        guard stack.kind == .sqlite else { return }
        let strings = try stack.column("SELECT ZNAME FROM ATRANSACTIONSTRING")
        expectEqual(strings.filter { $0 == "nightly" || $0 == "importer" }.sorted(), ["importer", "nightly"])
    }

    @Test
    func `an update names the changed properties, attributes and relationships (CS-191)`() throws {
        let stack = try Stack.recording()
        let city = try stack.saveCity()
        let venue = try stack.write { context in
            let venue = Bar(context: context)
            venue.name = "a"
            return venue
        }
        let token = try stack.currentToken
        try stack.change(venue, Bar.self) { venue, context in
            venue.name = "b"
            venue.beers = 7
            venue.city = try context.existingObject(with: city) as? City
            venue.tags.insert(Tag(context: context))
        }
        let changes = try stack.changes(after: token)
        func names(_ id: NSManagedObjectID) -> [String]? {
            changes.first { $0.changedObjectID == id }?.updatedProperties.map { $0.map(\.name).sorted() }
        }
        expectEqual(names(venue), ["beers", "city", "name", "tags"])
        expectEqual(names(city), ["venues"])
        let inserted = changes.filter { $0.changeType == .insert }
        expectEqual(inserted.map { $0.changedObjectID.entity.name }, ["Tag"])
        expect(inserted.allSatisfy { $0.updatedProperties == nil && $0.tombstone == nil })
        expectEqual(changes.count, 3)
        let property = changes.first { $0.changedObjectID == venue }?.updatedProperties?.first { $0.name == "name" }
        expect(property === venue.entity.propertiesByName["name"])
    }

    @Test
    func `neighbours that change in one save have each its own properties`() throws {
        let stack = try Stack.recording()
        var ids: [String: NSManagedObjectID] = [:]
        for name in ["named", "tagged", "liked", "moved", "untouched"] {
            ids[name] = try stack.write { context in
                let venue = name == "liked" ? Bar(context: context) : Venue(context: context)
                venue.name = name
                return venue
            }
        }
        ids["Porto"] = try stack.saveCity("Porto")
        ids["Faro"] = try stack.saveCity("Faro")
        let token = try stack.currentToken
        let context = stack.context()
        try context.performAndWait {
            func venue(_ name: String) throws -> Venue { try context.get(require(ids[name]), Venue.self) }
            try venue("named").name = "renamed"
            try venue("tagged").tags.insert(Tag(context: context))
            let user = User(context: context)
            user.email = "e"
            user.favourites = [try venue("liked")]
            try venue("moved").city = try context.get(require(ids["Porto"]), City.self)
            try context.get(require(ids["Faro"]), City.self).population = 7
            try context.save()
        }
        let changes = try stack.changes(after: token)
        let names = ids.mapValues { id in
            changes.filter { $0.changedObjectID == id }.map { $0.updatedProperties.map { $0.map(\.name).sorted() } }
        }
        let wanted: [String: [[String]?]] = [
            "named": [["name"]], "tagged": [["tags"]], "liked": [["fans"]], "moved": [["city"]], "untouched": [],
            "Porto": [["venues"]], "Faro": [["population"]],
        ]
        expectEqual(names, wanted)
    }

    @Test
    func `an order that changed is an update of its owner alone`() throws {
        let stack = try Stack.recording()
        let venue = try stack.write { context in
            let venue = Venue(context: context)
            venue.photos = (0..<3).map { index in
                let photo = Photo(context: context)
                photo.title = "\(index)"
                return photo
            }
            return venue
        }
        let token = try stack.currentToken
        try stack.change(venue, Venue.self) { venue, _ in venue.photos = venue.photos.reversed() }
        let changes = try stack.changes(after: token)
        expectEqual(changes.map(\.changedObjectID), [venue])
        expectEqual(changes.first?.updatedProperties?.map(\.name), ["photos"])
    }

    @Test
    func `a deletion keeps the values of the attributes that are marked (CS-192)`() throws {
        let stack = try Stack.recording()
        let code = UUID()
        let date = Date(timeIntervalSinceReferenceDate: 1234.5)
        let id = try stack.write { context in
            let venue = Bar(context: context)
            (venue.name, venue.price, venue.distance) = ("Kvinde", -3, 0.25)
            (venue.createdAt, venue.favorite, venue.rating) = (date, true, Decimal(string: "4.5"))
            (venue.code, venue.site, venue.seats) = (code, URL(string: "https://example.org/x"), 12)
            venue.colour = ["red", "green"] as NSArray
            return venue
        }
        let city = try stack.saveCity()
        let token = try stack.currentToken
        let context = stack.context()
        try context.performAndWait {
            for id in [id, city] { context.delete(try context.existingObject(with: id)) }
            try context.save()
        }
        let changes = try stack.changes(after: token)
        expectEqual(changes.map(\.changeType), [.delete, .delete])
        let tombstone = try require(changes.first { $0.changedObjectID == id }?.tombstone as? [String: Any])
        expectEqual(Set(tombstone.keys), Set(HistoryModels.kept))
        expectEqual(tombstone["name"] as? String, "Kvinde")
        expectEqual(tombstone["price"] as? Int16, -3)
        expectEqual(tombstone["distance"] as? Double, 0.25)
        expectEqual(tombstone["createdAt"] as? Date, date)
        expectEqual(tombstone["favorite"] as? Bool, true)
        expectEqual((tombstone["rating"] as? NSDecimalNumber)?.decimalValue, Decimal(string: "4.5"))
        expectEqual(tombstone["code"] as? UUID, code)
        expectEqual(tombstone["site"] as? URL, URL(string: "https://example.org/x"))
        expectEqual(tombstone["colour"] as? [String], ["red", "green"])
        let plain = try require(changes.first { $0.changedObjectID == city })
        expect(plain.tombstone == nil && plain.updatedProperties == nil)
    }

    @Test
    func `a tombstone leaves out what was nil, and holds what was in an external file`() throws {
        let model = GuideModel.make()
        let map = try require(model.entitiesByName["Venue"]?.attributesByName["map"])
        map.allowsExternalBinaryDataStorage = true
        map.preservesValueInHistoryOnDeletion = true
        model.entitiesByName["Venue"]?.attributesByName["name"]?.preservesValueInHistoryOnDeletion = true
        let stack = try Stack.recording(model)
        let data = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        let id = try stack.write { context in
            let venue = Venue(context: context)
            venue.map = data
            return venue
        }
        try stack.change(id, Venue.self) { venue, context in context.delete(venue) }
        let tombstone = try require(try stack.changes().last?.tombstone as? [String: Any])
        expect(tombstone.count == 1 && tombstone["map"] as? Data == data)
    }

    @Test
    func `a refused save records nothing, and the next one takes its number`() throws {
        let stack = try Stack.recording()
        let id = try stack.saveCity()
        let (first, second) = (stack.context(), stack.context())
        try first.performAndWait { (try first.existingObject(with: id) as? City)?.name = "first" }
        try second.performAndWait {
            (try second.existingObject(with: id) as? City)?.name = "second"
            try second.save()
        }
        _ = first.performAndWait { expectThrows(CocoaError.self) { try first.save() } }
        try expectEqual(stack.transactions().map(\.transactionNumber), [1, 2])
        let count = try stack.column(
            "SELECT COUNT(*) FROM ACHANGE",
            postgreSQL: "SELECT pg_catalog.sum(pg_catalog.cardinality(keys))::text FROM strata_change"
        )
        expectEqual(count, ["2"])
        try first.performAndWait {
            first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try first.save()
        }
        try expectEqual(stack.transactions().map(\.transactionNumber), [1, 2, 3])
    }

    @Test
    func `rows that a deletion sets free are updates`() throws {
        let stack = try Stack.recording()
        let city = try stack.saveCity()
        let deleting = stack.context()
        try deleting.performAndWait { deleting.delete(try deleting.existingObject(with: city)) }
        let venue = try stack.write { context in
            let venue = Bar(context: context)
            venue.city = try context.existingObject(with: city) as? City
            return venue
        }
        let token = try stack.currentToken
        try deleting.performAndWait { try deleting.save() }
        let changes = try stack.changes(after: token)
        expectEqual(changes.count, 2)
        let freed = try require(changes.first { $0.changedObjectID == venue })
        expect(freed.changeType == .update && freed.updatedProperties?.map(\.name) == ["city"])
    }

    @Test
    func `a file that was opened with the option is read-only without it, and recording goes on with it`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        try stack.saveCity()
        let second = try stack.secondStack(nil)
        expect(second.persistentStores[0].isReadOnly)
        try expectEqual(second.transactions().count, 1)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = second
        context.performAndWait {
            City(context: context).name = "x"
            let error = historyError { try context.save() }
            expectEqual(error?.code, .fileWriteNoPermission)
        }
        let third = try stack.secondStack()
        expect(!third.persistentStores[0].isReadOnly)
        try stack.saveCity()
        try expectEqual(third.transactions().map(\.transactionNumber), [1, 2])
    }

    @Test
    func `a store that has rows already gets a history when it is opened with the option`() throws {
        let stack = try Stack(.database, model: HistoryModels.guide())
        let id = try stack.saveCity()
        try stack.coordinator.remove(stack.store)
        try stack.coordinator.addPersistentStore(
            type: StoreKind.database.type,
            at: stack.storeURL,
            options: Stack.tracking
        )
        try expectEqual(stack.currentToken.transactionNumbers.values.map { $0 }, [0])
        let key = id.uriRepresentation()
        let found = try require(stack.coordinator.managedObjectID(forURIRepresentation: key))
        try stack.change(found, City.self) { city, _ in city.name = "new" }
        try expectEqual(stack.changes().map(\.changeType), [.update])
    }

    @Test
    func `a model that asks for more values of deleted objects than the file has columns gets them`() throws {
        let stack = try Stack.recording(GuideModel.make(), .sqlite)
        try expect(stack.column("SELECT name FROM pragma_table_info('ACHANGE') WHERE name LIKE 'ZTOMB%'").isEmpty)
        try stack.coordinator.remove(stack.store)
        let options = Stack.tracking.merging([NSIgnorePersistentStoreVersioningOption: true]) { $1 }
        let second = try stack.secondStack(options)
        let columns = try stack.column("SELECT name FROM pragma_table_info('ACHANGE') WHERE name LIKE 'ZTOMB%'")
        expectEqual(columns, HistoryModels.kept.indices.map { "ZTOMBSTONE\($0)" })
        try second.remove(second.persistentStores[0])
    }

    @Test
    func `members that a deletion has set free are changes of its transaction`() throws {
        let stack = try Stack.recording()
        let city = try stack.saveCity()
        let venue = try stack.write { context in
            let venue = Venue(context: context)
            venue.name = "late"
            return venue
        }
        let context = stack.context()
        try context.performAndWait {
            context.delete(try context.get(city, City.self))
            context.processPendingChanges()
            try stack.change(venue, Venue.self) { venue, context in
                venue.city = try? context.existingObject(with: city) as? City
            }
            try context.save()
        }
        let changes = try stack.transactions().last?.changes ?? []
        let freed = changes.first { $0.changedObjectID == venue }
        expectEqual(freed?.changeType, .update)
        expectEqual(freed?.updatedProperties?.map(\.name), ["city"])
    }

    @Test
    func `a copied store starts a new history, and a replaced one brings the other's`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        let id = try stack.saveCity()
        try stack.change(id, City.self) { city, _ in city.name = "new" }
        let token = try stack.currentToken
        let replaced = stack.folder.appendingPathComponent("replaced.sqlite")
        try stack.coordinator.replacePersistentStore(
            at: replaced,
            withPersistentStoreFrom: stack.storeURL,
            type: .sqlite
        )
        let other = NSPersistentStoreCoordinator(managedObjectModel: HistoryModels.guide())
        try other.addPersistentStore(type: .sqlite, at: replaced, options: Stack.tracking)
        expectEqual(other.currentPersistentHistoryToken(fromStores: nil), token)
        let copied = stack.folder.appendingPathComponent("copied.sqlite")
        try stack.coordinator.migratePersistentStore(stack.store, to: copied, options: Stack.tracking, type: .sqlite)
        let transactions = try stack.transactions()
        expectEqual(transactions.map { $0.changes?.map(\.changeType) }, [[.insert]])
        expect(transactions.first?.storeID != token.transactionNumbers.keys.first)
    }
}

/// An option's value that is passed to a test.
struct UncheckedOption: @unchecked Sendable, CustomTestStringConvertible {
    // @unchecked Sendable: constants that no code changes.
    let value: Any
    var testDescription: String { "\(type(of: value))" }
}
