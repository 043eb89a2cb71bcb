import CoreData
import Expectations
import TestSupport
import Testing

@testable import DebianIndex

@Suite("Indexes of older versions")
struct IndexMigrationTests {
    @Test func `an index of version 1 gets names, domains and the parts of versions`() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("old.sqlite")
        let model = try IndexStages.versions()[0].resolve()
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        let old = NSManagedObjectContext(.privateQueue)
        old.persistentStoreCoordinator = coordinator
        try old.performAndWait {
            let package = NSEntityDescription.insertNewObject(forEntityName: "Package", into: old)
            let values: [String: Any] = [
                "name": "zsh", "version": "1:5.9-4+b2", "architecture": "amd64", "summary": "shell",
                "indexedAt": Date(),
                "importedAt": Date(),
            ]
            for (key, value) in values { package.setValue(value, forKey: key) }
            let maintainer = NSEntityDescription.insertNewObject(forEntityName: "Maintainer", into: old)
            maintainer.setValue("Zsh", forKey: "name")
            maintainer.setValue("zsh@example.org", forKey: "email")
            package.setValue(maintainer, forKey: "maintainer")
            try old.save()
        }
        try coordinator.remove(store)

        let container = try PackageStore.open(at: url)

        let context = container.newBackgroundContext()
        try context.performAndWait {
            let package = try require(context.fetch(NSFetchRequest<Package>(entityName: "Package")).first)
            expectEqual(package.synopsis, "shell")
            expectEqual(package.upstreamVersion, "5.9")
            expectEqual(package.revision, "4+b2")
            expectEqual(package.maintainer?.domain, "example.org")
        }
    }

    @Test(
        arguments: [("1.0", "1.0", nil), ("2:1.0-3", "1.0", "3"), ("1-2-3", "1-2", "3")] as [(String, String, String?)]
    )
    func `a version has its parts`(_ version: String, _ upstream: String, _ revision: String?) {
        let parts = Package.parts(ofVersion: version)
        expectEqual(parts.upstream, upstream)
        expectEqual(parts.revision, revision)
        expectEqual(Maintainer.domain(ofAddress: "a@b.org"), "b.org")
        expectEqual(Maintainer.domain(ofAddress: "nobody"), nil)
    }
}
