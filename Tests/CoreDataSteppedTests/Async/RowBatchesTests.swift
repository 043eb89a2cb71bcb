import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Rows in batches")
struct RowBatchesTests {
    @Test(arguments: StoreKind.allCases)
    func `batches are full but for the last, in order, with all rows once`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities((1...25).map { String(format: "%02d", $0) })
        var sizes: [Int] = []
        var names: [String] = []
        for try await batch in stack.context().rows(for: citiesByName(), batchSize: 10) {
            sizes.append(batch.count)
            names += batch.map { $0["name"] as? String ?? "" }
        }
        expectEqual(sizes, [10, 10, 5])
        expectEqual(names, (1...25).map { String(format: "%02d", $0) })
    }

    @Test(arguments: StoreKind.allCases)
    func `predicate, limit and offset are honoured, and an answer without rows has no batch`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        try stack.storeCities(["A", "B", "C", "D", "E"])
        let request = citiesByName()
        request.predicate = NSPredicate(format: "population > 1")
        request.fetchOffset = 1
        request.fetchLimit = 2
        var names: [String?] = []
        for try await batch in stack.context().rows(for: request, batchSize: 3) {
            names += batch.map { $0["name"] as? String }
        }
        expectEqual(names, ["C", "D"])
        request.predicate = NSPredicate(format: "population > 100")
        for try await _ in stack.context().rows(for: request) { Issue.record("There is nothing to read.") }
    }

    @Test(arguments: StoreKind.allCases)
    func `a row shows attributes as an object does, to-one relationships as IDs, and its own entity`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let code = UUID()
        let id = try stack.store(Bar.self) { bar, context in
            bar.name = "Piolho"
            bar.price = 12
            bar.favorite = true
            bar.code = code
            bar.colour = ["red", 3]
            bar.rating = 4.5
            bar.createdAt = Date(timeIntervalSinceReferenceDate: 1000)
            bar.city = City(context: context)
            bar.city?.name = "Porto"
        }
        var rows: [FetchedRow] = []
        for try await batch in stack.context().rows(for: NSFetchRequest<Venue>(entityName: "Venue")) { rows += batch }
        let row = try require(rows.first)
        expectEqual(rows.count, 1)
        expect(row.objectID === id)
        expectEqual(row.entity.name, "Bar")
        expectEqual(row["name"] as? String, "Piolho")
        expectEqual((row["price"] as? NSNumber)?.intValue, 12)
        expectEqual((row["favorite"] as? NSNumber)?.boolValue, true)
        expectEqual((row["beers"] as? NSNumber)?.intValue, 3)
        expectEqual(row["code"] as? UUID, code)
        expectEqual((row["colour"] as? NSArray)?.count, 2)
        expectEqual((row["rating"] as? NSDecimalNumber)?.decimalValue, 4.5)
        expectEqual(row["createdAt"] as? Date, Date(timeIntervalSinceReferenceDate: 1000))
        expectEqual((row["city"] as? NSManagedObjectID)?.entity.name, "City")
        expect(row["licence"] == nil)
        expect(row.values.keys.contains("city") && !row.values.keys.contains("licence"))
        let cityID = try require(row["city"] as? NSManagedObjectID)
        try expectEqual(stack.read(cityID, City.self) { $0.name }, "Porto")
    }

    @Test(arguments: StoreKind.allCases)
    func `values can be read with their types, and nil where there is none`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let code = UUID()
        _ = try stack.store(Venue.self) { venue, _ in
            venue.name = "Adega"
            venue.price = -7
            venue.distance = 1.25
            venue.createdAt = Date(timeIntervalSinceReferenceDate: 12.5)
            venue.favorite = true
            venue.rating = 4.5
            venue.code = code
            venue.site = URL(string: "https://example.org/a")
            venue.map = Data([1, 2, 3])
            venue.seats = 70_000
            venue.visits = 1 << 40
            venue.score = 0.5
        }
        _ = try stack.store(Venue.self) { venue, _ in venue.price = 1 }
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.sortDescriptors = [.by("price")]
        var rows: [FetchedRow] = []
        for try await batch in stack.context().rows(for: request) { rows += batch }
        let row = try require(rows.first)
        expectEqual(row["name", as: String.self], "Adega")
        expectEqual(row["price", as: Int16.self], -7)
        expectEqual(row["price", as: Int.self], -7)
        expectEqual(row["seats", as: Int32.self], 70_000)
        expectEqual(row["visits", as: Int64.self], 1 << 40)
        expectEqual(row["visits", as: Int.self], 1 << 40)
        expectEqual(row["favorite", as: Bool.self], true)
        expectEqual(row["distance", as: Double.self], 1.25)
        expectEqual(row["createdAt", as: Double.self], 12.5)
        expectEqual(row["createdAt", as: Date.self], Date(timeIntervalSinceReferenceDate: 12.5))
        expectEqual(row["score", as: Float.self], 0.5)
        expectEqual(row["rating", as: Decimal.self], 4.5)
        expectEqual(row["code", as: UUID.self], code)
        expectEqual(row["site", as: URL.self], URL(string: "https://example.org/a"))
        expectEqual(row["map", as: Data.self], Data([1, 2, 3]))
        let empty = try require(rows.last)
        expect(empty["name", as: String.self] == nil && empty["rating", as: Decimal.self] == nil)
        expect(empty["code", as: UUID.self] == nil && empty["site", as: URL.self] == nil)
        expect(empty["map", as: Data.self] == nil && empty["createdAt", as: Date.self] == nil)
    }

    /// An entity without binary data, whose rows a SQLite store packs, and a sub-entity.
    private static func items() -> NSManagedObjectModel {
        let item = GuideModel.entity("Item", NSManagedObject.self)
        item.properties = [
            GuideModel.attribute("number", .integer64), GuideModel.attribute("text", .string),
            GuideModel.attribute("other", .string), GuideModel.attribute("short", .integer16),
            GuideModel.attribute("flag", .boolean), GuideModel.attribute("weight", .double),
            GuideModel.attribute("ratio", .float), GuideModel.attribute("date", .date),
            GuideModel.attribute("code", .uuid), GuideModel.attribute("site", .uri),
            GuideModel.attribute("price", .decimal),
        ]
        let special = GuideModel.entity("Special", NSManagedObject.self)
        special.properties = [GuideModel.attribute("extra", .string)]
        item.subentities = [special]
        let next = NSRelationshipDescription()
        next.name = "next"
        next.destinationEntity = item
        next.maxCount = 1
        next.isOptional = true
        item.properties.append(next)
        let model = NSManagedObjectModel()
        model.entities = [item, special]
        return model
    }

    /// A number of any type as `Double`.
    private func number(_ value: Any?) -> Double? {
        switch value {
        case let flag as Bool: flag ? 1 : 0
        case let decimal as Decimal: NSDecimalNumber(decimal: decimal).doubleValue
        case let float as Float: Double(float)
        case let double as Double: double
        case let integer as any BinaryInteger: Double(integer)
        case let number as NSNumber: number.doubleValue
        default: nil
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `rows without binary data have the values of the objects, of any length, and keep them`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind, model: Self.items())
        let lengths = [0, 1, 15, 16, 17, 254, 255, 256, 5000, 20_000]
        let context = stack.context()
        try await context.perform {
            var former: NSManagedObject?
            for number in 0..<50 {
                let name = number % 3 == 0 ? "Special" : "Item"
                let object = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
                object.setValue(number, forKey: "number")
                let letter = number % 2 == 0 ? "a" : "é"
                let length = lengths[number % lengths.count] / letter.utf8.count
                if number % 7 != 6 { object.setValue(String(repeating: letter, count: length), forKey: "text") }
                object.setValue("another \(number)", forKey: "other")
                if number % 3 == 0 { object.setValue("extra \(number)", forKey: "extra") }
                if number % 5 == 4 { continue }
                object.setValue(-number, forKey: "short")
                object.setValue(number % 2 == 0, forKey: "flag")
                object.setValue(Double(number) / 8, forKey: "weight")
                object.setValue(Float(number) / 4, forKey: "ratio")
                object.setValue(Date(timeIntervalSinceReferenceDate: Double(number)), forKey: "date")
                object.setValue(UUID(), forKey: "code")
                object.setValue(URL(string: "https://example.org/\(number)"), forKey: "site")
                object.setValue(Decimal(number) / 100, forKey: "price")
                object.setValue(former, forKey: "next")
                former = object
            }
            try context.save()
        }
        let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
        request.sortDescriptors = [.by("number")]
        var rows: [FetchedRow] = []
        // Some rows of each batch are kept beyond it.
        for try await batch in stack.context().rows(for: request, batchSize: 20) { rows += batch }
        let reading = stack.context()
        let kept = rows
        try await reading.perform {
            let objects = try reading.fetch(request)
            expectEqual(objects.map(\.objectID), kept.map(\.objectID))
            for (object, row) in zip(objects, kept) {
                expectEqual(row.entity.name, object.entity.name)
                for name in object.entity.propertiesByName.keys {
                    expectEqual(row[name] == nil, object.value(forKey: name) == nil)
                }
                for name in ["text", "other", "extra", "date", "code", "site"]
                where object.entity.propertiesByName[name] != nil {
                    expectEqual(row[name] as? AnyHashable, object.value(forKey: name) as? AnyHashable)
                }
                for name in ["number", "short", "flag", "weight", "ratio", "price"] {
                    expectEqual((row[name] as? NSNumber)?.doubleValue, number(object.value(forKey: name)))
                }
                let next = object.value(forKey: "next") as? NSManagedObject
                expect(row["next"] as? NSManagedObjectID === next?.objectID)
                expectEqual(row["text", as: String.self], object.value(forKey: "text") as? String)
                expectEqual(row["number", as: Int64.self], object.value(forKey: "number") as? Int64)
                expectEqual(row["short", as: Int16.self], object.value(forKey: "short") as? Int16)
                expectEqual(row["flag", as: Bool.self], object.value(forKey: "flag") as? Bool)
                expectEqual(row["weight", as: Double.self], object.value(forKey: "weight") as? Double)
                expectEqual(row["ratio", as: Float.self], object.value(forKey: "ratio") as? Float)
                expectEqual(row["date", as: Date.self], object.value(forKey: "date") as? Date)
                expectEqual(row["code", as: UUID.self], object.value(forKey: "code") as? UUID)
                expectEqual(row["site", as: URL.self], object.value(forKey: "site") as? URL)
                expectEqual(row["price", as: Decimal.self], object.value(forKey: "price") as? Decimal)
                expect(row.values.count == object.entity.propertiesByName.keys.count { row[$0] != nil })
            }
        }
    }

    @Test(arguments: ["price", "city"])
    func `a type that an attribute does not have stops the program and is named`(_ key: String) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [key] in
            let stack = try Stack(.memory)
            _ = try stack.store(Venue.self) { venue, _ in venue.price = 1 }
            for try await batch in stack.context().rows(for: NSFetchRequest<Venue>(entityName: "Venue")) {
                _ = batch[0][key, as: String.self]
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("\"\(key)\"") && text.contains("Venue") && text.contains("String"))
    }

    @Test func `a name that rows do not have stops the program and is named`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            _ = try stack.storeCity("Porto")
            for try await batch in stack.context().rows(for: citiesByName()) { _ = batch[0]["venues"] }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("\"venues\"") && text.contains("City"))
    }

    @Test(arguments: StoreKind.allCases)
    func `all batches are of the moment of the first, whatever is saved meanwhile`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities((1...20).map { String(format: "%02d", $0) })
        var names: [String] = []
        var isFirst = true
        for try await batch in stack.context().rows(for: citiesByName(), batchSize: 5) {
            names += batch.map { $0["name"] as? String ?? "" }
            guard isFirst else { continue }
            isFirst = false
            let writer = stack.context()
            try writer.performAndWait {
                let cities = try writer.fetch(citiesByName())
                cities[19].name = "changed"
                writer.delete(cities[10])
                City(context: writer).name = "99"
                try writer.save()
            }
        }
        expectEqual(names, (1...20).map { String(format: "%02d", $0) })
        try expectEqual(stack.count("City"), 20)
    }

    @Test func `unsaved changes do not count`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["Porto"])
        let context = stack.context()
        context.performAndWait { City(context: context).name = "Faro" }
        var count = 0
        for try await batch in context.rows(for: citiesByName()) { count += batch.count }
        expectEqual(count, 1)
    }

    @Test(.timeLimit(.minutes(1))) func `a table without end is read in bounded memory, and left at any time`()
        async throws
    {
        let stack = try Stack(.sqlite)
        try stack.makeTagsEndless(givingRows: true)
        var last = ""
        var count = 0
        for try await batch in stack.context().rows(for: allTags(), batchSize: 1000) {
            last = batch.last?["title"] as? String ?? ""
            count += batch.count
            if count == 50_000 { break }
        }
        expectEqual(last, "tag 50000")
        try await expect(stack.becomesQuiet())
    }

    @Test(.timeLimit(.minutes(1))) func `cancelling the task stops the store and throws`() async throws {
        let stack = try Stack(.database)
        try stack.makeTagsEndless(givingRows: false)
        let rows = stack.context().rows(for: allTags())
        let task = Task {
            for try await _ in rows { Issue.record("There is nothing to read.") }
        }
        await Task.yield()
        task.cancel()
        await expectThrows(CancellationError.self) { try await task.value }
        try await expect(stack.becomesQuiet())
    }

    @Test func `a loop over a request that makes no sense throws, and the next loop too`() async throws {
        let stack = try Stack(.database)
        let request = citiesByName()
        request.predicate = NSPredicate(format: "altitude > 3")
        let rows = stack.context().rows(for: request)
        for _ in 1...2 {
            await expectThrows(CocoaError.self) {
                for try await _ in rows {}
            }
        }
    }

    @Test func `too many loops at a time are refused with advice`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities(["A", "B"])
        let rows = stack.context().rows(for: citiesByName(), batchSize: 1)
        var open = (0..<16).map { _ in rows.makeAsyncIterator() }
        for index in open.indices { try await expectEqual(open[index].next()?.count, 1) }
        var another = rows.makeAsyncIterator()
        let error = await expectThrows(CocoaError.self) { try await another.next() }
        expectEqual(error?.code.rawValue, 134070)
        let advice = stack.kind == .sqlite ? "End a loop" : "end loops over rows"
        expectEqual(error?.localizedDescription.contains(advice), true)
        open = []
        try await expect(stack.becomesQuiet())
        try await expectEqual(rows.makeAsyncIterator().first(), 1)
    }

    @Test func `several stores are read one after the other, but not sorted`() async throws {
        let model = NSManagedObjectModel()
        let place = GuideModel.entity("Place", NSManagedObject.self)
        place.properties = [GuideModel.attribute("name", .string)]
        model.entities = [place]
        let stack = try Stack(.database, model: model)
        let second = try stack.coordinator.addPersistentStore(
            type: .inMemory,
            configuration: nil,
            at: URL(fileURLWithPath: "/x")
        )
        let context = stack.context()
        try context.performAndWait {
            for index in 0..<10 {
                let object = NSEntityDescription.insertNewObject(forEntityName: "Place", into: context)
                object.setValue("\(index)", forKey: "name")
                if index % 2 == 0 { context.assign(object, to: second) }
            }
            try context.save()
        }
        let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
        var names: Set<String> = []
        for try await batch in context.rows(for: request, batchSize: 3) {
            names.formUnion(batch.compactMap { $0["name"] as? String })
        }
        expectEqual(names.count, 10)
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        await expectThrows(CocoaError.self) {
            for try await _ in context.rows(for: request) {}
        }
        request.affectedStores = [second]
        var sorted: [String] = []
        for try await batch in context.rows(for: request) { sorted += batch.compactMap { $0["name"] as? String } }
        expectEqual(sorted, ["0", "2", "4", "6", "8"])
    }
}

extension RowBatches.AsyncIterator {
    /// The size of the first batch.
    fileprivate func first() async throws -> Int? {
        var copy = self
        return try await copy.next()?.count
    }
}
