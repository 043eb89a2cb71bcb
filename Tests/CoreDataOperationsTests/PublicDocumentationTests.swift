import Expectations
import Foundation
import Testing

/// The documentation of a public declaration says how to call it.
@Suite("Documentation of what is public")
struct PublicDocumentationTests {
    /// The targets whose declarations clients of the products see.
    private static let targets = [
        "CoreData", "CoreDataEssentials", "CoreDataEngineStores", "CoreDataModelFiles", "CoreDataBatches",
        "CoreDataClaims", "CoreDataLocking",
        "CoreDataCustomStores", "CoreDataBinaryStore", "CoreDataHistory", "CoreDataMessages", "CoreDataContainer",
        "CoreDataFetchedResults", "CoreDataMigration", "CoreDataModelClasses", "CoreDataOperations", "CoreDataReads",
        "CoreDataRows", "CoreDataKeyPaths", "CoreDataTransformers", "CoreDataTenants",
        "CoreDataJobs",
        "CoreDataPostgreSQL", "StrataPredicates", "StrataKeys", "SwiftData", "SwiftDataPostgreSQL",
    ]

    private static let declarations = Result { PublicDeclaration.all(in: try ShownCode.sources(of: targets)) }

    @Test func `each function says what its parameters, its result and its errors are`() throws {
        let declarations = try Self.declarations.get()
        expect(declarations.count { !$0.parameters.isEmpty } > 300)
        let gaps = declarations.filter { !$0.gaps.isEmpty }
            .map { "\($0.place): \($0.name) does not document: \($0.gaps.joined(separator: ", "))" }
        expect(gaps.isEmpty, "\(gaps.joined(separator: "\n"))")
    }

    @Test func `each type has an example`() throws {
        let types = try Self.declarations.get().filter(\.isType)
        expect(types.count > 150)
        let bare = types.filter { !$0.hasExample }.map { "\($0.place): \($0.name) has no example" }
        expect(bare.isEmpty, "\(bare.joined(separator: "\n"))")
    }

    @Test func `the members that are used most have an example`() throws {
        let members = Dictionary(grouping: try Self.declarations.get(), by: \.name)
        let bare = Self.usedMost.flatMap { type, names in names.map { "\(type).\($0)" } }
            .filter { name in !(members[name] ?? []).contains(where: \.hasExample) }
            .map { "\(members[$0]?.first?.place ?? "nowhere"): \($0) has no example" }.sorted()
        expect(bare.isEmpty, "\(bare.joined(separator: "\n"))")
        expect(Self.usedMost.values.map(\.count).reduce(0, +) >= 100)
    }

