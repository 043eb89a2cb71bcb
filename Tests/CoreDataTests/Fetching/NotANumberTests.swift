import CoreData
import Expectations
import TestSupport
import Testing

/// Databases have no number that is none, or keep it apart: it is nil to predicates, and no store takes it.
@Suite("Values that are not numbers")
struct NotANumberTests {
    @Test(
        arguments: StoreKind.allCases,
        [
            "%K == nil", "NOT (%K > %@)", "NOT (%K <= %@)", "%K == %K", "%K IN {nil}", "NOT (%K BETWEEN {%@, %@})",
            "%K == %@ OR %K == nil",
        ]
    )
    func `are nil to predicates, and are not saved`(_ kind: StoreKind, _ format: String) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venue = context.insert("Venue", ["name": "Bar"])
            venue.setValue(Date(timeIntervalSinceReferenceDate: .nan), forKey: "createdAt")
            venue.setValue(Double.nan, forKey: "distance")
            let date = Date(timeIntervalSinceReferenceDate: 0)
            let requests = [("createdAt", date as Any), ("distance", 0.0)].map { key, value in
                let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
                let parts = format.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
                let arguments = parts.map { $0.hasPrefix("K") ? key as Any : value }
                request.predicate = NSPredicate(format: format, argumentArray: arguments)
                return request
            }
            for request in requests {
                let predicate = try require(request.predicate)
                expect(predicate.evaluate(with: venue), "\(predicate) of the object")
                try expectEqual(context.count(for: request), 1, "\(predicate) in the context")
            }
            expectThrows(CocoaError.self) { try context.save() }
        }
    }

    /// A model with each kind of attribute that can hold such a value.
    private func model(optional: Bool) -> NSManagedObjectModel {
        let kinds: [(String, NSAttributeDescription.AttributeType)] = [
            ("date", .date), ("decimal", .decimal), ("double", .double), ("float", .float),
        ]
        func attributes() -> [NSAttributeDescription] {
            kinds.map { name, type in
                let attribute = NSAttributeDescription()
                (attribute.name, attribute.type, attribute.isOptional) = (name, type, optional)
                return attribute
            }
        }
        let composite = NSCompositeAttributeDescription()
        composite.name = "whole"
        composite.elements = attributes()
        let entity = NSEntityDescription()
        entity.name = "Reading"
        entity.properties = attributes() + [composite]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }

    private static var good: [String: Any] {
        [
            "date": Date(timeIntervalSinceReferenceDate: 5), "decimal": NSDecimalNumber(value: 2),
            "double": -Double.infinity, "float": Float(1.5),
        ]
    }

    private static var bad: [String: Any] {
        [
            "date": Date(timeIntervalSinceReferenceDate: .nan), "decimal": NSDecimalNumber.notANumber,
            "double": Double.nan, "float": Float.nan,
        ]
    }

    private func reading(_ context: NSManagedObjectContext) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: "Reading", into: context)
        for (key, value) in Self.good { object.setValue(value, forKey: key) }
        object.setValue(Self.good, forKey: "whole")
        return object
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `are refused by a save, whether or not the attribute is optional`(_ kind: StoreKind, _ optional: Bool) throws {
        let stack = try Stack(kind, model: model(optional: optional))
        try stack.inContext { context in
            let object = reading(context)
            try context.save()
            for (key, value) in Self.bad.sorted(by: { $0.key < $1.key }) {
                let code: CocoaError.Code = key == "date" ? .validationInvalidDate : .managedObjectValidation
                for path in [key, "whole"] {
                    object.setValue(path == key ? value : Self.good.merging([key: value]) { $1 }, forKey: path)
                    let error = try #require(throws: CocoaError.self) { try context.save() }
                    expectEqual(error.code, code, "\(path) \(key)")
                    expectEqual(
                        error.userInfo[NSValidationKeyErrorKey] as? String,
                        path == key ? key : "whole.\(key)"
                    )
                    context.rollback()
                }
                let single = try #require(throws: CocoaError.self) {
                    var checked: Any? = value
                    try object.validateValue(&checked, forKey: key)
                }
                expectEqual(single.code, code)
            }
        }
        try stack.inContext { context in
            let object = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Reading")).first)
            expectEqual(object.value(forKey: "double") as? Double, -.infinity)
            expectEqual(object.value(forKey: "decimal") as? NSDecimalNumber, NSDecimalNumber(value: 2))
            expectEqual(object.value(forKey: "date") as? Date, Date(timeIntervalSinceReferenceDate: 5))
        }
    }

    @Test(arguments: [StoreKind.database.type, .binary])
    func `no transformable attribute takes such a date, and each takes one that is infinite`(
        _ type: NSPersistentStore.StoreType
    ) throws {
        let attribute = NSAttributeDescription()
        (attribute.name, attribute.type, attribute.isOptional) = ("facts", .transformable, true)
        let entity = NSEntityDescription()
        entity.name = "Reading"
        entity.properties = [attribute]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let folder = try ScratchFolder()
        let url = folder.file("facts.sqlite")
        defer { if StoreKind.isPostgreSQL, type == StoreKind.postgreSQL.type { DatabaseTexts.drop(url) } }
        let end = Date(timeIntervalSinceReferenceDate: .infinity)
        func use(_ body: (NSManagedObjectContext) throws -> Void) throws {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
            let store = try coordinator.addPersistentStore(type: type, at: url)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait { try body(context) }
            try coordinator.remove(store)
        }

        try use { context in
            context.insert("Reading", ["facts": end as NSDate])
            context.insert("Reading", ["facts": ["until": end] as NSDictionary])
            try context.save()
            let never = Date(timeIntervalSinceReferenceDate: .nan)
            for value in [never as NSDate, [never] as NSArray, ["since": never] as NSDictionary] as [NSObject] {
                let object = context.insert("Reading", ["facts": value])
                // The macro would describe the object of the error, and so the date, which stops the program.
                var code: CocoaError.Code?
                do { try context.save() } catch let error as CocoaError { code = error.code }
                expectEqual(code, .managedObjectValidation)
                context.delete(object)
                try context.save()
            }
        }

        try use { context in
            let facts = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Reading"))
                .map { $0.value(forKey: "facts") }
            expectEqual(facts.count, 2)
            expectEqual(facts.compactMap { $0 as? Date }, [end])
            expectEqual(facts.compactMap { ($0 as? NSDictionary)?["until"] as? Date }, [end])
        }
    }

    @Test(arguments: [false, true])
    func `are refused by a migration by objects, which leaves no store`(_ isElement: Bool) throws {
        let stack = try Stack(.database, model: model(optional: true))
        try stack.inContext { context in
            _ = reading(context)
            try context.save()
        }
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        var value: Any = Double.nan
        if isElement { value = ["float": Float.nan] as [String: Any] }
        let property = NSPropertyMapping()
        property.name = isElement ? "whole" : "double"
        property.valueExpression = NSExpression(forConstantValue: value)
        let entity = NSEntityMapping()
        (entity.sourceEntityName, entity.destinationEntityName) = ("Reading", "Reading")
        entity.attributeMappings = [property]
        let mapping = NSMappingModel()
        mapping.entityMappings = [entity]
        let manager = NSMigrationManager(
            sourceModel: model(optional: true),
            destinationModel: model(optional: true)
        )
        let place = stack.folder.appendingPathComponent("new.sqlite")
        defer { if stack.kind == .postgreSQL { DatabaseTexts.drop(place) } }
        let type = stack.kind.type
        let error = try #require(throws: CocoaError.self) {
            try manager.migrateStore(from: stack.storeURL, type: type, mapping: mapping, to: place, type: type)
        }
        expectEqual(error.code, .managedObjectValidation)
        expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, isElement ? "whole.float" : "double")
        expectThrows(CocoaError.self) {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: place)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `are refused by batches, which change nothing then`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: model(optional: true))
        try stack.inContext { context in
            _ = reading(context)
            try context.save()
            for (key, value) in Self.bad.sorted(by: { $0.key < $1.key }) {
                let dictionaries = NSBatchInsertRequest(entityName: "Reading", objects: [Self.good, [key: value]])
                expectThrows(CocoaError.self) { try context.execute(dictionaries) }
                let composites = NSBatchInsertRequest(entityName: "Reading", objects: [["whole": [key: value]]])
                expectThrows(CocoaError.self) { try context.execute(composites) }
                var isMade = false
                let objects = NSBatchInsertRequest(
                    entityName: "Reading",
                    managedObjectHandler: { object in
                        defer { isMade = true }
                        if !isMade { object.setValue(value, forKey: key) }
                        return isMade
                    }
                )
                expectThrows(CocoaError.self) { try context.execute(objects) }
                let update = NSBatchUpdateRequest(entityName: "Reading")
                update.propertiesToUpdate = [key: value]
                expectThrows(CocoaError.self) { try context.execute(update) }
            }
            let left = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Reading"))
            expectEqual(left.count, 1)
            context.refreshAllObjects()
            expectEqual(left.first?.value(forKey: "float") as? Float, 1.5)
        }
    }
}
