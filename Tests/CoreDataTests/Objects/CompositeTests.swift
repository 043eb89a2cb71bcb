import CoreData
import Expectations
import TestSupport
import Testing

/// A composite attribute has a value if one of its elements has, and is nil else.
@Suite("Composite attributes that are nil")
struct CompositeTests {
    private static func composite(
        _ name: String,
        isOptional: Bool = true,
        _ elements: [NSAttributeDescription]
    ) -> NSCompositeAttributeDescription {
        let composite = NSCompositeAttributeDescription()
        (composite.name, composite.isOptional, composite.elements) = (name, isOptional, elements)
        return composite
    }

    /// A required text with a default value, an optional number, and a place with a default value.
    private static func elements() -> [NSAttributeDescription] {
        let street = attribute("street") { ($0.isOptional, $0.defaultValue) = (false, "Main") }
        let place = composite("place", [attribute("town") { $0.defaultValue = "Faro" }, attribute("zip", .integer32)])
        return [street, attribute("number", .integer16), place]
    }

    private static func model() -> NSManagedObjectModel {
        let stamp = composite("stamp", [attribute("text"), attribute("count", .integer16) { $0.defaultValue = 3 }])
        stamp.defaultValue = ["text": "new"]
        let office = NSEntityDescription("Office", attribute("name"))
        let branches = relationship("branches", to: office)
        let head = relationship("head", to: office, maxCount: 1)
        connect(branches, head)
        office.properties += [
            composite("address", elements()), composite("billing", isOptional: false, elements()), stamp, branches,
            head,
        ]
        return NSManagedObjectModel(office)
    }

    @discardableResult
    private func office(_ name: String, _ context: NSManagedObjectContext, _ address: [String: Any]? = nil)
        -> NSManagedObject
    {
        let office = NSEntityDescription.insertNewObject(forEntityName: "Office", into: context)
        office.setValue(name, forKey: "name")
        if let address { office.setValue(address, forKey: "address") }
        return office
    }

    private func names(_ format: String, _ context: NSManagedObjectContext) throws -> [String] {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Office")
        request.predicate = NSPredicate(format: format)
        let found = try context.fetch(request)
        try expectEqual(context.count(for: request), found.count, "\(format)")
        return found.compactMap { $0.value(forKey: "name") as? String }.sorted()
    }

    private func address(_ name: String, _ context: NSManagedObjectContext) throws -> [String: Any]? {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Office")
        request.predicate = NSPredicate(format: "name == %@", name)
        return try require(context.fetch(request).first).value(forKey: "address") as? [String: Any]
    }

