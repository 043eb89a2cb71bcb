import StrataRows

/// A custom store, whose class is not part of the framework.
///
/// It identifies objects by custom references, is called by one thread at a time, and receives objects instead of rows.
package protocol CustomStore: NSPersistentStore, RowStore {
    /// Whether a fetch brings rows; otherwise each row is requested when its object's fault fires.
    var fetchesRows: Bool { get }

    /// Prepares for requests, after the metadata was loaded and before other code knows the store.
    func open(as entry: OpenStore) throws

    /// Reserves keys for new objects, in their order.
    func keys(for objects: [NSManagedObject]) throws -> [Int64]

    /// The form of ``RowStore/save(_:willCommit:didCommit:)`` for the save of a context.
    ///
    /// A read waits until `didCommit` has returned, so nothing is called before the commit.
    func save(_ changes: StoreChanges, of context: NSManagedObjectContext, didCommit: (StoreSaveResult) -> Void) throws
        -> [StoreConflict]

    // MARK: - URIs

    /// The text that represents a key in a URI, after the `p`.
    func uriText(ofKey key: Int64, in layout: EntityLayout) -> String

    /// The key that a URI means.
    func key(fromURIText text: Substring, of layout: EntityLayout) -> Int64?

    /// The result of ``key(fromURIText:of:)``, but `nil` for an object that was never requested.
    func knownKey(fromURIText text: Substring, of layout: EntityLayout) -> Int64?

    // MARK: - Metadata

    /// Writes the metadata without a save, if they have changed since they were read.
    func saveNewMetadata() throws

    /// Checks that the store was made with this version of the model, if its metadata contain a version.
    ///
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) for hashes that do not fit, with the metadata.
    func checkVersion(_ model: NSManagedObjectModel, _ found: [String: Any]) throws

    // MARK: - Registrations

    /// Whether the store is notified which of its objects contexts hold.
    var isNotifiedOfRegistrations: Bool { get }

    /// Notes that a context holds an object, or that it releases it, without running the code of the store's class.
    func noteRegistration(_ id: NSManagedObjectID, isRegistered: Bool)

    /// Notifies the store's class of what was noted.
    func deliverRegistrations()
}
