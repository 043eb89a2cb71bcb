import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import StrataArchives

/// A store with or without foreign keys, and changes that another program makes to it in SQL.
final class KeyedStore: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        .appendingPathComponent("store")

    static var withKeys: [AnyHashable: Any] { [NSPostgreSQLForeignKeysOption: true] }

    /// The option counts even in a run in which stores have foreign keys by default.
    static var withoutKeys: [AnyHashable: Any] { [NSPostgreSQLForeignKeysOption: false] }

    deinit { TestDatabase.drop(url) }

    func open(_ model: NSManagedObjectModel, _ options: [AnyHashable: Any] = [:]) throws -> NSManagedObjectContext {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(
            type: TestDatabase.storeType,
            configuration: nil,
            at: url,
            options: Self.withoutKeys.merging(ChangingStore.migrating.merging(options) { $1 }) { $1 }
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return context
    }

    /// Adds the store, and removes it again.
    func make(_ model: NSManagedObjectModel, _ options: [AnyHashable: Any] = [:]) throws {
        ChangingStore.close(try open(model, options))
    }

    func connection() throws -> Connection {
        let target = try ConnectionTarget(TestDatabase.url(for: url))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return connection
    }

    /// The columns with foreign keys that the server checks when a transaction commits, and that hold for all rows.
    func keyColumns() throws -> [String] {
        try connection().query(
            """
            SELECT t.relname || '.' || a.attname || ' ' || d.relname FROM pg_catalog.pg_constraint AS c
            JOIN pg_catalog.pg_class AS t ON t.oid = c.conrelid JOIN pg_catalog.pg_class AS d ON d.oid = c.confrelid
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
            JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
            WHERE c.contype = 'f' AND n.nspname = pg_catalog.current_schema() AND c.condeferred AND c.convalidated
            ORDER BY 1
            """
        ).rows.map { $0.string(0) }
    }

    /// The SQLSTATE with which the server refuses a statement; `nil` if it does not refuse it.
    func refusal(_ sql: String) throws -> String? {
        do {
            try connection().command(sql)
            return nil
        } catch let error as PostgreSQLError {
            return error.sqlState
        }
    }

    func problems(_ model: NSManagedObjectModel) throws -> [String] { try PostgreSQLStore.problems(at: url, model) }

    // MARK: - Models

    private static func entity(_ name: String) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.properties = [GuideModel.attribute("name", .string)]
        return entity
    }

    /// A model with relationships of which some may lead to deleted objects, and others may not.
    static func library() -> NSManagedObjectModel {
        let (reader, book, author, note) = (entity("Reader"), entity("Book"), entity("Author"), entity("Note"))
        let shelf = entity("Shelf")
        reader.properties += [
            GuideModel.relationship("book", .one(.nullifyDeleteRule), book),
            GuideModel.relationship("notes", .many(.nullifyDeleteRule), note),
        ]
        GuideModel.relate(shelf, "books", .many(.noActionDeleteRule), book, "shelf", .one(.nullifyDeleteRule))
        GuideModel.relate(author, "books", .many(.nullifyDeleteRule), book, "authors", .many(.noActionDeleteRule))
        GuideModel.relate(book, "sequel", .one(.noActionDeleteRule), book, "prequel", .one(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [reader, book, author, note, shelf]
        return model
    }

    /// A model of countries and cities.
    ///
    /// In the second version cities have a title in place of a name, and they have districts and twins. The country
    /// knows its capital, whose relationship had no inverse before.
    static func atlas(_ version: Int) -> NSManagedObjectModel {
        let (country, city, region) = (entity("Country"), entity("City"), entity("Region"))
        GuideModel.relate(country, "cities", .many(.nullifyDeleteRule), city, "country", .one(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        GuideModel.relate(country, "regions", .many(.cascadeDeleteRule), region, "country", .one(.nullifyDeleteRule))
        model.entities = [city, country, region]
        guard version == 2 else {
            country.properties.append(GuideModel.relationship("capital", .one(.nullifyDeleteRule), city))
            // A table that loses a column is written anew, and the old table is dropped. The table of regions stays.
            country.properties.append(GuideModel.attribute("motto", .string))
            return model
        }
        GuideModel.relate(country, "capital", .one(.nullifyDeleteRule), city, "capitalOf", .one(.nullifyDeleteRule))
        city.properties.first { $0.name == "name" }?.renamingIdentifier = "name"
        city.properties.first { $0.name == "name" }?.name = "title"
        let district = entity("District")
        GuideModel.relate(city, "districts", .many(.cascadeDeleteRule), district, "city", .one(.nullifyDeleteRule))
        GuideModel.relate(city, "twins", .many(.nullifyDeleteRule), city, "twinOf", .many(.nullifyDeleteRule))
        model.entities.append(district)
        return model
    }
}

extension NSManagedObjectContext {
    /// Inserts an object with values.
    func insert(_ entity: String, _ values: [String: Any] = [:]) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: self)
        for (key, value) in values { object.setValue(value, forKey: key) }
        return object
    }

    func all(_ entity: String) throws -> [NSManagedObject] {
        try fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
    }
}
