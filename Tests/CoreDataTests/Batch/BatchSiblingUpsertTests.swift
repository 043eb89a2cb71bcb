import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// The root's constraint applies to all sub-entities, which have different properties.
@Suite("Batch inserts whose unique values a row of another entity has")
struct BatchSiblingUpsertTests {
    /// Parties are unique by their e-mail address.
    ///
    /// Customers, suppliers and wholesalers have further properties.
    private func stack(_ kind: StoreKind) throws -> Stack {
        let party = GuideModel.entity("Party", NSManagedObject.self)
        let customer = GuideModel.entity("Customer", NSManagedObject.self)
        let supplier = GuideModel.entity("Supplier", NSManagedObject.self)
        let wholesaler = GuideModel.entity("Wholesaler", NSManagedObject.self)
        party.properties = [GuideModel.attribute("email", .string), GuideModel.attribute("name", .string)]
        party.uniquenessConstraints = [["email"]]
        customer.properties = [
            GuideModel.attribute("discount", .integer16), GuideModel.attribute("code", .string),
            GuideModel.attribute("level", .integer16, default: 1),
        ]
        supplier.properties = [GuideModel.attribute("code", .integer64), GuideModel.attribute("region", .integer16)]
        wholesaler.properties = [GuideModel.attribute("minimum", .integer16)]
        party.subentities = [customer, supplier]
        supplier.subentities = [wholesaler]
        let model = NSManagedObjectModel()
        model.entities = [party, customer, supplier, wholesaler]
        return try Stack(kind, model: model)
    }

    private func insert(
        _ entity: String,
        _ rows: [[String: Any]],
        _ policy: NSMergePolicy = .error,
        in stack: Stack
    ) throws -> Int? {
        let request = NSBatchInsertRequest(entityName: entity, objects: rows)
        request.resultType = .count
        return try stack.execute(request, policy).value as? Int
    }

    private func parties(_ stack: Stack) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Party")).map { party in
                let values = party.entity.attributesByName.keys.sorted().map {
                    party.value(forKey: $0).map { "\($0)" } ?? "nil"
                }
                return "\(party.entity.name ?? "") \(values.joined(separator: " "))"
            }.sorted()
        }
    }

    @Test(arguments: StoreKind.allCases, ["object-trump", "overwrite"])
    func `a value that the stored row has no place for is a clash, not lost`(_ kind: StoreKind, _ policy: String) throws
    {
        let stack = try stack(kind)
        _ = try insert("Supplier", [["email": "a", "name": "stored", "code": 7]], in: stack)
        let context = stack.context()
        context.mergePolicy = policy == "overwrite" ? NSMergePolicy.overwrite : NSMergePolicy.mergeByPropertyObjectTrump
        try context.performAndWait {
            let rows: [[String: Any]] = [["email": "b"], ["email": "a", "name": "new", "discount": 10]]
            let error = expectThrows(CocoaError.self) {
                try context.execute(NSBatchInsertRequest(entityName: "Customer", objects: rows))
            }
            expectEqual(error?.code, .managedObjectConstraintMerge)
            let text = error?.localizedDescription ?? ""
            expect(text.contains("row 1 (email) with the stored p1, a Supplier, which has no discount"))
            expect(!text.contains("ObjectTrump") && text.contains("mergeByPropertyStoreTrump"))
            let conflicts = try require(
                error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSConstraintConflict]
            )
            expectEqual(conflicts.map { $0.databaseObject?.entity.name }, ["Supplier"])
        }
        try expectEqual(parties(stack), ["Supplier 7 a stored nil"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what both entities have is taken over`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        _ = try insert("Supplier", [["email": "a", "name": "stored", "code": 7]], in: stack)
        let rows: [[String: Any]] = [["email": "a", "name": "new", "discount": NSNull()]]
        try expectEqual(insert("Customer", rows, .mergeByPropertyObjectTrump, in: stack), 1)
        try expectEqual(parties(stack), ["Supplier 7 a new nil"])
        // The default value of a customer's level would be lost.
        expectThrows(CocoaError.self) { try insert("Customer", rows, .overwrite, in: stack) }
        try expectEqual(insert("Customer", rows, .mergeByPropertyStoreTrump, in: stack), 0)
        try expectEqual(parties(stack), ["Supplier 7 a new nil"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `attributes of one name that siblings declare each for itself are two`(_ kind: StoreKind) throws {
        let stack = try stack(kind)
        _ = try insert("Supplier", [["email": "a", "code": 7]], in: stack)
        let rows: [[String: Any]] = [["email": "a", "code": "seven"]]
        expectThrows(CocoaError.self) { try insert("Customer", rows, .mergeByPropertyObjectTrump, in: stack) }
        try expectEqual(parties(stack), ["Supplier 7 a nil nil"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a row of a sub-entity takes over all that its super-entity has, not the other way round`(_ kind: StoreKind)
        throws
    {
        let stack = try stack(kind)
        _ = try insert("Wholesaler", [["email": "w", "minimum": 5, "region": 1]], in: stack)
        let rows: [[String: Any]] = [["email": "w", "region": 2, "code": 3]]
        try expectEqual(insert("Supplier", rows, .overwrite, in: stack), 1)
        try expectEqual(parties(stack), ["Wholesaler 3 w 5 nil 2"])
        _ = try insert("Party", [["email": "p"]], in: stack)
        expectThrows(CocoaError.self) {
            try insert("Supplier", [["email": "p", "region": 2]], .mergeByPropertyObjectTrump, in: stack)
        }
        try expectEqual(parties(stack), ["Party p nil", "Wholesaler 3 w 5 nil 2"])
    }
}
