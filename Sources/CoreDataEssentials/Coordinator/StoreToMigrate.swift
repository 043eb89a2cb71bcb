import Foundation
import StrataLocks

/// A store that is being added, and was written with another version of the model.
package struct StoreToMigrate {
    /// The model that the store shall fit, which is in use.
    package let model: NSManagedObjectModel
    /// The configuration whose entities the store shall hold, or `nil` for all.
    package let configuration: String?
    package let type: String
    package let url: URL
    package let options: [AnyHashable: Any]

    package init(
        model: NSManagedObjectModel,
        configuration: String?,
        type: String,
        url: URL,
        options: [AnyHashable: Any]
    ) {
        self.model = model
        self.configuration = configuration
        self.type = type
        self.url = url
        self.options = options
    }

    /// Whether stores are migrated when they are added.
    package static func isWanted(_ options: [AnyHashable: Any]?) -> Bool {
        StoreOption.flag(options?[NSMigratePersistentStoresAutomaticallyOption])
            && !StoreOption.flag(options?[NSIgnorePersistentStoreVersioningOption])
    }

    /// How often the store is tried again if other processes migrate it too.
    package static let mostAttempts = 3

    /// Whether tests have switched off that migrations look for others.
    package static var ignoresOthers: Bool { FaultGuard.migrationCheck.isOff }
}
