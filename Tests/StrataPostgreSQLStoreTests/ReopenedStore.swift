import CoreData
import CoreDataPostgreSQL
import Foundation
import StrataPostgreSQL
import TestSupport

/// A store that is opened with one model after the other.
struct ReopenedStore: Sendable {
    private let store = ChangingStore()

    var url: URL { store.url }

    /// Opens the store, runs `body`, and closes the store.
    @discardableResult
    func with<R>(
        _ model: NSManagedObjectModel,
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(
            type: TestDatabase.storeType,
            configuration: nil,
            at: url,
            options: ChangingStore.migrating
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        defer { ChangingStore.close(context) }
        return try context.performAndWait { try body(context) }
    }

    /// The first column of an answer to plain SQL, as text.
    func texts(_ sql: String) throws -> [String] {
        try store.connection().query(sql).rows.map { $0.optionalString(0) ?? "nil" }
    }

    func command(_ sql: String) throws { try store.connection().command(sql) }

    func problems(_ model: NSManagedObjectModel) throws -> [String] {
        try PostgreSQLStore.problems(at: url, model)
    }

    /// The columns of a table.
    func columns(_ table: String) throws -> Set<String> {
        let found = try texts(
            "SELECT a.attname::text FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = '\(table)'::regclass AND a.attnum > 0 AND NOT a.attisdropped"
        )
        return Set(found.filter { !["strata_id", "strata_entity", "strata_version"].contains($0) })
    }
}
