import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Asking a coordinator")
struct ExecutingTests {
    @Test(arguments: StoreKind.allCases)
    func `a fetch by the coordinator gives what is stored, whatever is pending`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        try context.performAndWait {
            try context.get(id, City.self).name = "changed"
            City(context: context).name = "new"
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Porto'")
            let found = try require(try stack.coordinator.execute(request, with: context) as? [City])
            expectEqual(found.map(\.objectID), [id])
            expectEqual(found.first?.name, "changed")
            expect(request.includesPendingChanges)
            request.resultType = .managedObjectIDResultType
            try expectEqual(stack.coordinator.execute(request, with: context) as? [NSManagedObjectID], [id])
            request.resultType = .countResultType
            try expectEqual(stack.coordinator.execute(request, with: context) as? [NSNumber], [1])
            request.affectedStores = []
            try expectEqual(stack.coordinator.execute(request, with: context) as? [NSNumber], [0])
        }
    }

    @Test
    func `saves, and contexts of other coordinators, are refused with advice`() throws {
        let (stack, other) = (try Stack(.memory), try Stack(.memory))
        let context = stack.context()
        context.performAndWait {
            let save = NSSaveChangesRequest(inserted: [], updated: [], deleted: [], locked: nil)
            let refused = expectThrows(CocoaError.self) { try stack.coordinator.execute(save, with: context) }
            expectEqual(refused?.code, .persistentStoreOperation)
            expectEqual(refused?.localizedDescription.contains("save()"), true)
            let request = NSFetchRequest<City>(entityName: "City")
            let strange = expectThrows(CocoaError.self) { try other.coordinator.execute(request, with: context) }
            expectEqual(strange?.code, .persistentStoreOperation)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an ID is found by the bytes of its URI`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let text = id.uriRepresentation().absoluteString
        let bytes = text.utf8.map { CChar(bitPattern: $0) } + [CChar(bitPattern: UInt8(ascii: "7"))]
        expect(stack.coordinator.managedObjectID(fromUTF8String: bytes, length: text.utf8.count) === id)
        expectEqual(stack.coordinator.managedObjectID(fromUTF8String: bytes, length: 0), nil)
        expectEqual(stack.coordinator.managedObjectID(fromUTF8String: bytes, length: 12), nil)
        let broken = [CChar(bitPattern: 0xFF), 0x41]
        expectEqual(stack.coordinator.managedObjectID(fromUTF8String: broken, length: 2), nil)
    }
}
