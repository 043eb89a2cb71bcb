import CoreData

/// The stages by which a store of any version of the model is migrated to the present version.
enum IndexStages {
    /// The most packages in memory at a time.
    private static let batch = 2000

    /// Makes the manager of the stages.
    ///
    /// In version 2, the summary of a package is called its synopsis, and the domains of maintainers are known. In
    /// version 3, the version of a package is split.
    ///
    /// - Parameter progress: Receives the progress of the stages' code, from 0 to 1.
    /// - Returns: A manager for one store.
    /// - Throws: An error if a version of the model is missing.
    static func manager(_ progress: @escaping @Sendable (Double) -> Void) throws -> NSStagedMigrationManager {
        let references = try versions()
        let renaming = NSLightweightMigrationStage(references: Array(references.prefix(2)))
        renaming.label = "synopsis and domains"
        let splitting = NSCustomMigrationStage(migratingFrom: references[1], to: references[2])
        splitting.label = "parts of versions"
        splitting.didMigrateHandler = { manager, _ in
            guard let container = manager.container else { return }
            try fill(container.newBackgroundContext(), progress)
        }
        return NSStagedMigrationManager([renaming, splitting])
    }

    /// The versions of the model, oldest first.
    static func versions() throws -> [NSManagedObjectModelReference] {
        let folder = try PackageStore.versions
        return try ["DebianIndex", "DebianIndex 2", "DebianIndex 3"].map { name in
            let url = folder.appendingPathComponent(name + ".xcdatamodel")
            let model = try NSManagedObjectModel(reading: url)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
    }

    /// Fills in new values, batch by batch.
    private static func fill(_ context: NSManagedObjectContext, _ progress: (Double) -> Void) throws {
        try context.performAndWait {
            for maintainer in try context.fetch(NSFetchRequest<Maintainer>(entityName: "Maintainer")) {
                maintainer.domain = maintainer.email.flatMap(Maintainer.domain)
            }
            try context.save()
            let request = NSFetchRequest<Package>(entityName: "Package")
            let ids = try context.fetchIDs(request)
            for start in stride(from: 0, to: ids.count, by: batch) {
                progress(Double(start) / Double(ids.count))
                request.predicate = NSPredicate(format: "SELF IN %@", Array(ids[start..<min(start + batch, ids.count)]))
                for package in try context.fetch(request) {
                    (package.upstreamVersion, package.revision) = Package.parts(ofVersion: package.version)
                }
                try context.save()
                context.reset()
            }
            progress(1)
        }
    }
}

extension NSManagedObjectContext {
    /// The IDs of the objects that a request finds.
    fileprivate func fetchIDs(_ request: NSFetchRequest<Package>) throws -> [NSManagedObjectID] {
        let ids = NSFetchRequest<NSManagedObjectID>(entityName: request.entityName ?? "")
        ids.resultType = .managedObjectIDResultType
        return try fetch(ids)
    }
}

extension Package {
    /// The parts of a version, according to Debian's policy: `[epoch:]upstream[-revision]`.
    static func parts(ofVersion version: String) -> (upstream: String, revision: String?) {
        let rest = version.split(separator: ":", maxSplits: 1).last.map(String.init) ?? version
        guard let hyphen = rest.lastIndex(of: "-") else { return (rest, nil) }
        return (String(rest[..<hyphen]), String(rest[rest.index(after: hyphen)...]))
    }
}

extension Maintainer {
    /// The text after the `@` of an address.
    static func domain(ofAddress address: String) -> String? {
        address.split(separator: "@", omittingEmptySubsequences: false).count == 2
            ? address.split(separator: "@").last.map(String.init) : nil
    }
}
