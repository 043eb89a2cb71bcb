import CoreData
import Expectations
import TestSupport
import Testing

/// Requests that a class makes, and requests for results of another type.
@Suite("Requests and their types")
struct RequestTypeTests {
    private func stack(_ kind: StoreKind) throws -> Stack {
        let stack = try Stack(kind)
        try stack.inContext { context in
            for (name, price) in [("a", 1), ("b", 2)] {
                let venue = Venue(context: context)
                venue.name = name
                venue.price = Int16(price)
            }
            try context.save()
        }
        return stack
    }

    /// Programs keep these numbers, and the files of models and mapping models have them.
    @Test func `the numbers of types and options are those of Apple's framework`() {
        let results: [NSFetchRequestResultType] = [
            .managedObjectResultType, .managedObjectIDResultType, .dictionaryResultType, .countResultType,
        ]
        expectEqual(results.map(\.rawValue), [0, 1, 2, 4])
        let requests: [NSPersistentStoreRequestType] = [
            .fetchRequestType, .saveRequestType, .batchInsertRequestType, .batchUpdateRequestType,
            .batchDeleteRequestType,
        ]
        expectEqual(requests.map(\.rawValue), [1, 2, 5, 6, 7])
        let insertions: [NSBatchInsertRequestResultType] = [.statusOnly, .objectIDs, .count]
        expectEqual(insertions.map(\.rawValue), [0, 1, 2])
        let updates: [NSBatchUpdateRequestResultType] = [
            .statusOnlyResultType, .updatedObjectIDsResultType, .updatedObjectsCountResultType,
        ]
        expectEqual(updates.map(\.rawValue), [0, 1, 2])
        let deletions: [NSBatchDeleteRequestResultType] = [
            .resultTypeStatusOnly, .resultTypeObjectIDs, .resultTypeCount,
        ]
        expectEqual(deletions.map(\.rawValue), [0, 1, 2])
        let histories: [NSPersistentHistoryResultType] = [
            .statusOnly, .objectIDs, .count, .transactionsOnly, .changesOnly, .transactionsAndChanges,
        ]
        expectEqual(histories.map(\.rawValue), [0, 1, 2, 3, 4, 5])
        let changes: [NSPersistentHistoryChangeType] = [.insert, .update, .delete]
        expectEqual(changes.map(\.rawValue), [0, 1, 2])
        let steps: [NSFetchedResultsChangeType] = [.insert, .delete, .move, .update]
        expectEqual(steps.map(\.rawValue), [1, 2, 3, 4])
        let queues: [NSManagedObjectContextConcurrencyType] = [.privateQueueConcurrencyType, .mainQueueConcurrencyType]
        expectEqual(queues.map(\.rawValue), [1, 2])
        let policies: [NSMergePolicyType] = [
            .errorMergePolicyType, .mergeByPropertyStoreTrumpMergePolicyType,
            .mergeByPropertyObjectTrumpMergePolicyType, .overwriteMergePolicyType, .rollbackMergePolicyType,
        ]
        expectEqual(policies.map(\.rawValue), [0, 1, 2, 3, 4])
        let rules: [NSDeleteRule] = [.noActionDeleteRule, .nullifyDeleteRule, .cascadeDeleteRule, .denyDeleteRule]
        expectEqual(rules.map(\.rawValue), [0, 1, 2, 3])
        let indexes: [NSFetchIndexElementType] = [.binary, .rTree]
        expectEqual(indexes.map(\.rawValue), [0, 1])
        let mappings: [NSEntityMappingType] = [
            .undefinedEntityMappingType, .customEntityMappingType, .addEntityMappingType, .removeEntityMappingType,
            .copyEntityMappingType, .transformEntityMappingType,
        ]
        expectEqual(mappings.map(\.rawValue), [0, 1, 2, 3, 4, 5])
        let attributes: [NSAttributeType] = [
            .undefinedAttributeType, .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
            .decimalAttributeType, .doubleAttributeType, .floatAttributeType, .stringAttributeType,
            .booleanAttributeType, .dateAttributeType, .binaryDataAttributeType, .UUIDAttributeType,
            .URIAttributeType, .transformableAttributeType, .objectIDAttributeType, .compositeAttributeType,
        ]
        expectEqual(attributes.map(\.rawValue), Array(0...12).map { $0 * 100 } + [1800, 2000, 2100])
    }

