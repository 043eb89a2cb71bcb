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

/// Composite attributes that are nil, or have a value, while their elements change.
@Suite("Migrations of composite attributes")
struct CompositeMigrationTests {
    private static func model(
        _ version: String,
        isOptional: Bool = true,
        _ elements: [NSAttributeDescription]
    ) -> NSManagedObjectModel {
        let entity = NSEntityDescription("A", attribute("name"))
        if !elements.isEmpty {
            let place = NSCompositeAttributeDescription()
            (place.name, place.isOptional, place.elements) = ("place", isOptional, elements)
            entity.properties.append(place)
        }
        entity.versionHashModifier = version
        return NSManagedObjectModel(entity)
    }

    private static func zip(_ isOptional: Bool, _ defaultValue: String? = nil) -> NSAttributeDescription {
        attribute("zip") { ($0.isOptional, $0.defaultValue) = (isOptional, defaultValue) }
    }

    private static func place(_ name: String, _ context: NSManagedObjectContext) throws -> [String: String]? {
        let request = NSFetchRequest<NSManagedObject>(entityName: "A")
        request.predicate = NSPredicate(format: "name == %@", name)
        return try require(context.fetch(request).first).value(forKey: "place") as? [String: String]
    }

    /// One object without a place and one with a city, taken to another version: in place, and object by object.
    ///
    /// Gives both places as they are afterwards.
    private func migrate(
        from old: () -> NSManagedObjectModel,
        to new: () -> NSManagedObjectModel
    ) throws -> [[[String: String]?]] {
        let store = try AgingStore(.migrating)
        try store.use(old()) { context in
            context.insert("A", ["name": "without"])
            let with = context.insert("A", ["name": "with"])
            if with.entity.attributesByName["place"] != nil { with.setValue("Bonn", forKeyPath: "place.city") }
            try context.save()
        }
        func places(_ context: NSManagedObjectContext) throws -> [[String: String]?] {
            [try Self.place("without", context), try Self.place("with", context)]
        }
        let (source, destination) = (old(), new())
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.usesStoreSpecificMigrationManager = false
        let url = store.scratch.file("objects.sqlite")
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        defer { if store.kind == .postgreSQL { DatabaseTexts.drop(url) } }
        let type = store.kind.type
        try manager.migrateStore(from: store.url, type: type, mapping: mapping, to: url, type: type)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: new())
        try coordinator.addPersistentStore(type: type, at: url)
        defer { for store in coordinator.persistentStores { try? coordinator.remove(store) } }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let byObjects = try context.performAndWait { try places(context) }
        let inPlace = try store.use(new()) { try places($0) }
        try expectEqual(store.problems(new()), [])
        return [inPlace, byObjects]
    }

    @Test func `a new optional one is nil, and a new required one has the default values of its elements`() throws {
        let optional = try migrate(
            from: { Self.model("1", []) },
            to: { Self.model("2", [attribute("city"), Self.zip(false, "0000")]) }
        )
        for places in optional { expectEqual(places, [nil, nil]) }
        let required = try migrate(
            from: { Self.model("1", []) },
            to: { Self.model("2", isOptional: false, [attribute("city"), Self.zip(false, "0000")]) }
        )
        for places in required { expectEqual(places, [["zip": "0000"], ["zip": "0000"]]) }
    }

    @Test func `a new element has its default value only where the whole has a value`() throws {
        for isOptional in [true, false] {
            let results = try migrate(
                from: { Self.model("1", [attribute("city")]) },
                to: { Self.model("2", [attribute("city"), Self.zip(isOptional, "0000")]) }
            )
            for places in results { expectEqual(places, [nil, ["city": "Bonn", "zip": "0000"]]) }
        }
    }

    @Test func `an element that becomes required gets its default value only where the whole has a value`() throws {
        let results = try migrate(
            from: { Self.model("1", [attribute("city"), Self.zip(true)]) },
            to: { Self.model("2", [attribute("city"), Self.zip(false, "0000")]) }
        )
        for places in results { expectEqual(places, [nil, ["city": "Bonn", "zip": "0000"]]) }
    }

    @Test func `one that becomes required gets the default values of its elements where it was nil`() throws {
        let results = try migrate(
            from: { Self.model("1", [attribute("city"), Self.zip(true)]) },
            to: { Self.model("2", isOptional: false, [attribute("city"), Self.zip(false, "0000")]) }
        )
        for places in results { expectEqual(places, [["zip": "0000"], ["city": "Bonn", "zip": "0000"]]) }
    }

    @Test func `a new required element without a default value is refused only if some object has a value`() throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.model("1", [attribute("city")])) { context in
            context.insert("A", ["name": "without"])
            try context.save()
        }
        try store.use(Self.model("2", [attribute("city"), Self.zip(false)])) { context in
            try expect(Self.place("without", context) == nil)
            context.insert("A", ["name": "with", "place": ["city": "Bonn", "zip": "1"]])
            try context.save()
        }
        let street = attribute("street") { $0.isOptional = false }
        let error = try #require(throws: CocoaError.self) {
            try store.use(Self.model("3", [attribute("city"), Self.zip(false), street])) { _ in }
        }
        expect(error.localizedDescription.contains("street"), "\(error)")
    }

    @Test func `an element that goes with its values is named, and kept`() throws {
        let store = try AgingStore(.migrating)
        let refusing: [AnyHashable: Any] = [NSPersistentStoreAllowsLossyMigrationOption: false]
        func nested(_ elements: [NSAttributeDescription]) -> NSAttributeDescription {
            let inner = NSCompositeAttributeDescription()
            (inner.name, inner.isOptional, inner.elements) = ("inner", true, elements)
            return inner
        }
        let all = Self.model("1", [attribute("city"), Self.zip(true), nested([attribute("door"), attribute("bell")])])
        try store.use(all) { context in
            context.insert("A", ["name": "without"])
            let with = context.insert("A", ["name": "with"])
            with.setValue("Bonn", forKeyPath: "place.city")
            with.setValue("3", forKeyPath: "place.inner.door")
            try context.save()
        }
        let changes: [(elements: [NSAttributeDescription], lost: [String])] = [
            ([Self.zip(true), nested([attribute("door"), attribute("bell")])], ["A.place.city: "]),
            ([attribute("city"), nested([attribute("bell")])], ["A.place.inner.door: "]),
            ([Self.zip(true)], ["A.place.city: ", "A.place.inner.door: "]),
            ([], ["A.place.city: ", "A.place.inner.door: "]),
        ]
        for (index, change) in changes.enumerated() {
            let model = Self.model("refused \(index)", change.elements)
            let error = try require(expectThrows(CocoaError.self) { try store.use(model, refusing) { _ in } })
            expectEqual(error.code, .migration)
            for lost in change.lost { expect(error.localizedDescription.contains(lost), "\(error)") }
            expectEqual((error.userInfo[NSDetailedErrorsKey] as? [CocoaError])?.count, change.lost.count)
        }
        // Elements without values go.
        let less = Self.model("2", [attribute("city"), nested([attribute("door")])])
        let city = try store.use(less, refusing) { context in
            let found = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "A"))
            expectEqual(found.compactMap { $0.value(forKeyPath: "place.inner.door") as? String }, ["3"])
            return found.compactMap { $0.value(forKeyPath: "place.city") as? String }
        }
        expectEqual(city, ["Bonn"])
    }
}
