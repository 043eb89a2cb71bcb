import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// Controllers whose request has an empty array of sort descriptors.
@Suite("Results in the order of their IDs")
struct UnsortedResultsTests {
    private func controller(_ context: NSManagedObjectContext) -> NSFetchedResultsController<City> {
        let request = NSFetchRequest<City>(entityName: "City")
        request.sortDescriptors = []
        return NSFetchedResultsController(
            fetchRequest: request,
            managedObjectContext: context,
            sectionNameKeyPath: nil,
            cacheName: nil
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `an empty array orders by ID, unsaved objects last`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro", "Braga"])
        let context = stack.context()
        try context.performAndWait {
            let pending = City(context: context)
            pending.name = "Aveiro"
            let controller = controller(context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            let keys = (controller.fetchedObjects ?? []).map(\.key)
            expect(keys.count == 4 && keys.dropLast() == keys.dropLast().sorted()[...])
            expect(controller.fetchedObjects?.last === pending)
            // A later object takes its place in the order, and a deleted one leaves it.
            let later = City(context: context)
            later.name = "Lisboa"
            if let second = controller.fetchedObjects?[1] { context.delete(second) }
            context.processPendingChanges()
            expectEqual(controller.fetchedObjects?.suffix(2), [pending, later])
            recorder.expectCopy(of: controller)
            try context.save()
            recorder.expectCopy(of: controller)
            let id = try stack.storeCity("Évora")
            let other = stack.context()
            let notification = other.performAndWait { () -> [AnyHashable: Any] in [NSInsertedObjectIDsKey: [id]] }
            context.mergeChanges(
                fromContextDidSave: Notification(
                    name: .NSManagedObjectContextDidSave,
                    object: nil,
                    userInfo: notification
                )
            )
            recorder.expectCopy(of: controller)
            let shown = (controller.fetchedObjects ?? []).map(\.key)
            expect(shown == shown.sorted() && shown.count == 5)
        }
    }

    @Test func `without sort descriptors the results have no order, and the fetch throws`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            let controller = NSFetchedResultsController(
                fetchRequest: NSFetchRequest<City>(entityName: "City"),
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            let error = expectThrows(CocoaError.self) { try controller.performFetch() }
            expectEqual(error?.code.rawValue, 134070)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a refreshed object is reported as an update though no value differs`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto", "Faro"])
        let context = stack.context()
        try context.performAndWait {
            let controller = controller(context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            let city = try require(controller.fetchedObjects?.first)
            expect(!city.name.isEmpty)
            for merges in [true, false] {
                context.refresh(city, mergeChanges: merges)
                context.processPendingChanges()
                expectEqual(recorder.take().count, 1, "with mergeChanges: \(merges)")
            }
            expectEqual(recorder.events, 2)
        }
    }
}
