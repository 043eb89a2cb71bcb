import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Batch inserts and uniqueness constraints")
struct BatchUpsertTests {
    private func stackWithUser(_ kind: StoreKind) throws -> (Stack, NSManagedObjectID) {
        let stack = try Stack(kind)
        let id = try stack.store(User.self) { user, _ in
            user.email = "a"
            user.name = "stored"
            user.age = 40
        }
        return (stack, id)
    }

    private let rows: [[String: Any]] = [
        ["email": "a", "name": "new"], ["email": "b", "name": "first", "age": 1], ["email": "b", "name": "second"],
    ]

    private func users(_ stack: Stack) throws -> [String] {
        try stack.all(User.self) { "\($0.email) \($0.name ?? "nil") \($0.age)" }
    }

    @Test(arguments: StoreKind.allCases)
    func `under the error policy nothing is inserted, and the error names the rows that clash (CS-177)`(
        _ kind: StoreKind
    )
        throws
    {
        let (stack, id) = try stackWithUser(kind)
        let context = stack.context()
        try context.performAndWait {
            let error = expectThrows(CocoaError.self) {
                try context.execute(NSBatchInsertRequest(entityName: "User", objects: rows))
            }
            expectEqual(error?.code, .managedObjectConstraintMerge)
            let conflicts = try require(
                error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSConstraintConflict]
            )
            expectEqual(conflicts.map(\.constraint), [["email"], ["email"]])
            expectEqual(conflicts.map { $0.constraintValues["email"] as? String }, ["a", "b"])
            expectEqual(conflicts.map(\.databaseObject?.objectID), [id, nil])
            expectEqual(conflicts[0].databaseSnapshot?["name"] as? String, "stored")
            let text = error?.localizedDescription ?? ""
            expect(text.contains("row 0 (email) with the stored p1") && text.contains("row 2 (email)"))
        }
        try expectEqual(users(stack), ["a stored 40"])
        // Later objects get the unused keys.
        let next = try stack.store(User.self) { user, _ in user.email = "next" }
        expectEqual(next.key, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `the error has the positions of all rows that clash, up to a hundred (CS-177)`(_ kind: StoreKind) throws {
        let (stack, _) = try stackWithUser(kind)
        for (count, expected) in [(20, 10), (400, 100)] {
            // Every second row has the unique value of the stored row.
            let objects = (0..<count).map { ["email": $0 % 2 == 0 ? "new \($0)" : "a"] }
            let error = expectThrows(CocoaError.self) {
                try stack.execute(NSBatchInsertRequest(entityName: "User", objects: objects))
            }
            let positions = error?.userInfo[NSBatchInsertConflictingRowsErrorKey] as? [Int]
            expectEqual(positions, (0..<expected).map { $0 * 2 + 1 })
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSConstraintConflict]
            expectEqual(conflicts?.count, expected)
        }
        try expectEqual(users(stack), ["a stored 40"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a row that takes over values of a later one of its batch has the version of a new one`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let request = NSBatchInsertRequest(entityName: "User", objects: rows)
        request.resultType = .objectIDs
        let ids = try require(try stack.execute(request, .mergeByPropertyObjectTrump).value as? [NSManagedObjectID])
        try expectEqual(users(stack), ["a new 0", "b second 1"])
        try expectEqual(ids.map { try stack.version(of: $0) }, [1, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `object-trump changes what was given, and the result has both (CS-177)`(_ kind: StoreKind) throws {
        let (stack, id) = try stackWithUser(kind)
        let version = try stack.version(of: id)
        let request = NSBatchInsertRequest(entityName: "User", objects: rows)
        request.resultType = .objectIDs
        let ids = try require(
            try stack.execute(request, .mergeByPropertyObjectTrump).value as? [NSManagedObjectID]
        )
        try expectEqual(users(stack), ["a new 40", "b second 1"])
        expect(ids.count == 2 && ids.last == id)
        try expectEqual(stack.version(of: id), version + 1)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `an object handler changes what is not a default (CS-177)`(_ kind: StoreKind) throws {
        let (stack, _) = try stackWithUser(kind)
        var isDone = false
        let request = NSBatchInsertRequest(entityName: "User") { (object: NSManagedObject) -> Bool in
            guard let user = object as? User, !isDone else { return true }
            user.email = "a"
            user.name = "new"
            isDone = true
            return false
        }
        request.resultType = .count
        try expectEqual(stack.execute(request, .mergeByPropertyObjectTrump).value as? Int, 1)
        try expectEqual(users(stack), ["a new 40"])
    }

    @Test(arguments: StoreKind.allCases)
    func `overwrite replaces the stored row, store-trump and rollback leave it (CS-177)`(_ kind: StoreKind) throws {
        let (stack, _) = try stackWithUser(kind)
        let request = NSBatchInsertRequest(entityName: "User", objects: rows)
        request.resultType = .count
        try expectEqual(stack.execute(request, .mergeByPropertyStoreTrump).value as? Int, 1)
        try expectEqual(users(stack), ["a stored 40", "b first 1"])
        try expectEqual(stack.execute(request, .rollback).value as? Int, 0)
        try expectEqual(users(stack), ["a stored 40", "b first 1"])
        try expectEqual(stack.execute(request, .overwrite).value as? Int, 2)
        try expectEqual(users(stack), ["a new 0", "b second 0"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a policy of one's own counts by its type, and is not asked (CS-177)`(_ kind: StoreKind) throws {
        final class Asked: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
                Issue.record("A batch has no objects to ask about.")
                try super.resolve(constraintConflicts: list)
            }
        }
        let (stack, _) = try stackWithUser(kind)
        let request = NSBatchInsertRequest(entityName: "User", objects: rows)
        try stack.execute(request, Asked(merge: .overwriteMergePolicyType))
        try expectEqual(users(stack), ["a new 0", "b second 0"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed row is merged as changed, and conflicts with those who had the old one`(_ kind: StoreKind) throws {
        let (stack, id) = try stackWithUser(kind)
        let (following, still) = (stack.context("following"), stack.context("still"))
        following.automaticallyMergesChangesFromParent = true
        let users = try [following, still].map { context in
            try context.performAndWait {
                let user = try context.get(id, User.self)
                expectEqual(user.name, "stored")
                return UncheckedSendable(user)
            }
        }
        let request = NSBatchInsertRequest(entityName: "User", objects: rows)
        try stack.execute(request, .mergeByPropertyObjectTrump)
        following.performAndWait { expectEqual(users[0].value.name, "new") }
        try still.performAndWait {
            expectEqual(users[1].value.name, "stored")
            users[1].value.age = 41
            let conflicts = try still.versionConflictsOfSave()
            expectEqual(conflicts.count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `values that two stored rows have between them are never merged`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Thing", NSManagedObject.self)
        entity.properties = [GuideModel.attribute("one", .string), GuideModel.attribute("two", .string)]
        entity.uniquenessConstraints = [["one"], ["two"]]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.execute(
            NSBatchInsertRequest(entityName: "Thing", objects: [["one": "a", "two": "a"], ["one": "b", "two": "b"]])
        )
        let request = NSBatchInsertRequest(entityName: "Thing", objects: [["one": "a", "two": "b"]])
        let error = expectThrows(CocoaError.self) { try stack.execute(request, .mergeByPropertyObjectTrump) }
        expectEqual(error?.code, .managedObjectConstraintMerge)
        try expectEqual(stack.count("Thing"), 2)
    }

    /// A row gives its code, and keeps the city that it has.
    ///
    /// The other stored row has the name and this city.
    @Test(arguments: StoreKind.allCases, [1, 2])
    func `values that a row gets in part by an upsert are not merged if another stored row has them`(
        _ kind: StoreKind,
        _ rowCount: Int
    ) throws {
        let entity = GuideModel.entity("Thing", NSManagedObject.self)
        entity.properties = [
            GuideModel.attribute("code", .integer64), GuideModel.attribute("name", .string),
            GuideModel.attribute("city", .string),
        ]
        entity.uniquenessConstraints = [["code"], ["name", "city"]]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        let stored: [[String: Any]] = [
            ["code": 1, "name": "A", "city": "X"], ["code": 2, "name": "B", "city": "X"],
        ]
        try stack.execute(NSBatchInsertRequest(entityName: "Thing", objects: stored))
        func values() throws -> [String] {
            let context = stack.context("reading")
            return try context.performAndWait {
                try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Thing")).map { thing in
                    ["code", "name", "city"].map { "\(thing.value(forKey: $0) ?? "-")" }.joined(separator: " ")
                }.sorted()
            }
        }
        try expectEqual(values(), ["1 A X", "2 B X"])
        let given: [[String: Any]] = [["code": 1, "name": "B"], ["code": 2, "name": "C"]]
        let request = NSBatchInsertRequest(entityName: "Thing", objects: Array(given[..<rowCount]))
        let error = expectThrows(CocoaError.self) { try stack.execute(request, .mergeByPropertyObjectTrump) }
        expectEqual(error?.code, .managedObjectConstraintMerge)
        expect(error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] != nil)
        try expectEqual(values(), ["1 A X", "2 B X"])
        // No other row has these values.
        let free = NSBatchInsertRequest(entityName: "Thing", objects: [["code": 1, "name": "D"]])
        try stack.execute(free, .mergeByPropertyObjectTrump)
        try expectEqual(values(), ["1 D X", "2 B X"])
    }
}
