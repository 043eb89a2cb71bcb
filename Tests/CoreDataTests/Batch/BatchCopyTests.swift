import CoreData
import Expectations
import TestSupport
import Testing

/// A copy of a batch request does what the request does, and can be changed without it.
@Suite("Copies of batch requests")
struct BatchCopyTests {
    private func copied<Request: NSPersistentStoreRequest>(_ request: Request) throws -> Request {
        let copy = try require(request.copy() as? Request)
        expect(copy !== request && type(of: copy) == type(of: request))
        return copy
    }

    @Test(arguments: StoreKind.allCases)
    func `a copy of an update has its entity, stores, predicate, values, limit and result type`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        try stack.storeNumberedVenues(4) { number, _, context in Bar(context: context).price = Int16(number) }
        let request = NSBatchUpdateRequest(entityName: "Venue")
        request.predicate = NSPredicate(format: "price >= 2")
        request.includesSubentities = false
        request.propertiesToUpdate = ["name": "new"]
        request.evaluationTimeLimit = 7
        request.resultType = .updatedObjectsCountResultType
        request.affectedStores = stack.coordinator.persistentStores
        let copy = try copied(request)
        expect(copy.entityName == "Venue" && copy.predicate == request.predicate && !copy.includesSubentities)
        expect(copy.evaluationTimeLimit == 7 && copy.resultType == .updatedObjectsCountResultType)
        expectEqual(copy.propertiesToUpdate?["name"] as? String, "new")
        expectEqual(copy.affectedStores, request.affectedStores)
        copy.propertiesToUpdate = ["name": "newer"]
        copy.affectedStores = nil
        expectEqual(request.propertiesToUpdate?["name"] as? String, "new")
        try expectEqual(stack.execute(copy).value as? Int, 2)
        try expectEqual(stack.all(Venue.self) { $0.name ?? "" }, ["", "", "", "", "newer", "newer", "v0", "v1"])
        let other = NSBatchUpdateRequest(entity: try stack.coordinator.managedObjectModel.entity("Bar"))
        expectEqual(try copied(other).entity.name, "Bar")
    }

    @Test(arguments: StoreKind.allCases)
    func `a copy of an insert has its entity, stores, rows or handler, and result type`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        var numbers = Array(0..<6)
        let requests = [
            NSBatchInsertRequest(entityName: "Venue", objects: [["name": "a"], ["name": "b"]]),
            NSBatchInsertRequest(entityName: "Venue") { (row: NSMutableDictionary) in
                guard let number = numbers.popLast(), number > 2 else { return true }
                row["name"] = "d\(number)"
                return false
            },
            NSBatchInsertRequest(entity: try stack.coordinator.managedObjectModel.entity("Venue")) {
                (object: NSManagedObject) in
                guard let number = numbers.popLast() else { return true }
                object.setValue("o\(number)", forKey: "name")
                return false
            },
        ]
        for (request, count) in zip(requests, [2, 3, 2]) {
            request.resultType = .count
            request.affectedStores = stack.coordinator.persistentStores
            let copy = try copied(request)
            expect(copy.entityName == "Venue" && copy.resultType == .count)
            expectEqual(copy.affectedStores, request.affectedStores)
            expectEqual(copy.objectsToInsert?.count, request.objectsToInsert?.count)
            expectEqual(copy.description, request.description)
            try expectEqual(stack.execute(copy).value as? Int, count)
            copy.resultType = .objectIDs
            expectEqual(request.resultType, .count)
        }
        try expectEqual(stack.all(Venue.self) { $0.name ?? "" }, ["a", "b", "d3", "d4", "d5", "o0", "o1"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a copy of a deletion has its rows, stores and result type, and refuses what it refuses`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeNumberedVenues(5)
        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
        fetch.predicate = NSPredicate(format: "price > 2")
        for (request, count) in [
            (NSBatchDeleteRequest(fetchRequest: fetch), 2), (NSBatchDeleteRequest(objectIDs: [ids[0]]), 1),
            (NSBatchDeleteRequest(objectIDs: []), 0),
        ] {
            request.resultType = .resultTypeCount
            request.affectedStores = stack.coordinator.persistentStores
            let copy = try copied(request)
            expectEqual(copy.fetchRequest.predicate, request.fetchRequest.predicate)
            expect(copy.resultType == .resultTypeCount && copy.affectedStores == request.affectedStores)
            try expectEqual(stack.execute(copy).value as? Int, count)
            copy.resultType = .resultTypeObjectIDs
            expectEqual(request.resultType, .resultTypeCount)
        }
        try expectEqual(stack.all(Venue.self) { $0.name ?? "" }, ["v1", "v2"])
        let city = try stack.storeCity("Faro")
        let mixed = NSBatchDeleteRequest(objectIDs: [ids[1], city])
        for request in [mixed, try copied(mixed)] {
            let error = expectThrows(CocoaError.self) { try stack.execute(request) }
            expect(error?.localizedDescription.contains("several hierarchies") == true)
        }
        try expectEqual(stack.problems(), [])
    }
}
