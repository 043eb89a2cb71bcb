import Foundation
import StrataMemoryStore
import StrataRows

/// A store that keeps its rows in memory, with the same behaviour as a SQLite store towards contexts: versions, unique
/// constraints, all-or-nothing saves.
///
/// Gone when it is removed from its coordinator.
final class InMemoryStore: NSPersistentStore, EngineStore, WholeStore, @unchecked Sendable {
    // @unchecked Sendable: `opened` is behind its mutex; the rest is the superclass's.

    private let opened = Mutex<MemoryEngine?>(nil)

    package var engine: any RowStore {
        get throws {
            if let engine = opened.withLock({ $0 }) { return engine }
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "A store in memory needs a coordinator."]
            )
        }
    }

    override var type: String { NSInMemoryStoreType }

    override func loadMetadata() throws {
        guard let model = persistentStoreCoordinator?.managedObjectModel else { return }
        opened.withLock { $0 = MemoryEngine(model.frozen.schema, timeout: StoreOption.timeout(options)) }
        metadata = [
            NSStoreTypeKey: NSInMemoryStoreType,
            NSStoreUUIDKey: identifier ?? "",
            NSStoreModelVersionHashesKey: model.versionHashes(forConfigurationName: configurationName) ?? [:],
            NSStoreModelVersionIdentifiersKey: model.versionIdentifiers.compactMap { $0 as? String }.sorted(),
        ]
    }

    /// Does nothing: a store in memory is gone once it is closed.
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

    override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        throw CocoaError.described(
            .persistentStoreOpen,
            userInfo: [NSLocalizedDescriptionKey: "A store in memory has no metadata before it is added."]
        )
    }
}
