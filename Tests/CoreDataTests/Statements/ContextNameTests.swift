import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Names and numbers that programs for Apple's framework rely on")
struct ContextNameTests {
    @Test func `the notifications of contexts have a second name`() {
        typealias Context = NSManagedObjectContext
        expectEqual(Context.willSaveObjectsNotification, .NSManagedObjectContextWillSave)
        expectEqual(Context.didSaveObjectsNotification, .NSManagedObjectContextDidSave)
        expectEqual(Context.didSaveObjectIDsNotification, .NSManagedObjectContextDidSaveObjectIDs)
        expectEqual(Context.didChangeObjectsNotification, .NSManagedObjectContextObjectsDidChange)
        expectEqual(Context.didMergeChangesObjectIDsNotification, .NSManagedObjectContextDidMergeChangesObjectIDs)
    }

    @Test func `the keys of user infos can be spelled in two ways`() {
        let keys: [(NSManagedObjectContext.NotificationKey, String)] = [
            (.insertedObjects, NSInsertedObjectsKey), (.updatedObjects, NSUpdatedObjectsKey),
            (.deletedObjects, NSDeletedObjectsKey), (.refreshedObjects, NSRefreshedObjectsKey),
            (.invalidatedObjects, NSInvalidatedObjectsKey), (.invalidatedAllObjects, NSInvalidatedAllObjectsKey),
            (.insertedObjectIDs, NSInsertedObjectIDsKey), (.updatedObjectIDs, NSUpdatedObjectIDsKey),
            (.deletedObjectIDs, NSDeletedObjectIDsKey), (.refreshedObjectIDs, NSRefreshedObjectIDsKey),
            (.invalidatedObjectIDs, NSInvalidatedObjectIDsKey),
        ]
        for (key, text) in keys {
            expectEqual(key.rawValue, text)
            expectEqual(NSManagedObjectContext.NotificationKey(rawValue: text), key)
        }
    }

    @Test func `types of contexts and of policies have Apple's numbers`() {
        expectEqual(NSManagedObjectContext.ConcurrencyType.privateQueue.rawValue.rawValue, 1)
        expectEqual(NSManagedObjectContext.ConcurrencyType(rawValue: .mainQueueConcurrencyType), .mainQueue)
        expectEqual(NSManagedObjectContextConcurrencyType(rawValue: 2), .mainQueueConcurrencyType)
        let schedules: Set<NSManagedObjectContext.ScheduledTaskType> = [.immediate, .enqueued, .immediate]
        expectEqual(schedules.count, 2)
        let policies: [(Any, NSMergePolicyType, UInt)] = [
            (NSErrorMergePolicy, .errorMergePolicyType, 0),
            (NSMergeByPropertyStoreTrumpMergePolicy, .mergeByPropertyStoreTrumpMergePolicyType, 1),
            (NSMergeByPropertyObjectTrumpMergePolicy, .mergeByPropertyObjectTrumpMergePolicyType, 2),
            (NSOverwriteMergePolicy, .overwriteMergePolicyType, 3),
            (NSRollbackMergePolicy, .rollbackMergePolicyType, 4),
        ]
        for (policy, type, number) in policies {
            expectEqual((policy as? NSMergePolicy)?.mergeType, type)
            expect(type.rawValue == number && NSMergePolicyType(rawValue: number) == type)
            expectEqual(NSMergePolicy(merge: type).mergeType, type)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a merge names as refreshed or invalidated is read anew`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        for key: NSManagedObjectContext.NotificationKey in [
            .refreshedObjects, .refreshedObjectIDs, .invalidatedObjects, .invalidatedObjectIDs,
        ] {
            let id = try stack.storeCity("old")
            try context.performAndWait {
                let city = try context.get(id, City.self)
                expectEqual(city.name, "old")
                try stack.change(id, City.self) { city, _ in city.name = "new" }
                NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [key.rawValue: [id]], into: [context])
                expectEqual(city.name, "new")
            }
        }
    }
}
