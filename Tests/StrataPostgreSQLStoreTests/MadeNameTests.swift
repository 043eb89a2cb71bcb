import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@Suite("Names that the store makes of a model's", .enabled(if: Server.isThere))
struct MadeNameTests {
    /// The tables and sequences of a store, without those that it keeps for itself.
    private func relations(_ store: ReopenedStore) throws -> [String] {
        try store.texts(
            """
            SELECT relname::text FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.current_schema()::regnamespace
            AND relkind IN ('r', 'S') AND relname !~ '^strata_(store|transaction|change|consumer|history|lease|receipt)' ORDER BY 1
            """
        )
    }

    /// Stores an object of each entity with a different value in each attribute, and finds each object by these
    /// values.
    private func check(_ model: NSManagedObjectModel, _ context: NSManagedObjectContext) throws {
        let entities = model.entities.compactMap { entity in
            entity.name.map { ($0, entity.attributesByName.keys.sorted()) }
        }
        for (entity, attributes) in entities {
            let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
            for attribute in attributes { object.setValue("\(entity) \(attribute)", forKey: attribute) }
        }
        try context.save()
        context.reset()
        for (entity, attributes) in entities {
            for attribute in attributes {
                let request = NSFetchRequest<NSManagedObject>(entityName: entity)
                request.predicate = NSPredicate(format: "%K == %@", attribute, "\(entity) \(attribute)")
                let found = try context.fetch(request).map { $0.value(forKey: attribute) as? String }
                expectEqual(found, ["\(entity) \(attribute)"])
            }
        }
    }

    @Test(arguments: ["a", "aé", "éa", "語"])
    func `long names that begin alike stay apart, and are cut between characters`(_ pattern: String) throws {
        // The name has 80 bytes or more. The server would keep only the first 63, wherever that cuts the text.
        let start = "x" + String(repeating: pattern, count: 80 / pattern.utf8.count)
        func model() -> NSManagedObjectModel {
            let (first, second) = (StoreModels.entity(start + "first"), StoreModels.entity(start + "second"))
            for entity in [first, second] {
                entity.properties = ["one", "two"].map { StoreModels.attribute(start + $0, .string) }
            }
            let (many, others) = (
                StoreModels.toMany(start + "many", second), StoreModels.toMany(start + "others", first)
            )
            StoreModels.connect(many, others)
            let (owner, owned) = (
                StoreModels.toOne(start + "owner", first), StoreModels.toMany(start + "owned", second)
            )
            StoreModels.connect(owner, owned)
            first.properties += [many, owned]
            second.properties += [others, owner]
            return StoreModels.model(first, second)
        }
        let (store, model) = (ReopenedStore(), model())
        try store.with(model) { try check(model, $0) }
        try expectEqual(store.problems(model), [])
        let names = try relations(store)
        // There are two tables, their sequences, and a table of pairs.
        expectEqual(names.count, 5)
        let tables = names.filter { !$0.hasPrefix("strata_") }
        let columns = try tables.flatMap { try store.columns("\"\($0)\"") }
        for name in names + columns {
            expect(name.utf8.count <= 56 && !name.contains("\u{FFFD}"), "\(name)")
            let stem = name.replacingOccurrences(of: "strata_keys_", with: "").dropLast(9)
            expect(start.hasPrefix(stem), "\(name)")
        }
    }

    @Test func `attributes whose names come to one have separate columns, and entities are refused`() throws {
        let (store, model) = (
            ReopenedStore(),
            StoreModels.model(
                StoreModels.entity("Thing", ["userID", "user_id", "userId"].map { StoreModels.attribute($0, .string) })
            )
        )
        try store.with(model) { try check(model, $0) }
        try expectEqual(store.columns("thing"), ["user_id", "user_id1", "user_id2"])
        let refused = StoreModels.model(StoreModels.entity("UserID"), StoreModels.entity("User_id"))
        let error = expectThrows(CocoaError.self) { try ReopenedStore().with(refused) { _ in } }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        expect(error?.localizedDescription.contains("user_id") ?? false)
    }

    // MARK: - Names that the server or the store adds

