import Foundation
import StrataRows

/// User info: the names of the entities in which a store differs from the model.
package let incompatibleEntitiesErrorKey = "NSEntitiesThatDiffer"

extension NSManagedObjectModel {
    /// Refuses a store that was made with another version of the model.
    package func requireVersion(
        ofStoreMetadata metadata: [String: Any],
        configuration: String?,
        at place: String
    ) throws {
        guard !isConfiguration(withName: configuration, compatibleWithStoreMetadata: metadata) else { return }
        let names = entitiesThatDiffer(fromStoreMetadata: metadata, configuration: configuration)
        throw CocoaError.described(
            .persistentStoreIncompatibleVersionHash,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place) was made with another version of the model. Entities that differ: \(names.joined(separator: ", ")).",
                NSFilePathErrorKey: place,
                "metadata": metadata,
                "reason": "The model used to open the store is incompatible with the one used to create the store",
                incompatibleEntitiesErrorKey: names,
            ]
        )
    }
}
