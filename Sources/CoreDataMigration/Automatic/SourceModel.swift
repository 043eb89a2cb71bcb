import CoreDataEssentials
import CoreDataModelFiles
import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// The model with which a store was written.
struct SourceModel {
    /// The place where it was found.
    enum Origin: String {
        case stages = "the stages"
        case bundles = "the program's bundles"
        case store = "the copy in the store"
    }

    /// A copy of the model, which is in use.
    let model: NSManagedObjectModel
    /// The configuration with the entities that the store holds; `nil` for all.
    let configuration: String?
    /// The entities that the store holds.
    let entities: [NSEntityDescription]
    let origin: Origin

    /// The place that is searched first, after the versions that are named.
    enum Preference {
        /// The program's bundles, whose version may have more than a copy.
        ///
        /// User info and templates of fetch requests are in no hash, and a copy lacks them.
        case bundles
        /// The store, so that nothing else has to be read, however many versions the program has.
        case store
    }

    /// Finds the model of a store among all versions in the program's bundles, and in the store itself.
    ///
    /// In each place, a single version that has all of the store's entities is preferred over entities of several
    /// versions.
    ///
    /// - Parameters:
    ///   - metadata: The store's metadata.
    ///   - url: The store.
    ///   - known: Versions that are searched first.
    ///   - preference: The place that is searched next.
    ///   - cachedModel: A closure that reads the copy of the model in the store.
    /// - Returns: The model.
    /// - Throws: `migrationMissingSourceModel` (134130) with the entities that no model has in the store's version, and
    ///   the errors of `cachedModel`.
    static func find(
        forStoreMetadata metadata: [String: Any],
        at url: URL,
        known: [NSManagedObjectModel] = [],
        preferring preference: Preference = .bundles,
        cachedModel: () throws -> Data?
    ) throws -> SourceModel {
        let stored = metadata["NSStoreModelVersionHashes"] as? [String: Data] ?? [:]
        if let found = make(known, stored: stored, metadata: metadata, origin: .stages) { return found }
        func copy() throws -> NSManagedObjectModel? {
            try cachedModel().flatMap { try? NSManagedObjectModel(cachedModelData: $0) }
        }
        var cached: NSManagedObjectModel?
        if preference == .store {
            cached = try copy()
            if let cached, let found = make([cached], stored: stored, metadata: metadata, origin: .store) {
                return found
            }
        }
        var bundled = BundledVersions(
            at: NSManagedObjectModel.modelLocations(in: nil)
                + NSManagedObjectModel.modelLocations(in: Bundle.allBundles + Bundle.allFrameworks)
        )
        if let whole = bundled.whole(for: stored),
            let found = make([whole], stored: stored, metadata: metadata, origin: .bundles)
        {
            return found
        }
        let versions = bundled.all()
        if let found = make(versions, stored: stored, metadata: metadata, origin: .bundles) { return found }
        if preference == .bundles {
            cached = try copy()
            if let cached, let found = make([cached], stored: stored, metadata: metadata, origin: .store) {
                return found
            }
        }
        throw missing(among: versions, cached: cached, stored: stored, metadata: metadata, url: url)
    }

    private static func make(
        _ models: [NSManagedObjectModel],
        stored: [String: Data],
        metadata: [String: Any],
        origin: Origin
    ) -> SourceModel? {
        guard !stored.isEmpty else { return nil }
        // A single model with all entities also has the entities to which they refer. Otherwise each entity may come
        // from another model.
        if let whole = NSManagedObjectModel.whole(in: models, for: stored),
            let copy = whole.copy(with: nil) as? NSManagedObjectModel
        {
            return use(copy, stored: stored, origin: origin)
        }
        guard let merged = NSManagedObjectModel(byMerging: models, forStoreMetadata: metadata),
            merged.entityVersionHashesByName == merged.hashesByPresentRule(of: stored)
        else { return nil }
        return use(merged, stored: stored, origin: origin)
    }

    /// Freezes a model that no other code uses.
    private static func use(_ model: NSManagedObjectModel, stored: [String: Data], origin: Origin) -> SourceModel? {
        let members = model.entities.filter { stored[$0.name ?? ""] != nil }
        let isPart = members.count < model.entities.count
        if isPart { model.setEntities(members, forConfigurationName: NSManagedObjectModel.exactConfigurationName) }
        do { try model.tryFreeze() } catch { return nil }
        let configuration = isPart ? NSManagedObjectModel.exactConfigurationName : nil
        return SourceModel(model: model, configuration: configuration, entities: members, origin: origin)
    }

    private static func missing(
        among models: [NSManagedObjectModel],
        cached: NSManagedObjectModel?,
        stored: [String: Data],
        metadata: [String: Any],
        url: URL
    ) -> CocoaError {
        var known: Set<Data> = []
        for model in models + [cached].compactMap({ $0 }) {
            known.formUnion(model.entityVersionHashesByName.values)
            known.formUnion(model.entities.compactMap(VersionHash.formerHash))
        }
        let unknown = stored.filter { !known.contains($0.value) }
        let names = unknown.keys.sorted().map { name in "\(name) (\(unknown[name]?.shortHex ?? ""))" }
        let reason =
            stored.isEmpty
            ? "its metadata has no version hashes"
            : names.isEmpty
                ? "no combination of the models has all of its entities"
                : "no model has \(names.joined(separator: ", "))"
        let copy =
            cached == nil
            ? "The store keeps no copy of its model either." : "The copy of a model in the store is of another version."
        return CocoaError.described(
            .migrationMissingSourceModel,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.placeName) cannot be migrated: the model that it was written with was not found. Among the \(models.count) versions in the program's bundles \(reason). \(copy) Add that version of the model to the bundle.",
                NSFilePathErrorKey: url.placeName,
                NSURLErrorKey: url,
                "URL": url,
                "metadata": metadata,
                "reason": "Can't find model for source store: \(reason)",
                incompatibleEntitiesErrorKey: unknown.keys.sorted(),
            ]
        )
    }
}

extension Data {
    /// The first eight digits of a hash, with which people distinguish hashes.
    var shortHex: String { prefix(4).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}