    private static func things(_ names: [String]) -> NSManagedObjectModel {
        let model = NSManagedObjectModel()
        model.entities = names.map { StoreModels.entity($0, [StoreModels.attribute("name", .string)]) }
        return model
    }

    @Test func `a table may be called like the index of another one's primary key`() throws {
        let store = ReopenedStore()
        let model = Self.things(["Foo", "FooPkey", "FooPkeyPkey", "Bar"])
        let (bars, foos) = (
            StoreModels.toMany("pkey", try require(model.entitiesByName["Foo"])),
            StoreModels.toMany("bars", try require(model.entitiesByName["Bar"]))
        )
        StoreModels.connect(bars, foos)
        model.entitiesByName["Bar"]?.properties.append(bars)
        model.entitiesByName["Foo"]?.properties.append(foos)
        try store.with(model) { try check(model, $0) }
        try expect(Set(relations(store)).isSuperset(of: ["foo", "foo_pkey", "foo_pkey_pkey", "bar", "bar_pkey"]))
        try expectEqual(store.problems(model), [])
    }

    @Test func `a primary key has the name that it had always, where that is free`() throws {
        let store = ReopenedStore()
        try store.with(Self.things(["Foo", "Bar"])) { _ in }
        let names = try store.texts(
            """
            SELECT c.relname::text FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            WHERE i.indisprimary AND c.relnamespace = pg_catalog.current_schema()::regnamespace
            AND c.relname !~ '^strata_' ORDER BY 1
            """
        )
        expectEqual(names, ["bar_pkey", "foo_pkey"])
    }

    @Test func `a migration may bring a table that is called like the index of a primary key`() throws {
        let store = ReopenedStore()
        let (old, new) = (Self.things(["Foo"]), Self.things(["Foo", "FooPkey", "Baz", "BazPkey"]))
        try store.with(old) { try check(old, $0) }
        try store.with(new) { context in
            let kept = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Foo"))
            expectEqual(kept.map { $0.value(forKey: "name") as? String }, ["Foo name"])
            for object in kept { context.delete(object) }
            try check(new, context)
        }
        try expectEqual(store.problems(new), [])
    }

    @Test(
        arguments: [
            "StrataStore", "StrataStorePkey", "StrataTransactionNumber", "StrataTransactionSeqSeq", "StrataKeysThing",
        ]
    )
    func `a table that is called like one that the store keeps is refused, and named`(_ name: String) throws {
        let error = expectThrows(CocoaError.self) {
            try ReopenedStore().with(Self.things(["Thing", name])) { _ in }
        }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("something of its own by that name") && text.contains("strata_"), "\(text)")
    }

    @Test func `a table may be called as the index of a constraint would be`() throws {
        let (store, model) = (ReopenedStore(), Self.things(["Thing", "StrataUniqueThingName"]))
        model.entitiesByName["Thing"]?.uniquenessConstraints = [["name"]]
        try store.with(model) { context in
            try check(model, context)
            NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
                .setValue("Thing name", forKey: "name")
            expectThrows(CocoaError.self) { try context.save() }
        }
        try expectEqual(store.problems(model), [])
    }

    // MARK: - Width

    @Test func `a table has as many columns as the server allows, and a model that needs more is refused by name`()
        throws
    {
        func model(_ count: Int) -> NSManagedObjectModel {
            StoreModels.model(
                StoreModels.entity("Thing", (0..<count).map { StoreModels.attribute("a\($0)", .string) })
            )
        }
        try ReopenedStore().with(model(1597)) { context in
            let thing = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
            thing.setValue("last", forKey: "a1596")
            try context.save()
            context.reset()
            let found = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Thing"))
            expectEqual(found.map { $0.value(forKey: "a1596") as? String }, ["last"])
        }
        let error = expectThrows(CocoaError.self) { try ReopenedStore().with(model(1598)) { _ in } }
        expectEqual(error?.code, .persistentStoreIncompatibleSchema)
        let text = error?.localizedDescription ?? ""
        expect(text.contains("Thing") && text.contains("1601 columns") && text.contains("1600"), "\(text)")
    }
}
