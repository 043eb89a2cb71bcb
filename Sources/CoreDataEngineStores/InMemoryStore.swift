import CoreDataEssentials
import Foundation
import StrataKeys
import StrataLocks
import StrataMemoryStore
import StrataRows

/// A store that keeps its rows in memory.
///
/// For contexts it behaves like a SQLite store: it has versions, unique constraints, and all-or-nothing saves. Its
/// contents are lost when it is removed from its coordinator.
package final class InMemoryStore: NSPersistentStore, EngineStore, WholeStore, @unchecked Sendable {
    // @unchecked Sendable: `opened` is protected by its mutex; the superclass is responsible for the rest.

    private let opened = Locked<MemoryEngine?>(nil)

    package var engine: any RowStore {
        get throws {
            if let engine = opened.withLock({ $0 }) { return engine }
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store in memory needs a coordinator."]
            )
        }
    }

    package override var type: String { NSInMemoryStoreType }

    package override func loadMetadata() throws {
        guard let model = persistentStoreCoordinator?.managedObjectModel else { return }
        opened.withLock { $0 = MemoryEngine(model.frozen.schema, timeout: StoreOption.timeout(options)) }
        metadata = [
            NSStoreTypeKey: NSInMemoryStoreType,
            NSStoreUUIDKey: identifier ?? "",
            NSStoreModelVersionHashesKey: model.versionHashes(forConfigurationName: configurationName) ?? [:],
            NSStoreModelVersionIdentifiersKey: model.versionIdentifiers.compactMap { $0 as? String }.sorted(),
        ]
    }

    /// Does nothing: the contents of a store in memory are lost once it is closed.
    package static func destroyStore(at url: URL, options: [AnyHashable: Any]?) {}

    package static func replaceStore(
        at destination: URL,
        _ destinationOptions: [AnyHashable: Any]?,
        withStoreAt source: URL,
        _ sourceOptions: [AnyHashable: Any]?
    ) throws {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [NSLocalizedDescriptionKey: "Stores of type \(NSInMemoryStoreType) cannot be replaced."]
        )
    }

    package static func backUpStore(at url: URL, _ options: [AnyHashable: Any]?, to destination: URL) throws {
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [NSLocalizedDescriptionKey: "Stores of type \(NSInMemoryStoreType) cannot be backed up."]
        )
    }

    package override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        throw CocoaError.described(
            .persistentStoreOpen,
            userInfo: [NSLocalizedDescriptionKey: "A store in memory has no metadata before it is added."]
        )
    }
}
