import Foundation
import StrataRows

extension NSPersistentStoreCoordinator {
    // MARK: - URLs and metadata

    /// The store at a URL.
    ///
    /// - Parameter URL: The URL that the store was added with.
    /// - Returns: The store, or `nil` if the coordinator has no store there.
    public func persistentStore(for URL: URL) -> NSPersistentStore? {
        openStore(at: URL)?.store
    }

    /// The URL of a store.
    ///
    /// - Parameter store: The store.
    /// - Returns: The URL; `/dev/null` for a store without one.
    public func url(for store: NSPersistentStore) -> URL {
        store.url ?? URL(fileURLWithPath: "/dev/null")
    }

    /// Informs the coordinator that a store's file has moved.
    ///
    /// For a SQLite store the file at the new URL must be the same store.
    ///
    /// - Parameters:
    ///   - url: The new place of the store.
    ///   - store: A store of this coordinator. For any other the result is false.
    /// - Returns: Whether the store uses the new URL now.
    @discardableResult
    public func setURL(_ url: URL, for store: NSPersistentStore) -> Bool {
        guard openStore(of: store) != nil else { return false }
        if let store = store as? any EngineStore { return store.move(to: url) }
        store.url = url
        return true
    }

    /// A store's metadata, with its type and UUID.
    ///
    /// ```swift
    /// for store in coordinator.persistentStores { print(coordinator.metadata(for: store)[NSStoreUUIDKey] ?? "") }
    /// ```
    ///
    /// - Parameter store: A store of this coordinator.
    /// - Returns: The metadata, with `NSStoreTypeKey`, `NSStoreUUIDKey` and the keys that the program has added.
    public func metadata(for store: NSPersistentStore) -> [String: Any] { store.metadata ?? [:] }

    /// Sets a store's metadata.
    ///
    /// It is written with the next save that has changes of that store, or that has no changes at all.
    ///
    /// - Parameters:
    ///   - metadata: All keys that the program wants to keep; `nil` for none. A SQLite store also keeps its internal
    ///     keys; for another store pass these too if they shall stay.
    ///   - store: A store of this coordinator.
    public func setMetadata(_ metadata: [String: Any]?, for store: NSPersistentStore) {
        store.metadata = metadata ?? [:]
    }

    /// Writes the metadata that was set since it was last written.
    func saveMetadata() throws {
        for entry in openStores where !entry.store.isReadOnly { try entry.naming { try entry.store.saveMetadata() } }
    }

    /// Reads the metadata of a store that is not open.
    ///
    /// ```swift
    /// let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: oldURL)
    /// print(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
    /// ```
    ///
    /// - Parameters:
    ///   - storeType: The type of the store.
    ///   - url: The place of the store.
    ///   - options: The options for adding the store; only the time-out of a database is used.
    /// - Returns: The metadata.
    /// - Throws: `persistentStoreInvalidType` (134000) for an unknown type, `persistentStoreOpen` (134080) for a
    ///   store in memory.
    ///   `fileReadNoSuchFile` (260), `fileReadNoPermission` (257) or `fileReadCorruptFile` (259) for a file that
    ///   cannot be read.
    ///   `persistentStoreTypeMismatch` (134010) for a database that is no store, and `persistentStoreTimeout`
    ///   (134090) if other processes keep it locked.
    public class func metadataForPersistentStore(
        type storeType: NSPersistentStore.StoreType,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) throws -> [String: Any] {
        try StoreTypes.required(storeType.rawValue).metadata(at: url, options: options)
    }

    /// The older spelling of ``metadataForPersistentStore(type:at:options:)``; without a type SQLite is assumed.
    ///
    /// - Parameters:
    ///   - storeType: The type of the store; `nil` for SQLite.
    ///   - url: The place of the store.
    ///   - options: The options of the newer spelling.
    /// - Returns: The metadata.
    /// - Throws: The errors of the newer spelling.
    public class func metadataForPersistentStore(
        ofType storeType: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) throws -> [String: Any] {
        try metadataForPersistentStore(type: .init(rawValue: storeType ?? NSSQLiteStoreType), at: url, options: options)
    }

    /// Rewrites the metadata of a store that is not open.
    ///
    /// - Parameters:
    ///   - metadata: All keys that the program wants to keep; `nil` for none. SQLite and binary stores also keep their
    ///     internal keys.
    ///   - storeType: The type of the store.
    ///   - url: The place of the store.
    ///   - options: Ignored.
    /// - Throws: `persistentStoreInvalidType` (134000) for an unknown type and for a store in memory.
    ///   Otherwise the errors of ``metadataForPersistentStore(type:at:options:)``, but `sqlite` (134180) for a SQLite
    ///   file that does not exist.
    ///   `fileWriteNoPermission` (513) or `fileWriteOutOfSpace` (640) for a file that cannot be written.
    public class func setMetadata(
        _ metadata: [String: Any]?,
        type storeType: NSPersistentStore.StoreType,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) throws {
        try StoreTypes.required(storeType.rawValue).setMetadata(metadata, forPersistentStoreAt: url)
    }

    /// The older spelling of ``setMetadata(_:type:at:options:)``.
    ///
    /// - Parameters:
    ///   - metadata: All keys that the program wants to keep; `nil` for none. SQLite and binary stores also keep their
    ///     internal keys.
    ///   - storeType: The type of the store; `nil` for SQLite.
    ///   - url: The place of the store.
    ///   - options: Ignored.
    /// - Throws: The errors of the newer spelling.
    public class func setMetadata(
        _ metadata: [String: Any]?,
        forPersistentStoreOfType storeType: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) throws {
        try setMetadata(metadata, type: .init(rawValue: storeType ?? NSSQLiteStoreType), at: url, options: options)
    }

    // MARK: - Store classes

    /// The types of stores that can be added.
    public class var registeredStoreTypes: [String: NSValue] { StoreTypes.all }

    /// Registers a class for the stores of a type; `nil` removes the registration.
    ///
    /// ```swift
    /// final class Notes: NSAtomicStore {}
    /// NSPersistentStoreCoordinator.registerStoreClass(Notes.self, type: NSPersistentStore.StoreType(rawValue: "Notes"))
    /// ```
    ///
    /// - Parameters:
    ///   - storeClass: A subclass of ``NSAtomicStore`` or ``NSIncrementalStore``; `nil` removes the registration.
    ///   - storeType: The type that stores are added with.
    public class func registerStoreClass(_ storeClass: AnyClass?, type storeType: NSPersistentStore.StoreType) {
        StoreTypes.register(storeClass as? NSPersistentStore.Type, storeType.rawValue)
    }

    /// The older spelling of ``registerStoreClass(_:type:)``.
    ///
    /// - Parameters:
    ///   - storeClass: A subclass of ``NSAtomicStore`` or ``NSIncrementalStore``; `nil` removes the registration.
    ///   - storeType: The type that stores are added with.
    public class func registerStoreClass(_ storeClass: AnyClass?, forStoreType storeType: String) {
        StoreTypes.register(storeClass as? NSPersistentStore.Type, storeType)
    }
}
