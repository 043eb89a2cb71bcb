import CoreData

/// How a store of any version of the model becomes one of the present version.
enum IndexStages {
    /// How many packages are in memory at a time.
    private static let batch = 2000

    /// The stages.
    ///
    /// Version 2 calls the summary of a package its synopsis, and knows the domains of maintainers. Version 3 splits the version of a package.
    ///
    /// - Parameter progress: Told, from 0 to 1, how far the code of the stages is.
    /// - Returns: A manager for one store.
    /// - Throws: If a version of the model is missing.
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

    /// The versions of the model, the first one first.
    static func versions() throws -> [NSManagedObjectModelReference] {
        let folder = try PackageStore.versions
        return try ["DebianIndex", "DebianIndex 2", "DebianIndex 3"].map { name in
            let url = folder.appendingPathComponent(name + ".xcdatamodel")
            let model = try NSManagedObjectModel(reading: url)
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
    }

    /// Fills what is new, batch by batch.
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
    /// The IDs of what a request finds.
    fileprivate func fetchIDs(_ request: NSFetchRequest<Package>) throws -> [NSManagedObjectID] {
        let ids = NSFetchRequest<NSManagedObjectID>(entityName: request.entityName ?? "")
        ids.resultType = .managedObjectIDResultType
        return try fetch(ids)
    }
}

extension Package {
    /// What a version is made of, as Debian's policy has it: `[epoch:]upstream[-revision]`.
    static func parts(ofVersion version: String) -> (upstream: String, revision: String?) {
        let rest = version.split(separator: ":", maxSplits: 1).last.map(String.init) ?? version
        guard let hyphen = rest.lastIndex(of: "-") else { return (rest, nil) }
        return (String(rest[..<hyphen]), String(rest[rest.index(after: hyphen)...]))
    }
}

extension Maintainer {
    /// What stands behind the `@` of an address.
    static func domain(ofAddress address: String) -> String? {
        address.split(separator: "@", omittingEmptySubsequences: false).count == 2
            ? address.split(separator: "@").last.map(String.init) : nil
    }
}
