import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// Xcode lets two fetch indexes of an entity have one name.
@Suite("Two fetch indexes of one name")
struct IndexNameTests {
    /// A version with an index named `i` over each of the attributes.
    private static func version(_ number: Int, indexing attributes: [String]) -> String {
        let indexes = attributes.map { name in
            """
            <fetchIndex name="i">
                <fetchIndexElement property="\(name)" type="Binary" order="ascending"/>
                <fetchIndexElement property="d" type="Binary" order="descending"/>
            </fetchIndex>
            """
        }
        return """
            <entity name="Item" versionHashModifier="\(number)">
                <attribute name="a" optional="YES" attributeType="Integer 32"/>
                <attribute name="b" optional="YES" attributeType="Integer 32"/>
                <attribute name="c" optional="YES" attributeType="Integer 32"/>
                <attribute name="d" optional="YES" attributeType="Integer 32"/>
                \(indexes.joined(separator: "\n"))
            </entity>
            """
    }

    @Test func `a store has both, and a migration leaves those of the new model`() throws {
        let store = try AgingStore(.migrating)
        let versions = [
            Self.version(1, indexing: ["a", "b"]), Self.version(2, indexing: ["b", "c"]),
            Self.version(3, indexing: ["c"]), Self.version(4, indexing: ["a", "b", "c"]),
        ]
        try store.use(versions[0]) { $0.insert("Item", ["a": 1, "b": 2]) }
        for version in versions {
            try store.use(version) { context in
                let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
                request.predicate = NSPredicate(format: "a == 1 AND b == 2")
                try expectEqual(context.count(for: request), 1)
            }
            try expectEqual(store.problems(version), [])
        }
    }

    @Test func `a store in memory opens with them`() throws {
        let model = try NSManagedObjectModel.parsing(Self.version(1, indexing: ["a", "b"]))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        expectEqual(coordinator.persistentStores.count, 1)
    }

    @Test func `models are equal if both indexes are`() throws {
        let model = try NSManagedObjectModel.parsing(Self.version(1, indexing: ["a", "b"]))
        let same = try NSManagedObjectModel.parsing(Self.version(1, indexing: ["a", "b"]))
        let other = try NSManagedObjectModel.parsing(Self.version(1, indexing: ["a", "c"]))
        let fewer = try NSManagedObjectModel.parsing(Self.version(1, indexing: ["b"]))

        expectEqual(model, same)
        expect(model != other && model != fewer)
        try expectEqual(model.entity("Item").indexes.map(\.name), ["i", "i"])
    }
}
