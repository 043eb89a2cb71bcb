import CoreData

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// The place of a store on the command line: a SQLite file, or a schema of a PostgreSQL database by its URL.
struct StorePlace {
    let url: URL
    let type: NSPersistentStore.StoreType

    /// Takes the value of `--store`.
    ///
    /// - Throws: `fileReadNoSuchFile` (260) for a file that does not exist, `persistentStoreOpen` (134080) for a
    ///   folder, a ``UsageError`` for a URL if there is no libpq.
    init(_ text: String) throws {
        (url, type) = try Self.place(text)
        guard isFile else { return }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
            throw CocoaError.described(
                .fileReadNoSuchFile,
                userInfo: [NSLocalizedDescriptionKey: "There is no store at \(url.path)."]
            )
        }
        guard !isFolder.boolValue else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "\(url.path) is a folder, and no store."]
            )
        }
    }

    /// Takes the value of `--store` for a new store.
    ///
    /// - Throws: A ``UsageError`` if there is a store already, or for a URL if there is no libpq.
    init(new text: String) throws {
        (url, type) = try Self.place(text)
        let isTaken: Bool
        if isFile {
            isTaken = FileManager.default.fileExists(atPath: url.path)
        } else {
            do {
                _ = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: type, at: url)
                isTaken = true
            } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
                isTaken = false
            }
        }
        guard !isTaken else {
            throw UsageError("there is a \(isFile ? "file" : "store") at \(name) already, which is not replaced")
        }
    }

    init(url: URL, type: NSPersistentStore.StoreType) { (self.url, self.type) = (url, type) }

    private static func place(_ text: String) throws -> (URL, NSPersistentStore.StoreType) {
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else {
            return (URL(fileURLWithPath: text), .sqlite)
        }
        #if canImport(CoreDataPostgreSQL)
        guard let found = URL(string: text) else { throw UsageError("what stands behind --store is no URL") }
        return (found, .postgreSQL)
        #else
        throw UsageError("this strata was built without libpq, and knows files only")
        #endif
    }

    var isFile: Bool { type == .sqlite }

    /// The name of the store in printed lines.
    var name: String { isFile ? url.path : Self.shown(url) }

    /// A URL in printable form, without users and options.
    static func shown(_ url: URL) -> String {
        let parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        let schema = parts?.queryItems?.last { $0.name == "schema" }?.value ?? "strata"
        return "postgresql://\(parts?.host ?? "")\(parts?.path ?? "")?schema=\(schema)"
    }

    /// Removes the store, if there is one.
    func destroy(_ model: NSManagedObjectModel) throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        guard isFile else { return try coordinator.destroyPersistentStore(at: url, type: type) }
        try? coordinator.destroyPersistentStore(at: url, type: type)
        // Destroying leaves an empty file.
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
    }

    /// The copy of the model in the store.
    ///
    /// - Throws: `migrationMissingSourceModel` (134130) for a store without one.
    func cachedModel() throws -> NSManagedObjectModel {
        #if canImport(CoreDataPostgreSQL)
        if !isFile {
            if let data = try PostgreSQLStore.cachedModel(at: url) {
                return try NSManagedObjectModel(cachedModelData: data)
            }
            throw CocoaError.described(
                .migrationMissingSourceModel,
                userInfo: [NSLocalizedDescriptionKey: "The store \(name) keeps no copy of its model."]
            )
        }
        #endif
        return try NSPersistentStoreCoordinator.cachedModelForPersistentStore(
            at: url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
    }
}
