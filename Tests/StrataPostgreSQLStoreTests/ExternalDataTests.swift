import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

/// On a server all data lies in the table, also where an attribute allows external storage.
@Suite("Attributes with external storage in PostgreSQL stores", .enabled(if: Server.isThere))
struct ExternalDataTests {
    private static func model(_ version: Int) -> NSManagedObjectModel {
        let photo = GuideModel.entity("Photo", NSManagedObject.self)
        let data = GuideModel.attribute("pixels", .binaryData)
        data.allowsExternalBinaryDataStorage = true
        photo.properties = [GuideModel.attribute("title", .string), data]
        if version > 1 {
            let thumbnail = GuideModel.attribute("thumbnail", .binaryData, optional: false, default: Data([7, 8]))
            thumbnail.allowsExternalBinaryDataStorage = true
            photo.properties.append(thumbnail)
        }
        let model = NSManagedObjectModel()
        model.entities = [photo]
        return model
    }

    private func insert(_ photos: [(String, Data?)], _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            for (title, pixels) in photos {
                let photo = context.insert("Photo", ["title": title])
                photo.setValue(pixels, forKey: "pixels")
            }
            try context.save()
        }
    }

    @Test func `can be compared, sorted by and grouped by as other data can`() throws {
        let stack = try Stack(.postgreSQL, model: Self.model(1))
        let context = stack.context()
        try insert([("b", Data([2])), ("none", nil), ("a", Data([1, 0])), ("c", Data([2]))], context)
        func titles(_ format: String, _ arguments: Any...) throws -> [String] {
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Photo")
                request.predicate = NSPredicate(format: format, argumentArray: arguments)
                request.sortDescriptors = ["pixels", "title"].map { NSSortDescriptor(key: $0, ascending: true) }
                return try context.fetch(request).compactMap { $0.value(forKey: "title") as? String }
            }
        }
        try expectEqual(titles("TRUEPREDICATE"), ["none", "a", "b", "c"])
        try expectEqual(titles("pixels == %@", Data([2])), ["b", "c"])
        try expectEqual(titles("pixels IN %@ OR title == 'none'", [Data([1, 0])]), ["none", "a"])
        try context.performAndWait {
            let request = NSFetchRequest<NSDictionary>(entityName: "Photo")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["pixels"]
            request.propertiesToGroupBy = ["pixels"]
            try expectEqual(context.fetch(request).count, 3)
        }
    }

    @Test func `get their default values in a migration as they are`() throws {
        let server = try require(TestDatabase.url)
        let schema = "external_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        defer { _ = try? Server.connection().command("DROP SCHEMA \"\(schema)\" CASCADE") }
        let place = try require(URL(string: "\(server.absoluteString)&schema=\(schema)"))
        func context(_ version: Int) throws -> NSManagedObjectContext {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model(version))
            try coordinator.addPersistentStore(
                type: .postgreSQL,
                configuration: nil,
                at: place,
                options: [
                    NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
                ]
            )
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return context
        }
        let old = try context(1)
        try insert([("a", Data([1]))], old)
        for store in old.persistentStoreCoordinator?.persistentStores ?? [] {
            try old.persistentStoreCoordinator?.remove(store)
        }
        let new = try context(2)
        try new.performAndWait {
            let photo = try require(new.fetch(NSFetchRequest<NSManagedObject>(entityName: "Photo")).first)
            expectEqual(photo.value(forKey: "pixels") as? Data, Data([1]))
            expectEqual(photo.value(forKey: "thumbnail") as? Data, Data([7, 8]))
        }
        for store in new.persistentStoreCoordinator?.persistentStores ?? [] {
            try new.persistentStoreCoordinator?.remove(store)
        }
    }
}
