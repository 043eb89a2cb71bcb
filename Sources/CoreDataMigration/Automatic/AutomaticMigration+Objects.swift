import CoreDataEssentials
import StrataPredicates
import StrataRows
import StrataSQLiteStore

// Migration object by object, for mapping models, and for stores that cannot be changed in place. It uses the migration
// manager.

extension AutomaticMigration {
    /// Migrates the store by a mapping model of the program's bundles, if one fits.
    ///
    /// - Returns: Whether one fits. Even then the store may be unchanged, if another process or thread has written to
    ///   it meanwhile.
    func migrateByMappingModel(from source: SourceModel, _ metadata: [String: Any]) throws -> Bool {
        guard let found = search(from: source).fitting.first else { return false }
        // A policy may look for parts of the model that the store's copy does not have.
        let source = source.origin == .store ? try self.source(metadata) : source
        let mapping = NSMappingModel()
        mapping.entityMappings = found.mappings
        try backUpBefore(metadata)
        let log = MigrationLog(url, from: source, to: model, by: "the mapping model \(found.url.lastPathComponent)")
        // If others have written to the store meanwhile, then the code that adds the store tries again.
        if try migrate(by: mapping, from: source) { log.end() }
        return true
    }

    /// Refuses to drop data of a store that is migrated object by object.
    ///
    /// - Throws: `migration` (134110) with all that would be lost.
    func requireNoLoss(_ mapping: InferredMapping, from source: SourceModel) throws {
        let stack = try MigrationStack.source(
            model: source.model,
            configuration: source.configuration,
            type: type,
            at: url,
            options: options
        )
        defer { stack.close() }
        let losses = try LossyMigration.losses(mapping, in: stack)
        if !losses.isEmpty { throw MigrationErrors.losses(url, losses) }
    }

    /// Migrates a custom store, object by object.
    func migrateObjects(by mapping: InferredMapping, from source: SourceModel, _ metadata: [String: Any]) throws {
        _ = try migrate(by: NSMappingModel(mapping), from: source)
    }

    /// Migrates the store by a mapping model that was given.
    ///
    /// - Throws: `migration` (134110) if other processes or threads write to the store all the time.
    func run(_ metadata: [String: Any], by mapping: NSMappingModel) throws {
        let source = try source(metadata)
        let log = MigrationLog(url, from: source, to: model, by: "a mapping model that was named")
        for _ in 0..<StoreToMigrate.mostAttempts where try migrate(by: mapping, from: source) { return log.end() }
        throw MigrationFailure.error(
            .migration,
            "The store \(url.placeName) was written to by others each time its migration was complete. Try again when they are done.",
            url: url
        )
    }

    /// The reasons why the mapping models of the bundles do not fit, one sentence each; empty if there are none.
    func nearMisses(from source: SourceModel) -> String {
        search(from: source).others.prefix(3).map { other in
            "The mapping model \(other.url.lastPathComponent) does not fit: \(other.problems.prefix(5).joined(separator: " "))"
        }.joined(separator: " ")
    }

    /// Whether a mapping model leads from a version to this one in one step.
    func hasMappingModel(from source: SourceModel) -> Bool { !search(from: source).fitting.isEmpty }

    private func search(from source: SourceModel) -> MappingModelSearch { search(from: source.model, to: model) }

    /// Searches the mapping models beside the versions that the options name, and those of the program's bundles.
    func search(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) -> MappingModelSearch {
        guard let mappingFolder else { return Self.search(from: source, to: destination) }
        let beside = MappingModelSearch(in: mappingFolder, from: source, to: destination)
        return beside.fitting.isEmpty ? beside.merging(Self.search(from: source, to: destination)) : beside
    }

    /// Searches the mapping models of the program's bundles.
    static func search(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) -> MappingModelSearch {
        var seen: Set<String> = []
        let bundles = (Bundle.allBundles + Bundle.allFrameworks).filter { seen.insert($0.bundlePath).inserted }
        let main = MappingModelSearch(nil, from: source, to: destination)
        guard main.fitting.isEmpty else { return main }
        return main.merging(MappingModelSearch(bundles, from: source, to: destination))
    }

    /// - Returns: Whether the store was migrated; false if others have written to it meanwhile.
    private func migrate(by mapping: NSMappingModel, from source: SourceModel) throws -> Bool {
        let storeClass = try StoreTypes.required(type)
        let managerClass = storeClass.migrationManagerClass() as? NSMigrationManager.Type ?? NSMigrationManager.self
        let manager = managerClass.init(sourceModel: source.model, destinationModel: model)
        let start = ContinuousClock.now
        if let progress {
            manager.step = { [unowned manager] fraction in
                do { try progress.advance(to: Double(fraction)) } catch { manager.cancelMigrationWithError(error) }
            }
        }
        defer { MigrationLog.note(url, "object by object, in \(ContinuousClock.now - start)") }
        return try manager.migrateInPlace(
            StorePlace(url: url, type: type, options: options),
            mapping,
            from: source.configuration,
            to: configuration
        )
    }
}
