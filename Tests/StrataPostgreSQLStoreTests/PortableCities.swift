import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport

@testable import StrataPostgreSQLStore

/// A portable store of cities whose model changes, and the whole of its contents as text.
struct PortableCities {
    let url: URL
    /// Whether a new store has scattered keys.
    var isScattered = false

    // MARK: - The model

    /// Cities with unique names, their venues, and their tags.
    ///
    /// In the second version a city has another name for its name, a country and the number of its venues, venues have prices with fractions, and an
    /// entity more changes the numbers of the others. In the third one cities have no venues any more.
    static func model(_ version: Int) -> NSManagedObjectModel {
        let (city, venue, tag, bridge) = (
            NSEntityDescription(), NSEntityDescription(), NSEntityDescription(), NSEntityDescription()
        )
        (city.name, venue.name, tag.name, bridge.name) = ("City", "Venue", "Tag", "Bridge")
        let name = attribute(version == 1 ? "name" : "title", .stringAttributeType)
        if version > 1 { name.renamingIdentifier = "name" }
        let (tags, cities) = pair("tags", of: tag, "cities", of: city)
        tags.isOrdered = true
        city.properties = [name, attribute("people", .integer32AttributeType), tags]
        city.uniquenessConstraints = [[name.name]]
        tag.properties = [attribute("name", .stringAttributeType), cities]
        let price = attribute("price", version == 1 ? .integer64AttributeType : .doubleAttributeType)
        venue.properties = [attribute("name", .stringAttributeType), price]
        if version < 3 {
            let (venues, home) = pair("venues", of: venue, "city", of: city)
            home.maxCount = 1
            city.properties.append(venues)
            venue.properties.append(home)
        }
        let index = NSFetchIndexDescription(
            name: "byPrice",
            elements: [NSFetchIndexElementDescription(property: price, collationType: .binary)]
        )
        venue.indexes = [index]
        let model = NSManagedObjectModel()
        model.entities = [city, venue, tag]
        if version > 1 {
            let country = attribute("country", .stringAttributeType)
            country.defaultValue = "DE"
            city.properties.append(country)
            if version == 2 {
                let count = NSDerivedAttributeDescription()
                (count.name, count.attributeType, count.isOptional) = ("venueCount", .integer64AttributeType, true)
                count.derivationExpression = NSExpression(format: "venues.@count")
                city.properties.append(count)
            }
            bridge.properties = [attribute("length", .doubleAttributeType)]
            model.entities.append(bridge)
        }
        return model
    }

    private static func attribute(_ name: String, _ type: NSAttributeType) -> NSAttributeDescription {
        let attribute = NSAttributeDescription()
        (attribute.name, attribute.attributeType, attribute.isOptional) = (name, type, true)
        return attribute
    }

    private static func pair(
        _ one: String,
        of destination: NSEntityDescription,
        _ other: String,
        of source: NSEntityDescription
    ) -> (NSRelationshipDescription, NSRelationshipDescription) {
        let (first, second) = (NSRelationshipDescription(), NSRelationshipDescription())
        (first.name, first.destinationEntity, first.inverseRelationship, first.maxCount) = (one, destination, second, 0)
        (second.name, second.destinationEntity, second.inverseRelationship, second.maxCount) = (other, source, first, 0)
        for relationship in [first, second] {
            (relationship.isOptional, relationship.deleteRule) = (true, .nullifyDeleteRule)
        }
        return (first, second)
    }

    // MARK: - Opening

    static var migrating: [AnyHashable: Any] {
        [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            NSPersistentStoreAllowsLossyMigrationOption: true,
        ]
    }

