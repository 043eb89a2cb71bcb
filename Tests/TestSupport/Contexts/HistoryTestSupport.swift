import CoreData
import Expectations
import StrataSQLite
import StrataSQLiteStore
import StrataStoreChecks
import Testing

/// The guide model with some attributes of venues whose values the history keeps.
package enum HistoryModels {
    package static let kept = [
        "name", "price", "distance", "createdAt", "favorite", "rating", "code", "site", "colour",
    ]

    package static func guide() -> NSManagedObjectModel {
        let model = GuideModel.make()
        for name in kept {
            model.entitiesByName["Venue"]?.attributesByName[name]?.preservesValueInHistoryOnDeletion = true
        }
        return model
    }
}

/// Short ways to ask for history.
extension Stack {
    package static var tracking: [AnyHashable: Any] { [NSPersistentHistoryTrackingKey: true] }

    /// A stack on a database that records a history.
    package static func recording(
        _ model: NSManagedObjectModel = HistoryModels.guide(),
        _ kind: StoreKind = .database
    ) throws -> Stack {
        try Stack(kind, model: model, options: tracking)
    }

    /// A second coordinator on the same file, like another process's.
    package func secondStack(_ options: [AnyHashable: Any]? = Stack.tracking) throws -> NSPersistentStoreCoordinator {
        let second = NSPersistentStoreCoordinator(managedObjectModel: HistoryModels.guide())
        try second.addPersistentStore(type: kind.type, at: storeURL, options: options)
        return second
    }

    package var store: NSPersistentStore { coordinator.persistentStores[0] }

    package var currentToken: NSPersistentHistoryToken {
        get throws { try require(coordinator.currentPersistentHistoryToken(fromStores: nil)) }
    }

    package func transactions(after token: NSPersistentHistoryToken? = nil) throws -> [NSPersistentHistoryTransaction] {
        try coordinator.transactions(after: token)
    }

    package func changes(after token: NSPersistentHistoryToken? = nil) throws -> [NSPersistentHistoryChange] {
        try transactions(after: token).flatMap { $0.changes ?? [] }
    }

    /// Saves one city.
    @discardableResult
    package func saveCity(_ name: String = "Porto", author: String? = nil) throws -> NSManagedObjectID {
        try write(author: author) { context in
            let city = City(context: context)
            city.name = name
            return city
        }
    }

    /// Makes an object in a new context, and saves.
    @discardableResult
    package func write(author: String? = nil, _ body: (NSManagedObjectContext) throws -> NSManagedObject) throws
        -> NSManagedObjectID
    {
        let context = context()
        return try context.performAndWait {
            context.transactionAuthor = author
            let object = try body(context)
            try context.save()
            return object.objectID
        }
    }

    /// Changes a stored object in a new context, and saves.
    package func change<T: NSManagedObject>(
        _ id: NSManagedObjectID,
        _ type: T.Type = T.self,
        _ body: (T, NSManagedObjectContext) throws -> Void
    ) throws {
        let context = context()
        try context.performAndWait {
            let object = try require(try context.existingObject(with: id) as? T)
            try body(object, context)
            try context.save()
        }
    }

    /// The problems that a check of the store finds.
    package func verificationProblems() throws -> [String] { try problems(of: HistoryModels.guide()) }

    /// Runs SQL on the file without the framework, or on the database, for which the SQL may differ.
    package func sql(_ text: String, postgreSQL: String? = nil) throws {
        #if canImport(CoreDataPostgreSQL)
        if kind == .postgreSQL { return try TestDatabase.run(postgreSQL ?? text, in: storeURL) }
        #endif
        try Connection(path: storeURL.path, access: .readWrite).execute(text)
    }

    /// The first column of all rows of a query, as texts.
    ///
    /// The query may differ on PostgreSQL.
    package func column(_ query: String, postgreSQL: String? = nil) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        if kind == .postgreSQL { return try TestDatabase.texts(postgreSQL ?? query, in: storeURL) }
        #endif
        return try Connection(path: storeURL.path, access: .readOnly).strings(SQL(query))
    }
}

extension NSPersistentStoreCoordinator {
    /// Carries out a history request in a new context.
    package func result(_ request: NSPersistentHistoryChangeRequest) throws -> Any? {
        try historyResult(request).result
    }

    /// The same as ``result(_:)``, but with the whole result object.
    package func historyResult(_ request: NSPersistentHistoryChangeRequest) throws -> NSPersistentHistoryResult {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = self
        return try context.performAndWait {
            try require(try context.execute(request) as? NSPersistentHistoryResult)
        }
    }

    package func transactions(after token: NSPersistentHistoryToken? = nil) throws -> [NSPersistentHistoryTransaction] {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
        return try require(try result(request) as? [NSPersistentHistoryTransaction])
    }
}

/// The error that `body` throws.
package func historyError(_ body: () throws -> Void) -> CocoaError? {
    do {
        try body()
        return nil
    } catch {
        return error as? CocoaError
    }
}
