import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

/// The versions of models in some places; each is read when it is needed.
///
/// The lists of compiled models contain the hashes of each version. If a list leads to a version, then the version is
/// read and compared. So a missing or wrong list takes time, but does not lead to a wrong model.
package struct BundledVersions {
    private struct Version {
        let file: URL
        /// The hashes of the version in a list; `nil` if no list has any.
        let listed: [String: Data]?
    }

    private let versions: [Version]
    /// The models that were read, by position; `nil` for a version that cannot be read.
    private(set) var read: [Int: NSManagedObjectModel?] = [:]

    /// - Parameter locations: Folders and files of models. If one is named twice, then its versions count once.
    package init(at locations: [URL]) {
        var seen: Set<String> = []
        versions = locations.filter { seen.insert($0.resolvingSymlinksInPath().path).inserted }
            .flatMap { location -> [Version] in
                let list = Self.list(of: location)
                return ModelPackage.versions(at: location).map { file in
                    let name = file.deletingPathExtension().lastPathComponent
                    return Version(file: file, listed: list?.hashes[name])
                }
            }
    }

    /// The list of a compiled model; for an editable model, the list of the compiled one beside it, from the plugin.
    private static func list(of location: URL) -> VersionList? {
        guard ["momd", "xcdatamodeld"].contains(location.pathExtension) else { return nil }
        return VersionList(folder: location.deletingPathExtension().appendingPathExtension("momd"))
    }

    /// The single version that fits a store, chosen as ``NSManagedObjectModel/whole(in:for:)`` does.
    ///
    /// If lists lead to a version, then only that version and the versions without a list are read.
    ///
    /// - Parameter stored: The version hashes of the store's entities, by name.
    /// - Returns: The version; `nil` if no version has all entities.
    package mutating func whole(for stored: [String: Data]) -> NSManagedObjectModel? {
        guard !stored.isEmpty else { return nil }
        func isExact(_ model: NSManagedObjectModel) -> Bool {
            model.entityVersionHashesByName == model.hashesByPresentRule(of: stored)
        }
        func isWhole(_ model: NSManagedObjectModel) -> Bool {
            NSManagedObjectModel.whole(in: [model], for: stored) != nil
        }
        if let found = first(where: { $0 == stored }, isExact) { return found }
        if let found = first(where: { $0 == nil }, isExact) { return found }
        // A store may hold only a part of the model.
        func hasAll(_ listed: [String: Data]?) -> Bool { stored.allSatisfy { listed?[$0.key] == $0.value } }
        if let found = first(where: hasAll, isWhole) { return found }
        return NSManagedObjectModel.whole(in: all(), for: stored)
    }

    /// All versions that can be read.
    package mutating func all() -> [NSManagedObjectModel] {
        var models: [NSManagedObjectModel] = []
        for position in versions.indices {
            if let model = model(at: position) { models.append(model) }
        }
        return models
    }

    private mutating func first(
        where isMeant: ([String: Data]?) -> Bool,
        _ fits: (NSManagedObjectModel) -> Bool
    ) -> NSManagedObjectModel? {
        for position in versions.indices where isMeant(versions[position].listed) {
            if let model = model(at: position), fits(model) { return model }
        }
        return nil
    }

    private mutating func model(at position: Int) -> NSManagedObjectModel? {
        if let known = read[position] { return known }
        let model = try? NSManagedObjectModel(reading: versions[position].file)
        read.updateValue(model, forKey: position)
        return model
    }
}
