import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

// Finds the models in a program's resources.

extension NSManagedObjectModel {
    /// Creates a model with all entities of the models found in some bundles.
    ///
    /// Models are searched in a bundle's resources, and in the resources of the package's other targets beside the main
    /// program (`*.resources`), as `.xcdatamodeld` and `.xcdatamodel` folders or compiled. An `.xcdatamodeld` and a
    /// `.momd` with the same name are one model, and so are an `.xcdatamodel` and a `.mom`.
    ///
    /// ```swift
    /// let model = NSManagedObjectModel.mergedModel(from: [Bundle.module])
    /// print(model?.entities.count ?? 0)
    /// ```
    ///
    /// - Parameter bundles: The bundles, or `nil` for the main one.
    /// - Returns: The model; `nil` if there is no model, one cannot be read, or two entities have the same name but
    ///   differ.
    public class func mergedModel(from bundles: [Bundle]?) -> NSManagedObjectModel? {
        guard let models = models(in: bundles), !models.isEmpty else { return nil }
        return NSManagedObjectModel(byMerging: models)
    }

    /// Creates a model with the entities of models in some bundles with which a store was written.
    ///
    /// All versions in an `.xcdatamodeld` or `.momd` folder are considered. If one version has all entities of the
    /// store, then all come from that version; otherwise each comes from the first version that has it. If a list of
    /// versions (`VersionInfo.plist`) leads to the version, then the other versions in the list are not read.
    ///
    /// - Parameters:
    ///   - bundles: The bundles, or `nil` for the main one.
    ///   - metadata: The store's metadata.
    /// - Returns: The model; `nil` if any entity of the store is missing in the store's version.
    public class func mergedModel(
        from bundles: [Bundle]?,
        forStoreMetadata metadata: [String: Any]
    ) -> NSManagedObjectModel? {
        guard let stored = versionHashes(in: metadata) else { return nil }
        var versions = BundledVersions(at: modelLocations(in: bundles))
        let models = versions.whole(for: stored).map { [$0] } ?? versions.all()
        return NSManagedObjectModel(byMerging: models, forStoreMetadata: metadata)
    }

    /// All versions of all models in some bundles, except those that cannot be read.
    package static func allVersions(in bundles: [Bundle]?) -> [NSManagedObjectModel] {
        modelLocations(in: bundles).flatMap(ModelPackage.versions(at:)).compactMap {
            try? NSManagedObjectModel(reading: $0)
        }
    }

    /// The current versions of the models in some bundles; `nil` if one cannot be read.
    static func models(in bundles: [Bundle]?) -> [NSManagedObjectModel]? {
        var models: [NSManagedObjectModel] = []
        for location in modelLocations(in: bundles) {
            guard let model = NSManagedObjectModel(contentsOf: location) else { return nil }
            models.append(model)
        }
        return models
    }

    /// The model of that name in the resources of the package's targets beside the main program.
    ///
    /// `nil` if there is none, or if several targets have one.
    package static func ofTargets(named name: String) -> NSManagedObjectModel? {
        let found = modelLocations(in: nil).filter { $0.deletingPathExtension().lastPathComponent == name }
        return found.count == 1 ? NSManagedObjectModel(contentsOf: found[0]) : nil
    }

    /// The folders and files of the models in some bundles.
    package static func modelLocations(in bundles: [Bundle]?) -> [URL] {
        resources(in: bundles, withExtensions: ["xcdatamodeld", "xcdatamodel", "momd", "mom"])
    }

    /// The resources of some kinds in bundles.
    ///
    /// `nil` means the main bundle, and the bundles of the package's other targets beside it.
    package static func resources(in bundles: [Bundle]?, withExtensions extensions: Set<String>) -> [URL] {
        var folders = (bundles ?? [.main]).map { $0.resourceURL ?? $0.bundleURL }
        if bundles == nil {
            folders += entries(of: Bundle.main.bundleURL, withExtensions: ["resources"])
        }
        var seen = Set<String>()
        let found = folders.flatMap { entries(of: $0, withExtensions: extensions) }.filter { entry in
            seen.insert(entry.resolvingSymlinksInPath().path).inserted
        }
        // The plugin writes a model in its editable form and in its compiled form; these are one model.
        let kinds = ["momd": "xcdatamodeld", "mom": "xcdatamodel"]
        let edited = Set(found.filter { kinds.values.contains($0.pathExtension) }.map(\.path))
        return found.filter { entry in
            guard let kind = kinds[entry.pathExtension] else { return true }
            return !edited.contains(entry.deletingPathExtension().appendingPathExtension(kind).path)
        }
    }

    /// The entries of a folder in the order of their names.
    ///
    /// The names are checked before URLs are made, because the folder of a program may have hundreds of other entries.
    private static func entries(of folder: URL, withExtensions extensions: Set<String>) -> [URL] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let wanted = names.filter { name in
            name.lastIndex(of: ".").map { extensions.contains(String(name[name.index(after: $0)...])) } ?? false
        }
        return wanted.sorted().map { folder.appendingPathComponent($0) }
    }
}
