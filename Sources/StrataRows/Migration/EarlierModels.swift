import Foundation
import StrataKeys
import StrataPredicates

/// The versions of its model that a store has left by migrations, in the order in which its metadata lists them.
///
/// A program whose model is one of them is older than the store.
package enum EarlierModels {
    /// The key of the list in the metadata, whose values are the checksums of the versions.
    package static let key = "StrataEarlierModels"

    /// Whether a store has left the version with certain hashes.
    ///
    /// - Parameters:
    ///   - hashes: The version hashes of the entities, by name.
    ///   - metadata: The metadata of the store.
    /// - Returns: Whether it has.
    package static func contain(_ hashes: [String: Data], in metadata: [String: Any]) -> Bool {
        list(metadata).contains(SchemaHashes.checksum(of: hashes))
    }

    /// Notes a migration in the metadata.
    ///
    /// A store that goes back to a version has not left the versions after that one, so it may go forward again.
    ///
    /// - Parameters:
    ///   - old: The version hashes that the store had; empty for a new store.
    ///   - new: The version hashes that the store has from now on.
    ///   - metadata: The metadata of the store.
    package static func note(from old: [String: Data], to new: [String: Data], in metadata: inout [String: Any]) {
        guard !old.isEmpty, old != new else { return }
        var left = list(metadata)
        if let index = left.firstIndex(of: SchemaHashes.checksum(of: new)) {
            left.removeSubrange(index...)
        } else {
            left.append(SchemaHashes.checksum(of: old))
        }
        metadata[key] = left.isEmpty ? nil : left
    }

    private static func list(_ metadata: [String: Any]) -> [String] { metadata[key] as? [String] ?? [] }
}
