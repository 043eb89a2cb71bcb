import CoreData

/// The kinds of stores on which every behaviour is tested.
package enum StoreKind: String, CaseIterable, Codable, Sendable {
    case sqlite
    case memory
    case postgreSQL

    /// The kinds of this run: PostgreSQL with a server in the environment (see `make test-postgresql`), and otherwise
    /// the others.
    package static let allCases: [StoreKind] = isPostgreSQL ? [.postgreSQL] : [.sqlite, .memory]

    /// The database of this run, for features that stores in memory lack: a SQLite file, or PostgreSQL.
    package static var database: StoreKind { isPostgreSQL ? .postgreSQL : .sqlite }

    /// The kinds that compile requests to SQL.
    package static let databases: [StoreKind] = allCases.filter { $0 != .memory }

    /// Whether this is a run for PostgreSQL.
    package static var isPostgreSQL: Bool {
        #if canImport(CoreDataPostgreSQL)
        TestDatabase.isThere
        #else
        false
        #endif
    }

    /// Whether the stores of this run are portable: see `make test-postgresql-portable`.
    package static let isPortable = ProcessInfo.processInfo.environment["STRATA_PORTABLE"] != nil

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

/// The basis of a test: a coordinator with one new store, in a separate folder that is removed with it.
package final class Stack: Sendable {
    package let coordinator: NSPersistentStoreCoordinator
    package let folder: URL
    package let storeURL: URL
    package let kind: StoreKind

    /// One model for all tests, since making and freezing it takes longer than many tests, and a frozen model lives as
    /// long as the process.
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
            // A migrated store may be elsewhere.
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

    /// A context with a private queue.
    package func context(_ name: String? = nil) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.name = name
        // A test may keep only the context, and the store must not go before it.
        context.userInfo["stack"] = self
        return context
    }

    /// A second coordinator on the same store, with a separate model.
    package func secondCoordinator(model: NSManagedObjectModel = GuideModel.make()) throws
        -> NSPersistentStoreCoordinator
    {
        let second = NSPersistentStoreCoordinator(managedObjectModel: model)
        try second.addPersistentStore(type: kind.type, configuration: nil, at: storeURL)
        return second
    }
}
