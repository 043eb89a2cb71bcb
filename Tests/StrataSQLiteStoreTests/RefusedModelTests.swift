import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Models that no SQLite store can have")
struct RefusedModelTests {
    enum Kind: CaseIterable {
        case keys, metadata, columns

        func model() -> NSManagedObjectModel {
            switch self {
            case .keys: StoreModels.model(StoreModels.entity("_PRIMARYKEY", [StoreModels.attribute("a", .string)]))
            case .metadata: StoreModels.model(StoreModels.entity("_metadata", [StoreModels.attribute("a", .string)]))
            case .columns:
                StoreModels.model(
                    StoreModels.entity("Wide", (0..<1998).map { StoreModels.attribute("a\($0)", .string) })
                )
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func `are refused by name, and leave no file behind`(_ kind: Kind) throws {
        let folder = try StoreFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: kind.model())

        let error = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(type: .sqlite, at: folder.file())
        }

        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        expectEqual(error?.localizedDescription.contains(kind == .columns ? "Wide" : "Z_"), true)
        try expect(FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
    }

    @Test func `as many columns as a table may have are taken`() throws {
        let entity = StoreModels.entity("Wide", (0..<1997).map { StoreModels.attribute("a\($0)", .string) })
        let harness = try StoreHarness(StoreModels.model(entity))
        try harness.insert(harness.row("Wide", -1, ["a1996": "last"]))
        try expectEqual(harness.sql("SELECT ZA1996 FROM ZWIDE"), ["last"])
    }
}