    /// The members that code for Apple's framework uses most, by type.
    private static let usedMost = [
        "NSPersistentContainer": [
            "init", "persistentStoreDescriptions", "loadPersistentStores", "viewContext", "newBackgroundContext",
            "performBackgroundTask", "persistentStoreCoordinator",
        ],
        "NSPersistentStoreDescription": [
            "init", "setOption", "type", "shouldMigrateStoreAutomatically", "shouldInferMappingModelAutomatically",
        ],
        "NSPersistentStoreCoordinator": [
            "init", "addPersistentStore", "remove", "persistentStores", "managedObjectID", "metadata",
            "metadataForPersistentStore", "migratePersistentStore", "destroyPersistentStore",
            "replacePersistentStore", "currentPersistentHistoryToken",
        ],
        "NSManagedObjectContext": [
            "init", "fetch", "count", "save", "perform", "performAndWait", "insert", "delete", "object",
            "existingObject", "registeredObject", "execute", "hasChanges", "rollback", "reset", "refresh",
            "refreshAllObjects", "mergePolicy", "mergeChanges", "automaticallyMergesChangesFromParent", "parent",
            "persistentStoreCoordinator", "insertedObjects", "updatedObjects", "deletedObjects",
            "obtainPermanentIDs", "undoManager", "name", "transactionAuthor", "processPendingChanges",
            "setQueryGenerationFrom",
        ],
        "NSManagedObject": [
            "init", "objectID", "managedObjectContext", "entity", "value", "setValue", "primitiveValue",
            "setPrimitiveValue", "willChangeValue", "willAccessValue", "hasChanges", "isInserted", "isUpdated",
            "isDeleted", "isFault", "changedValues", "committedValues", "awakeFromInsert", "awakeFromFetch",
            "willSave", "didSave", "prepareForDeletion", "validateForInsert", "validateForUpdate", "validateForDelete",
            "validateValue", "fetchRequest", "mutableSetValue", "mutableOrderedSetValue",
        ],
        "NSManagedObjectID": ["uriRepresentation", "isTemporaryID", "entity"],
        "NSFetchRequest": [
            "init", "entity", "predicate", "sortDescriptors", "fetchLimit", "fetchOffset", "fetchBatchSize",
            "resultType", "propertiesToFetch", "propertiesToGroupBy", "havingPredicate", "returnsDistinctResults",
            "relationshipKeyPathsForPrefetching", "returnsObjectsAsFaults", "includesSubentities",
            "includesPendingChanges", "includesPropertyValues",
        ],
        "NSAsynchronousFetchRequest": ["init"],
        "NSBatchInsertRequest": ["init", "resultType"],
        "NSBatchUpdateRequest": ["init", "predicate", "propertiesToUpdate", "resultType"],
        "NSBatchDeleteRequest": ["init", "resultType"],
        "NSPersistentHistoryChangeRequest": ["fetchHistory", "deleteHistory", "resultType", "fetchRequest"],
        "NSPersistentHistoryTransaction": ["changes", "author", "token", "objectIDNotification"],
        "NSPersistentHistoryChange": ["changedObjectID", "changeType", "updatedProperties", "tombstone"],
        "NSFetchedResultsController": [
            "init", "delegate", "performFetch", "fetchedObjects", "object", "indexPath", "sections",
        ],
        "FormatPredicateFactory": ["init"],
        "KeyedSortDescriptorFactory": ["init"],
        "NSPredicate": ["withSubstitutionVariables"],
        "NSComparisonPredicate": ["init"],
        "NSExpression": ["init", "expressionValue"],
        "NSManagedObjectModel": [
            "init", "entities", "entitiesByName", "mergedModel", "fetchRequestFromTemplate", "setFetchRequestTemplate",
            "isConfiguration",
        ],
        "NSEntityDescription": [
            "entity", "insertNewObject", "name", "properties", "attributesByName", "relationshipsByName",
            "superentity", "subentities", "uniquenessConstraints", "indexes",
        ],
        "NSPropertyDescription": ["name", "isOptional", "setValidationPredicates"],
        "NSAttributeDescription": ["type", "defaultValue"],
        "NSRelationshipDescription": ["destinationEntity", "inverseRelationship", "deleteRule", "maxCount"],
        "NSMappingModel": ["init", "inferredMappingModel"],
        "NSMigrationManager": ["init", "migrateStore"],
    ]

    @Test func `gaps are found, and declarations that clients do not see are passed over`() throws {
        let text = """
            /// Adds.
            ///
            /// - Parameters:
            ///   - first: One.
            ///   - second: Another.
            /// - Returns: The sum.
            public func add(_ first: Int, to second: [Int: (Int, Int)] = [:]) -> Int { first }
            /// Adds.
            ///
            /// - Parameter wrong: One.
            @discardableResult
            open class func add<T>(_ first: borrowing T, _: Int, with `default`: @escaping (T) throws -> Int) throws(E) -> Int where T: A {
                { (a: Int) -> Int in a }(1)
            }
            /// A type.
            public struct Outer: A {
                /// ```swift
                /// Inner()
                /// ```
                public struct Inner { public init?(_ a: Int) {} }
                struct Hidden { public init(_ a: Int) {} }
                public override func f(_ a: Int) -> Int { a }
                public static func == (lhs: Outer, rhs: Outer) -> Bool { true }
                public subscript(a: Int) -> Int { get { a } set {} }
                public var value: Int { get async throws { 1 } }
                public var other: Int { didSet { f(1) } }
                /// Runs.
                public func run(_ a: Int) rethrows {}
            }
            extension Outer.Hidden { public func f(_ a: Int) {} }
            public protocol P { func f(a: Int) -> Void; var v: Int { get throws } }
            @available(*, unavailable)
            extension Outer { public func f(_ a: Int) {} }
            """
        let found = PublicDeclaration.all(in: [(path: "F", text: text)])
        let gaps = found.filter { !$0.gaps.isEmpty }.map {
            "\($0.place) \($0.name): \($0.gaps.joined(separator: ", "))"
        }
        expect(
            gaps == [
                "F:12 add: parameter first, parameter default, parameter wrong, which it does not have, the result, the errors",
                "F:20 Outer.Inner.init: parameter a",
                "F:23 Outer.==: parameter lhs, parameter rhs, the result",
                "F:24 Outer.subscript: parameter a, the result",
                "F:25 Outer.value: the errors",
                "F:28 Outer.run: parameter a",
                "F:31 P.f: parameter a",
                "F:31 P.v: the errors",
            ]
        )
        expect(
            found.filter(\.isType).map { "\($0.name) \($0.hasExample)" } == [
                "Outer false", "Outer.Inner true", "P false",
            ]
        )
    }
}
