import Foundation

/// The digest and the checksum over the version hashes of a model's entities, for a store's metadata.
package enum SchemaHashes {
    /// The value under `NSStoreModelVersionHashesDigest` in a store's metadata.
    package static func digest(of hashes: [String: Data]) -> String {
        var message = Data()
        for (name, hash) in sorted(hashes) {
            message.append(contentsOf: name.utf8)
            message.append(hash)
        }
        return SHA2.sha512(message).base64EncodedString()
    }

    /// The value under `NSStoreModelVersionChecksumKey` in a store's metadata.
    package static func checksum(of hashes: [String: Data]) -> String {
        SHA2.sha256(sorted(hashes).reduce(into: Data()) { $0.append($1.value) }).base64EncodedString()
    }

    /// Sorts by name in byte order.
    ///
    /// For names beyond ASCII, that is not the order of `String`.
    private static func sorted(_ hashes: [String: Data]) -> [(key: String, value: Data)] {
        hashes.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }
}
