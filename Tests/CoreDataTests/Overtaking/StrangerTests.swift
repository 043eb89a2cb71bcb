import CoreData
import Expectations
import TestSupport
import Testing

@Suite("IDs of another coordinator")
struct StrangerTests {
    private func message(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    // MARK: - Whose store is open here too

    @Test func `a permanent one stands for the same row here`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("Porto")
        let second = try stack.secondCoordinator()
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = second
        try context.performAndWait { () throws in
            expectEqual(context.registeredObject(for: id), nil)
            let city: City = try typed(context.existingObject(with: id))
            expect(city.name == "Porto" && city.objectID !== id)
            expectEqual(city.objectID.uriRepresentation(), id.uriRepresentation())
            expect(context.object(with: id) === city && context.registeredObject(for: id) === city)
        }
    }

    @Test func `predicates take it for the same row too`() throws {
        let stack = try Stack(.database)
        let (id, other) = (try stack.storeCity("Porto"), try stack.storeCity("Faro"))
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = try stack.secondCoordinator()
        try context.performAndWait { () throws in
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "SELF == %@", id)
            try expectEqual(context.fetch(request).map(\.name), ["Porto"])
            request.predicate = NSPredicate(format: "SELF IN %@", [id, other])
            try expectEqual(context.count(for: request), 2)
            // Evaluated in memory, because of the change.
            try context.get(other, City.self).population = 7
            try expectEqual(context.count(for: request), 2)
            try context.execute(NSBatchDeleteRequest(objectIDs: [id]))
        }
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: [false, true])
    func `a temporary one becomes the row that it is saved as elsewhere`(inTree: Bool) throws {
        let stack = try Stack(.database)
        let elsewhere = stack.context("elsewhere")
        let root = NSManagedObjectContext(.privateQueue)
        root.persistentStoreCoordinator = try stack.secondCoordinator(model: stack.coordinator.managedObjectModel)
        let context = inTree ? root.child() : root
        let new = elsewhere.performAndWait {
            let city = City(context: elsewhere)
            city.name = "Porto"
            return UncheckedSendable(city)
        }
        let id = new.value.objectID
        let stranger = context.performAndWait { UncheckedSendable(context.object(with: id)) }
        try elsewhere.saveAndWait()
        try context.performAndWait { () throws in
            try expectEqual(context.all(City.self).map(\.name), ["Porto"])
            expect(context.object(with: id) === stranger.value)
            expectEqual(stranger.value.value(forKey: "name") as? String, "Porto")
        }
    }

    // MARK: - Whose store is not

    @Test func `a permanent one makes a throwing call throw`() throws {
        let (own, other) = (try Stack(.memory), try Stack(.memory))
        let (id, same) = (try own.storeCity("here"), try other.storeCity("elsewhere"))
        expectEqual(id.uriRepresentation().lastPathComponent, same.uriRepresentation().lastPathComponent)
        let context = own.context()
        try context.performAndWait { () throws in
            let city = try context.get(id, City.self)
            expect(context.registeredObject(for: id) === city)
            expectEqual(context.registeredObject(for: same), nil)
            let error = expectThrows(CocoaError.self) { try context.existingObject(with: same) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
            expectEqual(error?.localizedDescription.contains("belongs to another coordinator"), true)
        }
    }

    @Test func `a permanent one makes another call stop the program`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let (own, other) = (try Stack(.memory), try Stack(.memory))
            let id = try other.storeCity("elsewhere")
            let context = own.context("here")
            context.performAndWait { print(context.object(with: id)) }
        }
        expect(message(result).contains("belongs to another coordinator"), "\(message(result))")
    }

    @Test(arguments: [false, true])
    func `a temporary one never turns into another object, nor keeps others from being fetched`(inTree: Bool) throws {
        let (own, other) = (try Stack(.memory), try Stack(.memory))
        _ = try own.storeCity("of this coordinator")
        let (root, elsewhere) = (own.context("here"), other.context())
        let context = inTree ? root.child() : root
        let new = elsewhere.performAndWait { UncheckedSendable(City(context: elsewhere)) }
        let id = new.value.objectID
        let stranger = context.performAndWait { UncheckedSendable(context.object(with: id)) }
        try elsewhere.performAndWait { () throws in
            new.value.name = "of another coordinator"
            try elsewhere.save()
        }
        root.insertCity("new")
        try root.saveAndWait()
        try context.performAndWait { () throws in
            try expectEqual(context.all(City.self).map(\.name).sorted(), ["new", "of this coordinator"])
            expectThrows(CocoaError.self) { try context.existingObject(with: id) }
            expectEqual(stranger.value.value(forKey: "name") as? String ?? "", "")
        }
    }
}
