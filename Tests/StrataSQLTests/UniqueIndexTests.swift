import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Uniqueness constraints whose indexes would have one name")
struct UniqueIndexTests {
    enum Clash: CaseIterable {
        /// {a, b} and {a_b}
        case joined
        /// {n} and {N}
        case letterCase
        /// {n}, and a fetch index that is named as the constraint's would be
        case fetchIndex

        var attributes: [String] {
            switch self {
            case .joined: ["a", "b", "a_b"]
            case .letterCase: ["n", "N"]
            case .fetchIndex: ["n", "m"]
            }
        }

        var constraints: [[String]] {
            switch self {
            case .joined: [["a", "b"], ["a_b"]]
            case .letterCase: [["n"], ["N"]]
            case .fetchIndex: [["n"]]
            }
        }

        func model() -> NSManagedObjectModel {
            let entity = StoreModels.entity("E", attributes.map { StoreModels.attribute($0, .string) })
            entity.uniquenessConstraints = constraints
            if self == .fetchIndex {
                let element = NSFetchIndexElementDescription(
                    property: entity.propertiesByName["m"]!,
                    collationType: .binary
                )
                entity.indexes = [NSFetchIndexDescription(name: "UNIQUE_n", elements: [element])]
            }
            return StoreModels.model(entity)
        }
    }

    @Test(arguments: StoreKind.allCases, Clash.allCases)
    func `are all enforced`(_ kind: StoreKind, _ clash: Clash) throws {
        let stack = try Stack(kind, model: clash.model())
        let entity = try require(stack.coordinator.managedObjectModel.entitiesByName["E"])
        for constraint in clash.constraints {
            let context = stack.context()
            try context.performAndWait { () throws in
                func insert(_ number: Int) {
                    let object = NSManagedObject(entity: entity, insertInto: context)
                    for attribute in clash.attributes {
                        // The values that this constraint is about are the same in both.
                        let value = constraint.contains(attribute) ? "same" : "\(attribute) \(number) \(UUID())"
                        object.setValue(value, forKey: attribute)
                    }
                }
                insert(1)
                insert(2)
                #expect { try context.save() } throws: {
                    ($0 as? CocoaError)?.code == .managedObjectConstraintMerge
                }
                context.rollback()
            }
        }
    }

    @Test func `have statements that a file takes, each once`() throws {
        for clash in Clash.allCases {
            let statements = try SQLiteSchema(for: clash.model()).statements
            expectEqual(Set(statements).count, statements.count)
            let unique = statements.count { $0.hasPrefix("CREATE UNIQUE INDEX") }
            expectEqual(unique, clash.constraints.count)
        }
    }

    @Test func `an index that is asked for twice is made once`() throws {
        let entity = StoreModels.entity("E", [StoreModels.attribute("a", .string)])
        entity.uniquenessConstraints = [["a"], ["a"]]
        entity.compoundIndexes = [["a"], ["a"]]
        let statements = try SQLiteSchema(for: StoreModels.model(entity)).statements
        expectEqual(statements.count { $0.contains("INDEX") }, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a sub-entity's constraint on what it inherits holds for the whole table, as its index does`(_ kind: StoreKind)
        throws
    {
        let (animal, dog, cat) = (
            StoreModels.entity("Animal", [StoreModels.attribute("name", .string)]), StoreModels.entity("Dog"),
            StoreModels.entity("Cat", [StoreModels.attribute("chip", .string)])
        )
        animal.subentities = [dog, cat]
        dog.properties = [StoreModels.attribute("chip", .string)]
        dog.uniquenessConstraints = [["name"], ["chip"]]
        let stack = try Stack(kind, model: StoreModels.model(animal, dog, cat))
        let entities = stack.coordinator.managedObjectModel.entitiesByName

        func save(_ pair: [String], _ key: String) throws -> CocoaError.Code? {
            let context = stack.context()
            return try context.performAndWait {
                for name in pair {
                    let object = NSManagedObject(entity: try require(entities[name]), insertInto: context)
                    object.setValue("same", forKey: key)
                }
                do { try context.save() } catch let error as CocoaError { return error.code }
                for object in context.registeredObjects { context.delete(object) }
                try context.save()
                return nil
            }
        }
        for pair in [["Animal", "Animal"], ["Animal", "Dog"], ["Cat", "Dog"], ["Cat", "Cat"]] {
            try expectEqual(save(pair, "name"), .managedObjectConstraintMerge, "\(pair)")
        }
        try expectEqual(save(["Dog", "Dog"], "chip"), .managedObjectConstraintMerge)
        // Another attribute, which only has the name.
        try expectEqual(save(["Cat", "Cat"], "chip"), nil)
        try expectEqual(save(["Cat", "Dog"], "chip"), nil)
    }
}
