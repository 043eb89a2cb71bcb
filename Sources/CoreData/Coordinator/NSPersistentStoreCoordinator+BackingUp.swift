import Foundation
import StrataRows

extension NSPersistentStoreCoordinator {
    /// Copies the coordinator's only store to a file, while it is in use.
    ///
    /// See ``backUp(_:to:)``.
    ///
    /// See <doc:Operating>.
    ///
    /// ```swift
    /// try coordinator.backUp(to: folder.appendingPathComponent("backup.sqlite"))
    /// ```
    ///
    /// - Parameter url: Where the copy goes; nothing may be there.
    /// - Throws: As ``backUp(_:to:)``; `persistentStoreOperation` (134070) if there is no store, or more than one.
    public func backUp(to url: URL) throws {
        let stores = openStores
        guard stores.count == 1 else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The coordinator has \(stores.count) stores. Name the one to back up with backUp(_:to:)."
                ]
            )
        }
        try backUp(stores[0].store, to: url)
    }

    /// Copies a store to a file, while it is in use.
    ///
    /// The copy is the store as it is at one moment between two saves: with what the write-ahead log has, with the history, and with
    /// its external data. This process and others read and save meanwhile. It is a store like any other, with the UUID of the original, and one
    /// file without a log; it gets its name when it is complete and synced, so there is none after a kill or an error.
    ///
    /// An addition to Apple's API. Any thread may call it; the calling thread copies. O(size of the store), with memory for its names of
    /// external files.
    ///
    /// - Parameters:
    ///   - store: A SQLite store in a file, or a binary one, of this coordinator.
    ///   - url: Where the copy goes; nothing may be there.
    /// - Throws: `persistentStoreOperation` (134070) for a store that is not of this coordinator, and if both would share their folder of
    ///   external data; `persistentStoreInvalidType` (134000) for stores that are no files; `fileWriteFileExists` (516);
    ///   `fileWriteOutOfSpace` (640), before anything is written if that can be told; `persistentStoreTimeout` (134090); and errors of the disk.
    public func backUp(_ store: NSPersistentStore, to url: URL) throws {
        guard openStore(of: store) != nil, let place = store.url else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [NSLocalizedDescriptionKey: "The store is not one of this coordinator."]
            )
        }
        try Self.backUp(place, store.type, store.options, to: url)
    }

    /// Copies a store that this coordinator need not have, and that may be in use elsewhere, to a file.
    ///
    /// An addition to Apple's API. See ``backUp(_:to:)``.
    ///
    /// - Parameters:
    ///   - storeURL: The store. It is opened for reading.
    ///   - type: Its type.
    ///   - options: Options for it: how long to wait for it, and pragmas.
    ///   - url: Where the copy goes; nothing may be there.
    /// - Throws: As ``backUp(_:to:)``.
    public static func backUpPersistentStore(
        at storeURL: URL,
        type: NSPersistentStore.StoreType,
        options: [AnyHashable: Any]? = nil,
        to url: URL
    ) throws {
        try backUp(storeURL, type.rawValue, options, to: url)
    }

    private static func backUp(_ place: URL, _ type: String, _ options: [AnyHashable: Any]?, to url: URL) throws {
        guard let storeClass = StoreTypes.wholeStoreClass(type), !place.path.hasPrefix("/dev/null") else {
            throw CocoaError.described(
                .persistentStoreInvalidType,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(place.placeName) of type \(type) is no file, so it cannot be backed up."
                ]
            )
        }
        try storeClass.backUpStore(at: place, options, to: url)
    }
}
