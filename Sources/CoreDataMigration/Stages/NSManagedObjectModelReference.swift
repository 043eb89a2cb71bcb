import CoreDataEssentials
import CoreDataModelFiles
import StrataLocks
import StrataModelFiles
import StrataPredicates

/// A version of a model, which is identified by its checksum and read when it is needed.
///
/// The checksum shows that the version was not edited since it was shipped. It is the same as in
/// ``NSManagedObjectModel/versionChecksum``, `VersionInfo.plist`, and Xcode's build log.
///
/// Any thread may use it.
///
/// ```swift
/// let reference = NSManagedObjectModelReference(model: old, versionChecksum: old.versionChecksum)
/// print(try reference.resolve().entities.count)
/// ```
public final class NSManagedObjectModelReference: NSObject, @unchecked Sendable {
    // @unchecked Sendable: `found` is protected by its mutex, and the other properties are constants.

    private enum Place {
        case model(NSManagedObjectModel)
        case file(URL)
        case hashes([String: Data], Bundle)
        case name(String, Bundle)
    }

    private let place: Place
    private let found = Locked<UncheckedBox<NSManagedObjectModel>?>(nil)
    // Unchecked: a model is not changed once it is in use.

    /// The checksum that the model must have.
    public let versionChecksum: String

    /// A reference to a model that was read already.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - versionChecksum: The checksum that it must have.
    public init(model: NSManagedObjectModel, versionChecksum: String) {
        place = .model(model)
        self.versionChecksum = versionChecksum
    }

    /// A reference to a model in a file.
    ///
    /// - Parameters:
    ///   - fileURL: The model, in any form that ``NSManagedObjectModel/init(contentsOf:)`` takes. In a folder of
    ///     versions, the reference is to the version with the checksum.
    ///   - versionChecksum: The checksum that it must have.
    public init(fileURL: URL, versionChecksum: String) {
        place = .file(fileURL)
        self.versionChecksum = versionChecksum
    }

    /// A reference to the version with certain entities, among all versions of all models of a bundle.
    ///
    /// - Parameters:
    ///   - versionHash: The version hashes by the names of the entities.
    ///   - bundle: The bundle; `nil` for the main one.
    ///   - versionChecksum: The checksum that the model must have.
    public init(entityVersionHashes versionHash: [AnyHashable: Any], in bundle: Bundle?, versionChecksum: String) {
        var hashes: [String: Data] = [:]
        for (name, hash) in versionHash { if let name = name as? String { hashes[name] = hash as? Data } }
        place = .hashes(hashes, bundle ?? .main)
        self.versionChecksum = versionChecksum
    }

    /// A reference to a model of a bundle by its name.
    ///
    /// - Parameters:
    ///   - modelName: The name of the file or folder without its extension, or of one version in such a folder.
    ///   - bundle: The bundle; `nil` for the main one.
    ///   - versionChecksum: The checksum that the model must have.
    public init(name modelName: String, in bundle: Bundle?, versionChecksum: String) {
        place = .name(modelName, bundle ?? .main)
        self.versionChecksum = versionChecksum
    }

    /// The model.
    ///
    /// If there is no model with that checksum, then the program stops; ``resolve()`` throws instead. A staged
    /// migration uses ``resolve()``, so a reference without a model is an error of adding the store.
    public var resolvedModel: NSManagedObjectModel {
        do {
            return try resolve()
        } catch {
            fatalError("CoreData: \(error.localizedDescription)")
        }
    }

    /// Finds the model; it is read once.
    ///
    /// An addition to Apple's API, whose property raises an exception.
    ///
    /// - Returns: The model.
    /// - Throws: 134504 (`NSManagedObjectModelReferenceNotFoundError`) if there is no such model, or it has another
    ///   checksum.
    public func resolve() throws -> NSManagedObjectModel {
        if let known = found.withLock({ $0 }) { return known.value }
        let candidates = candidates
        guard let model = candidates.first(where: { $0.hasChecksum(versionChecksum) }) else {
            let checksums = Set(candidates.map(\.versionChecksum)).sorted()
            throw StageFailure.error(
                .modelReferenceNotFound,
                candidates.isEmpty
                    ? "There is no model \(describedPlace)."
                    : "The model \(describedPlace) has checksum \(checksums.joined(separator: ", ")), not \(versionChecksum). Was it edited after it was shipped?",
                checksum: versionChecksum,
                known: checksums
            )
        }
        let box = UncheckedBox(model)
        found.withLock { $0 = box }
        return model
    }

    /// The models to which the reference may refer.
    private var candidates: [NSManagedObjectModel] {
        switch place {
        case .model(let model): return [model]
        case .file(let url): return Self.versions(at: url)
        case .hashes(let hashes, let bundle):
            var versions = BundledVersions(at: Self.locations(in: bundle))
            let found = versions.whole(for: hashes)
            return [found].compactMap(\.self).filter {
                $0.entityVersionHashesByName == $0.hashesByPresentRule(of: hashes)
            }
        case .name(let name, let bundle):
            let locations = Self.locations(in: bundle)
            let named = locations.filter { $0.deletingPathExtension().lastPathComponent == name }
            let versions = locations.flatMap(ModelPackage.versions(at:))
                .filter { $0.deletingPathExtension().lastPathComponent == name }
            return named.flatMap(Self.versions) + versions.compactMap { NSManagedObjectModel(contentsOf: $0) }
        }
    }

    private static func locations(in bundle: Bundle) -> [URL] {
        // A package's program has the resources of its main bundle in bundles beside it.
        NSManagedObjectModel.resources(
            in: bundle === Bundle.main ? nil : [bundle],
            withExtensions: ["xcdatamodeld", "xcdatamodel", "momd", "mom"]
        )
    }

    private static func versions(at url: URL) -> [NSManagedObjectModel] {
        ModelPackage.versions(at: url).compactMap { NSManagedObjectModel(contentsOf: $0) }
    }

    private var describedPlace: String {
        switch place {
        case .model: "that the reference was made with"
        case .file(let url): "at \(url.path)"
        case .hashes(let hashes, let bundle):
            "with entities \(hashes.keys.sorted().joined(separator: ", ")) in the given versions in \(bundle.bundlePath)"
        case .name(let name, let bundle): "\"\(name)\" in \(bundle.bundlePath)"
        }
    }
}
