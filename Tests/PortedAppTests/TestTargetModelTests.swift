import CoreData
import Expectations
import Foundation
import Testing

/// A class that is written by hand, as an app may do in its tests.
final class Borrower: NSManagedObject {
    @NSManaged var name: String
    @NSManaged var loans: Set<Loan>
}

/// A test target is built like an app: it has its model, generated classes and accessors.
@Suite("A model in a test target")
struct TestTargetModelTests {
    @Test func `a container finds the model of a test target by its name`() {
        let names = NSPersistentContainer(name: "Loans").managedObjectModel.entities.compactMap(\.name)

        expectEqual(names.sorted(), ["Borrower", "Loan"])
    }

    @Test func `the bundle of a test target has the model under both of its names`() throws {
        for name in ["momd", "xcdatamodeld"] {
            let url = try require(Bundle.module.url(forResource: "Loans", withExtension: name))
            expectEqual(NSManagedObjectModel(contentsOf: url)?.entities.count, 2)
        }
    }

    @Test func `the list of versions in the bundle has the hashes of the model`() throws {
        let url = try require(Bundle.module.url(forResource: "Loans", withExtension: "momd"))
        let data = try Data(contentsOf: url.appendingPathComponent("VersionInfo.plist"))
        let list = try require(PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
        let model = try require(NSManagedObjectModel(contentsOf: url))
        let current = try require(list["NSManagedObjectModel_CurrentVersionName"] as? String)

        let hashes = list["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]]
        expectEqual(hashes?[current], model.entityVersionHashesByName)
        let checksums = list["NSManagedObjectModel_VersionChecksums"] as? [String: String]
        expectEqual(checksums?[current], model.versionChecksum)
    }

    @Test func `classes of a test target, generated and by hand, are found and work`() throws {
        let url = try require(Bundle.module.url(forResource: "Loans", withExtension: "momd"))
        let coordinator = NSPersistentStoreCoordinator(
            managedObjectModel: try require(NSManagedObjectModel(contentsOf: url))
        )
        try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let loan = Loan(context: context)
            expectEqual(loan.days, 14)
            let borrower = Borrower(context: context)
            borrower.name = "Ada"
            borrower.loans.insert(loan)
            try context.save()
            context.reset()

            let found = try require(try context.fetch(NSFetchRequest<Borrower>(entityName: "Borrower")).first)
            expect(found.name == "Ada" && found.loans.first?.borrower === found)
        }
    }
}
