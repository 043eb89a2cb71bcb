import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

extension NSManagedObjectModel {
    /// The checksums of all versions of a model.
    ///
    /// - Parameter url: An `.xcdatamodeld` or `.momd` folder, or a single model.
    /// - Returns: ``versionChecksum`` of each version, by the name of its file without extension.
    /// - Throws: The errors of ``init(reading:)``, if one of the versions cannot be read or there is none.
    public class func __checksumsForVersionedModel(at url: URL) throws -> [String: String] {
        let versions = ModelPackage.versions(at: url)
        // An empty folder leads to the same error as reading it.
        if versions.isEmpty { _ = try NSManagedObjectModel(reading: url) }
        var checksums: [String: String] = [:]
        for version in versions {
            let name = version.deletingPathExtension().lastPathComponent
            checksums[name] = try NSManagedObjectModel(reading: version).versionChecksum
        }
        return checksums
    }
}
