import CoreDataEssentials
import Foundation
import StrataRows

extension [StoreBatch] {
    /// The error of a store, extended by the changes that the batch had already made in other stores.
    ///
    /// Its domain and code stay the same. If the error is not of Cocoa's domain, then it is also the underlying
    /// error.
    func told(in error: any Error) -> any Error {
        var told: [String: Any] = [NSBatchChangedStoresErrorKey: map { $0.store.store as NSPersistentStore }]
        // If the rows could be listed only in part, then readers would take the part for the whole.
        if allSatisfy(\.changes.unlistedRoots.isEmpty) {
            let kinds: [(NSManagedObjectContext.NotificationKey, [KeyPath<BatchChanges, [BatchRows]>])] = [
                (.insertedObjects, [\.inserted]), (.updatedObjects, [\.changed, \.followed, \.related]),
                (.deletedObjects, [\.deleted]),
            ]
            for (key, kind) in kinds {
                let ids = ids(kind)
                if !ids.isEmpty { told[key.rawValue] = ids }
            }
        }
        if let error = error as? CocoaError {
            return CocoaError.described(error.code, userInfo: error.userInfo.merging(told) { $1 })
        }
        told[NSUnderlyingErrorKey] = error
        let plain = error as NSError
        return NSError(domain: plain.domain, code: plain.code, userInfo: plain.userInfo.merging(told) { $1 })
    }
}
