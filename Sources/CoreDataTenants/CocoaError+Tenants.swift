import CoreDataEssentials
import Foundation

extension CocoaError {
    /// The error for a tenant that has no store.
    static func missingTenant(_ name: String) -> CocoaError {
        .described(.fileReadNoSuchFile, userInfo: [NSLocalizedDescriptionKey: "There is no tenant \(name)."])
    }

    /// The error for a new tenant that has a store already.
    static func existingTenant(_ name: String) -> CocoaError {
        .described(.fileWriteFileExists, userInfo: [NSLocalizedDescriptionKey: "There is a tenant \(name) already."])
    }

    /// The error for a tenant that is to be destroyed and is used.
    static func usedTenant(_ name: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store of the tenant \(name) is in use. Release all its Tenant objects first."
            ]
        ).marked(.environment)
    }

    /// The error for all calls after the container of the tenants was closed.
    static var closedTenants: CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [NSLocalizedDescriptionKey: "The stores of the tenants are closed."]
        ).marked(.environment)
    }
}
