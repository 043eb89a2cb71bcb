import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataSQLiteStore

@Suite("Batch inserts that clash, with external data")
struct BatchUpsertFilesTests {
    private func data(_ byte: UInt8) -> Data { Data(repeating: byte, count: 200_000) }

    /// A store with one user, who has a photo in a file.
    private func stackWithPhoto() throws -> Stack {
        let model = GuideModel.make()
        let photo = NSAttributeDescription()
        (photo.name, photo.attributeType, photo.isOptional) = ("photo", .binaryDataAttributeType, true)
        photo.allowsExternalBinaryDataStorage = true
        try require(model.entitiesByName["User"]).properties.append(photo)
        let stack = try Stack(.sqlite, model: model)
        _ = try stack.store(User.self) { user, _ in
            user.email = "a"
            user.setValue(data(1), forKey: "photo")
        }
        return stack
    }

    private func files(_ stack: Stack) throws -> [String] {
        let store = try require(stack.coordinator.persistentStores.first as? SQLiteStore)
        return try store.openFile().external.names().sorted()
    }

    private func photos(_ stack: Stack) throws -> [String] {
        try stack.all(User.self) { user in
            let photo = user.value(forKey: "photo") as? Data
            return "\(user.email) \(photo?.first ?? 0) \(photo?.count ?? 0)"
        }
    }

    /// The stored row clashes with the first, and the second with the third.
    private func insertion() -> NSBatchInsertRequest {
        let rows: [[String: Any]] = [
            ["email": "a", "photo": data(2)], ["email": "b", "photo": data(3)], ["email": "b", "photo": data(4)],
        ]
        return NSBatchInsertRequest(entityName: "User", objects: rows)
    }

    @Test func `rows that are left out leave no files`() throws {
        let stack = try stackWithPhoto()
        let before = try files(stack)
        try stack.execute(insertion(), .rollback)
        try expectEqual(photos(stack), ["a 1 200000", "b 3 200000"])
        try expectEqual(files(stack).count, 2)
        try expect(files(stack).contains(before[0]))
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: [NSMergePolicy.mergeByPropertyObjectTrump, .overwrite])
    func `rows that take over values have their files, and there are no others`(_ policy: NSMergePolicy) throws {
        let stack = try stackWithPhoto()
        try stack.execute(insertion(), policy)
        try expectEqual(photos(stack), ["a 2 200000", "b 4 200000"])
        try expectEqual(files(stack).count, 2)
        try expectEqual(stack.problems(), [])
    }

    @Test func `a batch that is refused leaves no files`() throws {
        let stack = try stackWithPhoto()
        let before = try files(stack)
        expectThrows(CocoaError.self) { try stack.execute(insertion(), .error) }
        try expectEqual(files(stack), before)
        try expectEqual(photos(stack), ["a 1 200000"])
    }

    @Test func `rows that swap unique values in a save leave no files but their own`() throws {
        let stack = try stackWithPhoto()
        _ = try stack.store(User.self) { user, _ in
            user.email = "b"
            user.setValue(data(2), forKey: "photo")
        }
        try stack.inContext { context throws in
            let users = try context.all(User.self, sortedBy: "email")
            for (user, email) in zip(users, ["b", "a"]) { user.email = email }
            users[0].setValue(data(3), forKey: "photo")
            users[1].setValue(data(4), forKey: "photo")
            try context.save()
        }
        try expectEqual(photos(stack), ["a 4 200000", "b 3 200000"])
        try expectEqual(files(stack).count, 2)
        try expectEqual(stack.problems(), [])
    }
}
