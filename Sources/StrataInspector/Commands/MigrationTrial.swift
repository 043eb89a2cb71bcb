import CoreData

/// A migration of a copy of a store, which is removed afterwards.
enum MigrationTrial {
    /// Migrates a copy.
    ///
    /// The copy of a file is in the folder for temporary files. The copy of a PostgreSQL store is in another schema of
    /// its database; a trial that was killed leaves it, and the next one removes it. It passes through a file that only the
    /// user may read. If the trial is killed before the copy is complete, then that file stays.
    ///
    /// - Parameters:
    ///   - place: The store.
    ///   - model: Its model.
    ///   - metadata: Its metadata.
    ///   - migrate: Migrates the copy.
    /// - Throws: The errors of copying, and of `migrate`.
    static func run(
        _ place: StorePlace,
        _ model: NSManagedObjectModel,
        _ metadata: [String: Any],
        _ migrate: (StorePlace) throws -> Void
    ) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        // Nobody else may read the copy.
        try FileManager.default.createDirectory(
            at: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        guard !place.isFile else {
            let copy = folder.appendingPathComponent(place.url.lastPathComponent)
            try NSPersistentStoreCoordinator.backUpPersistentStore(at: place.url, type: .sqlite, to: copy)
            return try migrate(StorePlace(url: copy, type: .sqlite))
        }
        let configuration = model.configuration(ofStoreMetadata: metadata)
        let copy = folder.appendingPathComponent("copy")
        let trial = try place.trial()
        try removeLeftover(at: trial, of: metadata, model)
        _ = try place.backUp(model, configuration: configuration, to: copy)
        do {
            _ = try trial.restore(copy, model, configuration: configuration)
            try FileManager.default.removeItem(at: copy)
            try migrate(trial)
        } catch {
            try? trial.destroy(model)
            throw error
        }
        try trial.destroy(model)
    }

    /// Removes the copy of a trial that was killed.
    private static func removeLeftover(
        at trial: StorePlace,
        of metadata: [String: Any],
        _ model: NSManagedObjectModel
    ) throws {
        let found: [String: Any]
        do { found = try Store.metadata(of: trial) } catch let error as CocoaError
            where error.code == .fileReadNoSuchFile
        {
            return
        }
        // A copy has the UUID of its store.
        guard found[NSStoreUUIDKey] as? String == metadata[NSStoreUUIDKey] as? String else {
            throw UsageError("there is another store at \(trial.name), where the copy would be")
        }
        try trial.destroy(model)
    }
}
