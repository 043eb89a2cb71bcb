import Foundation
import StrataRows

extension [StoreBatch] {
    /// The error of a store, with what the batch had changed in others by then.
    ///
    /// Its domain and code are as they were. An error that is not of Cocoa's domain is the underlying one.
    func told(in error: any Error) -> any Error {
        var told: [String: Any] = [NSBatchChangedStoresErrorKey: map { $0.store.store as NSPersistentStore }]
        // A part of them would be taken for all.
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