    @Test(arguments: StoreKind.allCases)
    func `a request of a class without an asked type takes any form of results`(_ kind: StoreKind) throws {
        try stack(kind).inContext { context throws in
            let request = Venue.fetchRequest()
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["name"]
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let dictionaries = try context.fetch(request) as? [[String: Any]]
            expectEqual(dictionaries?.compactMap { $0["name"] as? String }, ["a", "b"])
            let objects = try context.fetch(Venue.fetchRequest()) as? [Venue]
            expectEqual(objects?.count, 2)
            let counted = Venue.fetchRequest()
            counted.resultType = .countResultType
            let count = try context.fetch(counted).first as? NSNumber
            expectEqual(count?.intValue, 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a request of a class has the asked type`(_ kind: StoreKind) throws {
        try stack(kind).inContext { context throws in
            let request: NSFetchRequest<Venue> = Venue.fetchRequest()
            request.predicate = NSPredicate(format: "price > 1")
            try expectEqual(context.fetch(request).map(\.name), ["b"])
            let venues: [Venue] = try context.fetch(Venue.fetchRequest())
            expectEqual(venues.count, 2)
        }
    }

    @Test
    func `a request of a class knows the name of its entity at once`() throws {
        let stack = try Stack(.memory)
        let request = Venue.fetchRequest()
        expectEqual(request.entityName, "Venue")
        let typed: NSFetchRequest<Bar> = Bar.fetchRequest()
        expectEqual(typed.entityName, "Bar")
        expectEqual(WithoutModel.fetchRequest().entityName, "WithoutModel")
        stack.inContext { context in
            let error = expectThrows(CocoaError.self) { try context.fetch(WithoutModel.fetchRequest()) }
            expectEqual(error?.localizedDescription.contains("no entity of class WithoutModel"), true)
        }
    }

    @Test
    func `the entity of a class that no model has is an entity of no model`() {
        let entity = WithoutModel.entity()
        expectEqual(entity.name, "WithoutModel")
        expectEqual(WithoutModel.entity().managedObjectClassName, String(reflecting: WithoutModel.self))
    }

    @Test(arguments: StoreKind.allCases)
    func `a class may say itself which entity it means`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: TagByAnotherName.model)
        try stack.inContext { context throws in
            TagByAnotherName(context: context).setValue("t", forKey: "title")
            expectEqual(TagByAnotherName.fetchRequest().entityName, "Tag")
            try expectEqual(context.count(for: TagByAnotherName.fetchRequest()), 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a request converts to another type of results`(_ kind: StoreKind) throws {
        try stack(kind).inContext { context throws in
            let request = Venue.fetchRequest()
            request.predicate = NSPredicate(format: "price > 1")
            request.fetchLimit = 5
            let typed = request.typed(as: Venue.self)
            try expectEqual(context.fetch(typed).map(\.name), ["b"])
            expectEqual(typed.fetchLimit, 5)
            typed.predicate = nil
            expect(request.predicate != nil)
            let ids = try context.fetch(request.typed(as: NSManagedObjectID.self))
            let found = try ids.map { try context.existingObject(with: $0).value(forKey: "name") as? String }
            expectEqual(found, ["b"])
            try expectEqual(context.fetch(request.typed(as: NSDictionary.self)).first?["name"] as? String, "b")
            try expectEqual(context.fetch(request.typed(as: [String: Any].self)).first?["name"] as? String, "b")
            try expectEqual(context.fetch(request.typed(as: NSNumber.self)), [1])
            let untyped = typed.typed(as: (any NSFetchRequestResult).self)
            try expect(context.fetch(untyped) as? [Venue] != nil)
        }
    }

    /// A text of a property says why a fetch cannot be sorted by it.
    @Test(arguments: StoreKind.allCases)
    func `a sort by what has no single value of an object is refused with the reason`(_ kind: StoreKind) throws {
        let context = try stack(kind).context()
        context.performAndWait {
            for (key, reason) in [
                ("tags.title", "A to-many key is not allowed where one value is needed"),
                ("city.venues.name", "A to-many key is not allowed where one value is needed"),
                ("tags.@count", "A fetch cannot be sorted by what a to-many key leads to."),
                ("name.length", "A fetch is sorted by attributes, not by what is computed from them."),
            ] {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.sortDescriptors = [NSSortDescriptor(key: key, ascending: true)]
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                let text = error?.localizedDescription ?? ""
                expect(text.contains(reason), "\(key): \(text)")
            }
        }
    }
}

private final class WithoutModel: NSManagedObject {}

private final class TagByAnotherName: NSManagedObject {
    static let model = {
        let model = GuideModel.make()
        model.entitiesByName["Tag"]?.managedObjectClassName = "NSManagedObject"
        return model
    }()

    override class func entity() -> NSEntityDescription { model.entitiesByName["Tag"] ?? super.entity() }
}
