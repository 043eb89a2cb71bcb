import Foundation

extension PropertyListSerialization {
    /// The metadata of a store as a binary property list, the form in which stores keep it.
    ///
    /// - Throws: `persistentStoreSave` (134030) if a value cannot be in a property list.
    package static func data(ofMetadata metadata: [String: Any]) throws -> Data {
        guard propertyList(metadata, isValidFor: .binary),
            let data = try? data(fromPropertyList: metadata, format: .binary, options: 0)
        else {
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store's metadata cannot be written: all values must be of property-list types."
                ]
            ).marked(.request)
        }
        return data
    }
}