    func open(_ version: Int, _ options: [AnyHashable: Any] = [:]) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model(version))
        try coordinator.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: url,
            options: [NSPersistentHistoryTrackingKey: true, NSPostgreSQLScatteredKeysOption: isScattered]
                .merging(options) { $1 }
        )
        return coordinator
    }

    /// Opens the store with a version of the model, and runs one piece of work.
    @discardableResult
    func use<R>(
        _ version: Int,
        _ options: [AnyHashable: Any] = [:],
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        let coordinator = try open(version, options)
        defer { TrialTests.close(coordinator) }
        return try TrialTests.perform(coordinator, body)
    }

    func migrate(to version: Int, _ options: [AnyHashable: Any] = [:]) throws {
        try use(version, Self.migrating.merging(options) { $1 }) { _ in }
    }

    // MARK: - Contents

    /// Makes some cities with venues and tags, changes some of them, and deletes one.
    func fill(venues count: Int = 6) throws {
        try use(1) { context in
            let tags = ["old", "large", "far"].map { name in
                let tag = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
                tag.setValue(name, forKey: "name")
                return tag
            }
            let cities = ["Bonn", "Kiel", "Ulm", "Jena"].enumerated().map { number, name in
                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                city.setValue(name, forKey: "name")
                city.setValue(number * 1000, forKey: "people")
                city.setValue(
                    NSOrderedSet(array: Array(tags.reversed().dropLast(number % 3))),
                    forKey: "tags"
                )
                return city
            }
            try context.save()
            for number in 0..<count {
                let venue = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context)
                venue.setValue("v\(number)", forKey: "name")
                venue.setValue(number * 7, forKey: "price")
                venue.setValue(number % 4 == 3 ? nil : cities[number % 4], forKey: "city")
            }
            try context.save()
            cities[0].setValue(126_000, forKey: "people")
            cities[1].setValue("Köln", forKey: "name")
            context.delete(cities[3])
            try context.save()
        }
    }

    /// The whole contents, in the words of the first version.
    func contents(_ version: Int) throws -> [String] {
        try use(version) { context in
            func all(_ entity: String) throws -> [NSManagedObject] {
                let request = NSFetchRequest<NSManagedObject>(entityName: entity)
                request.returnsObjectsAsFaults = false
                return try context.fetch(request)
            }
            func key(_ object: Any?) -> String {
                (object as? NSManagedObject)?.objectID.uriRepresentation().lastPathComponent ?? "nil"
            }
            let name = version == 1 ? "name" : "title"
            var lines = try all("City").map { city in
                let venues = (city.value(forKey: "venues") as? Set<NSManagedObject> ?? []).map(key).sorted()
                let tags = (city.value(forKey: "tags") as? NSOrderedSet ?? []).array.map(key)
                if version == 2 { expectEqual(city.value(forKey: "venueCount") as? Int, venues.count) }
                if version > 1 { expectEqual(city.value(forKey: "country") as? String, "DE") }
                return
                    "City \(key(city)) \(city.value(forKey: name) ?? "nil") \(city.value(forKey: "people") ?? "nil") \(venues) \(tags)"
            }
            lines += try all("Venue").map { venue in
                let price = (venue.value(forKey: "price") as? NSNumber)?.intValue ?? -1
                return
                    "Venue \(key(venue)) \(venue.value(forKey: "name") ?? "nil") \(price) \(key(venue.value(forKey: "city")))"
            }
            lines += try all("Tag").map { tag in
                let cities = (tag.value(forKey: "cities") as? Set<NSManagedObject> ?? []).map(key).sorted()
                return "Tag \(key(tag)) \(tag.value(forKey: "name") ?? "nil") \(cities)"
            }
            let store = try require(context.persistentStoreCoordinator?.persistentStores.first)
            return try lines.sorted() + history(context)
                + ["\(store.identifier ?? "nil") \(store.metadata?["Theme"] ?? "no theme")"]
        }
    }

    private func history(_ context: NSManagedObjectContext) throws -> [String] {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
        let result = try context.execute(request) as? NSPersistentHistoryResult
        let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
        return transactions.filter { $0.changes?.isEmpty == false }.flatMap { transaction in
            (transaction.changes ?? []).map { change in
                let properties = (change.updatedProperties ?? []).map { $0.name == "title" ? "name" : $0.name }.sorted()
                let object = change.changedObjectID.uriRepresentation().path
                return "\(transaction.transactionNumber) \(change.changeType.rawValue) \(object) \(properties)"
            }
        }
    }

    // MARK: - The database

    /// Makes everybody take the process for dead that has the lease of a migration.
    func endLease() throws {
        try session().command(
            "UPDATE strata_lease SET seen = seen - \(ShapeLease.duration + 1) WHERE name = '\(ShapeLease.name)'"
        )
    }

    /// A session that sees the schema.
    func session() throws -> Connection {
        let target = try ConnectionTarget(url)
        let session = try Connection.open(target, timeout: 30)
        try session.command("SET search_path TO \(target.quotedSchema)")
        return session
    }

    /// The tables and sequences in the schema, except for the bookkeeping tables.
    func tables() throws -> [String] {
        try session().query(
            """
            SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'S')
            AND relname !~ '^strata_(store|transaction|change|history|consumer|lease|receipt)' ORDER BY 1
            """
        ).rows.map { $0.string(0) }
    }

    /// The tables and sequences that a store has, with the number of its tables.
    static func tables(_ version: Int, number: Int) -> [String] {
        let rows = ["city", "tag", "venue"] + (version > 1 ? ["bridge"] : [])
        return (rows + ["city_tags"] + rows.map { "strata_keys_\($0)" }).map { StoreGenerations.name($0, number) }
            .sorted()
    }

    /// The numbers of the tables, as the metadata notes them.
    func generations() throws -> StoreGenerations {
        try require(StoreMetadata.read(session(), "the store")).generations
    }

    /// Ensures that the store is sound, and that nothing is left of a migration.
    func requireSound(_ version: Int) throws {
        try expectEqual(PostgreSQLStore.problems(at: url, Self.model(version)), [])
        let generations = try generations()
        expectEqual(generations.pending, nil)
        expectEqual(generations.leftovers, [])
        expectEqual(generations.schemas, [])
        try expectEqual(
            session().query(
                "SELECT 1 FROM pg_namespace WHERE nspname LIKE 'strata_new%' AND right(nspname, length(current_schema())) = current_schema()"
            ).rowCount,
            0,
            "no schema is left of a new store"
        )
        try expectEqual(tables(), Self.tables(version, number: generations.current))
        try expectEqual(
            session().query(
                "SELECT 1 FROM strata_lease WHERE name = '\(ShapeLease.name)' AND seen > \(HistoryQueries.now) - \(ShapeLease.duration)"
            ).rowCount,
            0,
            "nobody has the lease"
        )
    }
}