    @Test(arguments: StoreKind.allCases)
    func `an inner one is set by its path, and a neighbour whose name begins the same way is not`(
        _ kind: StoreKind
    ) throws {
        let outer = Self.composite(
            "place",
            [Self.composite("in", [attribute("door"), attribute("bell")]), attribute("inside"), attribute("i")]
        )
        let room = NSEntityDescription("Room", outer)
        let context = try Stack(kind, model: NSManagedObjectModel(room)).context()
        try context.performAndWait {
            let object = NSEntityDescription.insertNewObject(forEntityName: "Room", into: context)
            object.setValue(["in": ["door": "a", "bell": "b"], "inside": "c", "i": "d"], forKey: "place")
            object.setValue(["door": "x"], forKeyPath: "place.in")
            func texts() -> [String?] {
                ["in.door", "in.bell", "inside", "i"].map { object.value(forKeyPath: "place.\($0)") as? String }
            }
            expectEqual(texts(), ["x", nil, "c", "d"])
            try context.save()
            context.refreshAllObjects()
            expectEqual(texts(), ["x", nil, "c", "d"])
            object.setValue(nil, forKeyPath: "place.in")
            expectEqual(texts(), [nil, nil, "c", "d"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an optional one starts as nil, whatever default values its elements have`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        func check(_ office: NSManagedObject) {
            expect(office.value(forKey: "address") == nil)
            expect(office.value(forKeyPath: "address.street") == nil)
            let billing = office.value(forKey: "billing") as? [String: Any]
            expectEqual(billing?["street"] as? String, "Main")
            expect(billing?["place"] == nil, "an optional one inside starts as nil, too")
            let stamp = office.value(forKey: "stamp") as? [String: Any]
            expect(stamp?["text"] as? String == "new" && stamp?["count"] as? Int == 3)
        }
        try stack.inContext { context in
            let made = office("a", context)
            check(made)
            try context.save()
            check(made)
        }
        try stack.inContext { context in
            check(try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Office")).first))
            let request = NSFetchRequest<NSDictionary>(entityName: "Office")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["address", "billing"]
            let found = try require(context.fetch(request).first)
            expect(found["address"] == nil, "no column has a value")
            expectEqual((found["billing"] as? [String: Any])?["street"] as? String, "Main")
        }
        try expectEqual(stack.problems(), [])
    }

    /// Each predicate, and the offices that it finds.
    private static let questions: [(String, [String])] = [
        ("address == nil", ["empty", "never"]), ("address != nil", ["full", "number"]),
        ("nil == address", ["empty", "never"]), ("NOT (address == nil)", ["full", "number"]),
        ("address == nil OR address.number == 7", ["empty", "never", "number"]),
        ("address.place == nil", ["empty", "never", "number"]), ("address.place != nil", ["full"]),
        ("address IN {nil}", ["empty", "never"]), ("billing != nil", ["empty", "full", "never", "number"]),
        ("head.address != nil", ["never"]), ("head.address == nil", ["empty", "full", "number"]),
        ("ANY branches.address != nil", ["empty"]), ("ANY branches.address == nil", ["full"]),
        ("SUBQUERY(branches, $x, $x.address == nil).@count > 0", ["full"]),
    ]

    @Test(arguments: StoreKind.allCases)
    func `comparing with nil finds the same in a store, among unsaved objects and judged in the process`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind, model: Self.model())
        try stack.inContext { context in
            let never = office("never", context)
            let empty = office("empty", context, [:])
            let full = office("full", context, ["street": "Rua", "place": ["town": "Porto"]])
            let number = office("number", context, ["street": "Rua", "number": 7])
            number.setValue(empty, forKey: "head")
            never.setValue(full, forKey: "head")
            for state in ["unsaved", "saved"] {
                for (format, wanted) in Self.questions {
                    try expectEqual(names(format, context), wanted, "\(state): \(format)")
                }
                try context.save()
                context.reset()
            }
            let all = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Office"))
            for (format, wanted) in Self.questions {
                let predicate = NSPredicate(format: format)
                let found = all.filter { predicate.evaluate(with: $0) }
                let names = found.compactMap { $0.value(forKey: "name") as? String }
                expectEqual(names.sorted(), wanted, "judged: \(format)")
            }
        }
    }

    @Test(arguments: ["address == 'x'", "address == billing", "address > nil", "address IN {'x', nil}"])
    func `a store compares the whole with nothing but nil`(_ format: String) throws {
        let stack = try Stack(.database, model: Self.model())
        stack.inContext { context in
            expectThrows(CocoaError.self) { try names(format, context) }
            let sorted = NSFetchRequest<NSManagedObject>(entityName: "Office")
            sorted.sortDescriptors = [NSSortDescriptor(key: "address", ascending: true)]
            expectThrows(CocoaError.self) { try context.fetch(sorted) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `setting one element makes a value, and taking the last one away makes it nil`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        try stack.inContext { context in
            let made = office("a", context)
            let branch = office("b", context)
            branch.setValue(made, forKey: "head")
            made.setValue("Rua", forKeyPath: "address.street")
            branch.setValue("Porto", forKeyPath: "head.address.place.town")
            try context.save()
            context.reset()
            let address = try require(address("a", context))
            expectEqual(address["street"] as? String, "Rua")
            expectEqual(address["place"] as? [String: String], ["town": "Porto"])
            expect(address["number"] == nil)
            try expectEqual(names("address != nil", context), ["a"])
        }
        try stack.inContext { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Office")
            request.predicate = NSPredicate(format: "name == 'a'")
            let made = try require(context.fetch(request).first)
            made.setValue(["town": "Lagos", "zip": 8600], forKeyPath: "address.place")
            expectEqual(made.value(forKeyPath: "address.place.zip") as? Int, 8600)
            expectEqual(made.value(forKeyPath: "address.street") as? String, "Rua")
            made.setValue(nil, forKeyPath: "address.place")
            expect(made.value(forKeyPath: "address.place") == nil)
            made.setValue(nil, forKeyPath: "address.street")
            expect(made.value(forKey: "address") == nil)
            expect(made.changedValues()["address"] is NSNull)
            try context.save()
            context.reset()
            try expect(address("a", context) == nil)
            try expectEqual(names("address == nil", context), ["a", "b"])
        }
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `what a value needs is asked for only where there is one`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        try stack.inContext { context in
            let made = office("a", context)
            made.setValue(["number": 7], forKey: "address")
            let error = try #require(throws: CocoaError.self) { try context.save() }
            expectEqual(error.code, .validationMissingMandatoryProperty)
            expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "address.street")
            made.setValue(["street": "Rua", "place": NSNull()], forKey: "address")
            try context.save()
            made.setValue(nil, forKey: "address")
            try context.save()
            made.setValue(nil, forKey: "billing")
            let required = try #require(throws: CocoaError.self) { try context.save() }
            expectEqual(required.userInfo[NSValidationKeyErrorKey] as? String, "billing.street")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `batches leave it nil, set it and take it away`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        try stack.inContext { context in
            let rows: [[String: Any]] = [
                ["name": "never"], ["name": "null", "address": NSNull()],
                ["name": "full", "address": ["street": "Rua", "place": NSNull()]],
            ]
            try context.execute(NSBatchInsertRequest(entityName: "Office", objects: rows))
            try expectEqual(names("address == nil", context), ["never", "null"])
            try expectEqual(names("billing != nil AND stamp != nil", context), ["full", "never", "null"])
            let update = NSBatchUpdateRequest(entityName: "Office")
            update.predicate = NSPredicate(format: "address != nil")
            update.propertiesToUpdate = ["address": NSNull()]
            try context.execute(update)
            try expectEqual(names("address != nil", context), [])
            update.predicate = NSPredicate(format: "address == nil AND name == 'null'")
            update.propertiesToUpdate = ["address.street": "Rua"]
            try context.execute(update)
            try expectEqual(names("address != nil", context), ["null"])
        }
    }

    @Test(arguments: StoreKind.databases)
    func `verify finds rows without a required value, of elements only where the whole has a value`(
        _ kind: StoreKind
    ) throws {
        let model = Self.model()
        model.entitiesByName["Office"]?.attributesByName["name"]?.isOptional = false
        let stack = try Stack(kind, model: model)
        try stack.inContext { context in
            office("a", context, ["street": "Rua", "number": 7])
            try context.save()
            // Batches validate nothing.
            func update(_ values: [AnyHashable: Any]) throws -> [String] {
                let update = NSBatchUpdateRequest(entityName: "Office")
                update.propertiesToUpdate = values
                try context.execute(update)
                return try stack.problems()
            }
            try expectEqual(update(["name": "b"]), [])
            for (values, name) in [(["name": NSNull()], "name"), (["address.street": NSNull()], "address.street")] {
                let problems = try update(values)
                expect(problems.contains { $0.contains(name) && $0.contains("required") }, "\(problems)")
            }
            try expectEqual(update(["name": "b", "address": NSNull()]), [])
            let problems = try update(["billing": NSNull()])
            expect(problems.count == 1 && problems[0].contains("billing.street"), "\(problems)")
        }
    }

    @Test(arguments: StoreKind.databases)
    func `the history keeps no elements of a deleted object that had none`(_ kind: StoreKind) throws {
        let model = Self.model()
        model.entitiesByName["Office"]?.attributesByName["address"]?.preservesValueInHistoryOnDeletion = true
        let stack = try Stack(kind, model: model, options: [NSPersistentHistoryTrackingKey: true])
        try stack.inContext { context in
            let objects = [office("a", context), office("b", context, ["street": "Rua"])]
            try context.save()
            for object in objects { context.delete(object) }
            try context.save()
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            let transactions = try require(result?.result as? [NSPersistentHistoryTransaction])
            let tombstones = transactions.flatMap { $0.changes ?? [] }.filter { $0.changeType == .delete }
                .map { $0.tombstone ?? [:] }
            expectEqual(tombstones.count, 2)
            expectEqual(tombstones.map(\.count).sorted(), [0, 1])
        }
    }
}
