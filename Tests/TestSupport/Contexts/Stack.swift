import CoreData

/// The stores that every behaviour is tested on.
package enum StoreKind: String, CaseIterable, Codable, Sendable {
    case sqlite
    case memory
    case postgreSQL

    /// The stores of this run: with a server in the environment (see `make test-postgresql`) PostgreSQL, and else the others.
    package static let allCases: [StoreKind] = isPostgreSQL ? [.postgreSQL] : [.sqlite, .memory]

    /// The database of this run, for what stores in memory do not do: a file of SQLite, or PostgreSQL.
    package static var database: StoreKind { isPostgreSQL ? .postgreSQL : .sqlite }

    /// Those that compile requests to SQL.
    package static let databases: [StoreKind] = allCases.filter { $0 != .memory }

    /// Whether the run is about PostgreSQL.
    package static var isPostgreSQL: Bool {
        #if canImport(CoreDataPostgreSQL)
        TestDatabase.isThere
        #else
        false
        #endif
    }

    package var type: NSPersistentStore.StoreType {
        switch self {
        case .sqlite: return .sqlite
        case .memory: return .inMemory
        case .postgreSQL:
            #if canImport(CoreDataPostgreSQL)
            return TestDatabase.storeType
            #else
            return NSPersistentStore.StoreType(rawValue: "PostgreSQL")
            #endif
        }
    }
}

/// What a test stands on: a coordinator with one fresh store, in a folder of its own that goes with it.
package final class Stack: Sendable {
    package let coordinator: NSPersistentStoreCoordinator
    package let folder: URL
    package let storeURL: URL
    package let kind: StoreKind

    /// One for all tests: making and freezing it takes longer than many a test, and what is frozen stays for as long as the process lives.
    private static let guide = GuideModel.make()

    /// A stack of the guide model.
    package convenience init(_ kind: StoreKind) throws {
        try self.init(kind, model: Self.guide)
    }

    /// A stack of any model.
    package init(_ kind: StoreKind, model: NSManagedObjectModel, options: [AnyHashable: Any]? = nil) throws {
        self.kind = kind
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        storeURL = folder.appendingPathComponent("store.sqlite")
        coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: kind.type, configuration: nil, at: storeURL, options: options)
    }

    deinit {
        for store in coordinator.persistentStores {
            let (type, url) = (store.type, store.url)
            try? coordinator.remove(store)
            #if canImport(CoreDataPostgreSQL)
            // One that was migrated may lie elsewhere.
            if type == StoreKind.postgreSQL.type.rawValue, let url { TestDatabase.drop(url) }
            #else
            _ = (type, url)
            #endif
        }
        #if canImport(CoreDataPostgreSQL)
        if kind == .postgreSQL { TestDatabase.drop(storeURL) }
        #endif
        try? FileManager.default.removeItem(at: folder)
    }

    /// A context with a queue of its own.
    package func context(_ name: String? = nil) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.name = name
        // A test may keep the context alone; the store must not go before it.
        context.userInfo["stack"] = self
        return context
    }

    /// A second coordinator on the same store, with a model of its own.
    package func secondCoordinator(model: NSManagedObjectModel = GuideModel.make()) throws
        -> NSPersistentStoreCoordinator
    {
        let second = NSPersistentStoreCoordinator(managedObjectModel: model)
        try second.addPersistentStore(type: kind.type, configuration: nil, at: storeURL)
        return second
    }
}
