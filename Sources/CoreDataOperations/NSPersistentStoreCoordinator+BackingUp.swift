import CoreDataEssentials
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
    /// - Parameter url: The place of the copy; no file may be there.
    /// - Throws: The errors of ``backUp(_:to:)``; `persistentStoreOperation` (134070) if there is no store, or more
    ///   than one.
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
    /// The copy contains the store as it is at one moment between two saves, including the contents of the write-ahead
    /// log, the history, and the external data. This process and others can read and save during the copy. The copy is
    /// a normal store with the UUID of the original, and one file without a log. It gets its name when it is complete
    /// and synced, so no file has that name after a kill or an error.
    ///
    /// An addition to Apple's API. Any thread may call it; the calling thread copies. O(size of the store); the memory
    /// used grows only with the number of external files, whose names it holds.
    ///
    /// - Parameters:
    ///   - store: A SQLite store in a file, or a binary one, of this coordinator.
    ///   - url: The place of the copy; no file may be there.
    /// - Throws: `persistentStoreOperation` (134070) if the store is not of this coordinator, or if both stores would
    ///   have the same folder of external data.
    ///   `persistentStoreInvalidType` (134000) if the store is not in a file, `fileWriteFileExists` (516) if a file
    ///   is there.
    ///   `fileWriteOutOfSpace` (640), before anything is written if the size is known by then.
    ///   `persistentStoreTimeout` (134090), and errors of the disk.
    public func backUp(_ store: NSPersistentStore, to url: URL) throws {
        guard openStore(of: store) != nil, let place = store.url else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [NSLocalizedDescriptionKey: "The store is not one of this coordinator."]
            )
        }
        try Self.backUp(storeAt: place, type: store.type, options: store.options, to: url)
    }

    /// Copies a store, which this coordinator need not have open and other processes may use, to a file.
    ///
    /// An addition to Apple's API. See ``backUp(_:to:)``.
    ///
    /// - Parameters:
    ///   - storeURL: The store. It is opened for reading.
    ///   - type: Its type.
    ///   - options: Options for the store: the time-out, and pragmas.
    ///   - url: The place of the copy; no file may be there.
    /// - Throws: The errors of ``backUp(_:to:)``.
    public static func backUpPersistentStore(
        at storeURL: URL,
        type: NSPersistentStore.StoreType,
        options: [AnyHashable: Any]? = nil,
        to url: URL
    ) throws {
        try backUp(storeAt: storeURL, type: type.rawValue, options: options, to: url)
    }

    private static func backUp(storeAt place: URL, type: String, options: [AnyHashable: Any]?, to url: URL) throws {
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
