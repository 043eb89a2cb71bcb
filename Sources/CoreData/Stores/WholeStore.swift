/// A store that the coordinator can destroy, and replace by a copy of another.
///
/// All of this is done while nobody of this coordinator has the store open.
package protocol WholeStore: NSPersistentStore {
    /// Removes all that a store holds.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: As for opening it, and `NSPersistentStoreForceDestroyOption`.
    /// - Throws: Errors of the file.
    static func destroyStore(at url: URL, options: [AnyHashable: Any]?) throws

    /// Copies one store over another.
    ///
    /// - Parameters:
    ///   - destination: What is replaced, or made.
    ///   - destinationOptions: Options for the destination.
    ///   - source: What is copied.
    ///   - sourceOptions: Options for the source.
    /// - Throws: `persistentStoreInvalidType` (134000) if stores of this class cannot be replaced, and errors of either file.
    static func replaceStore(
        at destination: URL,
        _ destinationOptions: [AnyHashable: Any]?,
        withStoreAt source: URL,
        _ sourceOptions: [AnyHashable: Any]?
    ) throws

    /// Copies a store that may be in use to where nothing is.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - options: Options for it.
    ///   - destination: Where the copy goes.
    /// - Throws: `fileWriteFileExists` (516) if there is something, `persistentStoreInvalidType` (134000) if stores of this class
    ///   cannot be copied, and errors of either file.
    static func backUpStore(at url: URL, _ options: [AnyHashable: Any]?, to destination: URL) throws

    /// Removes what is left of a new store that could not be filled.
    static func discardStore(at url: URL)
}

extension WholeStore {
    package static func discardStore(at url: URL) {}
}
