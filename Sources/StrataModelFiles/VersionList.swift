import Foundation
import StrataKeys

/// The list of versions in a `.momd` folder, `VersionInfo.plist`.
package struct VersionList: Sendable {
    /// The name of the current version.
    ///
    /// A list of one version may lack it.
    package var currentVersion: String?
    /// The 32-byte hashes of each version's entities, by the names of versions and entities.
    package var hashes: [String: [String: Data]]

    package static let fileName = "VersionInfo.plist"
    static let currentKey = "NSManagedObjectModel_CurrentVersionName"
    private static let hashesKey = "NSManagedObjectModel_VersionHashes"
    private static let checksumsKey = "NSManagedObjectModel_VersionChecksums"

    package init(currentVersion: String?, hashes: [String: [String: Data]]) {
        self.currentVersion = currentVersion
        self.hashes = hashes
    }

    /// Reads the list of a `.momd` folder; `nil` if there is none, or if it cannot be read.
    ///
    /// Versions without hashes in the right form are left out.
    package init?(folder: URL) {
        guard folder.pathExtension == "momd",
            let data = try? ModelPackage.read(folder.appendingPathComponent(Self.fileName)),
            let entries = PropertyListSerialization.dictionary(from: data)
        else { return nil }
        currentVersion = entries[Self.currentKey] as? String
        hashes = (entries[Self.hashesKey] as? [String: Any] ?? [:]).compactMapValues { $0 as? [String: Data] }
    }

    /// The list in the form of a file, with the checksums of all versions.
    package func data() throws -> Data {
        var entries: [String: Any] = [
            Self.hashesKey: hashes,
            Self.checksumsKey: hashes.mapValues { SchemaHashes.checksum(of: $0) },
        ]
        if let currentVersion { entries[Self.currentKey] = currentVersion }
        return try PropertyListSerialization.data(fromPropertyList: entries, format: .xml, options: 0)
    }
}
