/// A store that the coordinator can destroy, and replace by a copy of another.
///
/// The methods are called only while this coordinator does not have the store open.
package protocol WholeStore: NSPersistentStore {
    /// Removes the contents of a store.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: The options for opening it, and `NSPersistentStoreForceDestroyOption`.
    /// - Throws: Errors of the file.
    static func destroyStore(at url: URL, options: [AnyHashable: Any]?) throws

    /// Copies one store over another.
    ///
    /// - Parameters:
    ///   - destination: The store to replace, or to make.
    ///   - destinationOptions: Options for the destination.
    ///   - source: The store to copy.
    ///   - sourceOptions: Options for the source.
    /// - Throws: `persistentStoreInvalidType` (134000) if stores of this class cannot be replaced, and errors of either file.
    static func replaceStore(
        at destination: URL,
        _ destinationOptions: [AnyHashable: Any]?,
        withStoreAt source: URL,
        _ sourceOptions: [AnyHashable: Any]?
    ) throws

    /// Copies a store, which may be in use, to a place without a file.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: Options for it.
    ///   - destination: The place of the copy.
    /// - Throws: `fileWriteFileExists` (516) if a file exists there, `persistentStoreInvalidType` (134000) if stores of
    ///   this class cannot be copied, and errors of either file.
    static func backUpStore(at url: URL, _ options: [AnyHashable: Any]?, to destination: URL) throws

    /// Removes the remains of a new store that could not be filled.
    static func discardStore(at url: URL)
}

extension WholeStore {
    package static func discardStore(at url: URL) {}
}
