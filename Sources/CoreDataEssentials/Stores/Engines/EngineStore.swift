import StrataPredicates
import StrataRows

/// A store whose rows an engine keeps.
///
/// The public API shows the store, and contexts call the engine; the two are connected only here.
package protocol EngineStore: NSPersistentStore {
    /// The engine, after the metadata was loaded.
    ///
    /// - Throws: `persistentStoreOpen` (134080) before that.
    var engine: any RowStore { get throws }

    /// Prepares for requests, after the metadata was loaded and before other code knows the store.
    func open() throws

    /// Changes the URL; the same store must be at the new URL.
    ///
    /// - Returns: Whether the store uses the new URL now.
    func move(to url: URL) -> Bool

    /// Writes the metadata if it has changed since it was read, without a save.
    func writeMetadata() throws

    /// The metadata that a copy of the store in another one takes over.
    var copiedMetadata: [String: Any] { get }

    /// Continues the versions of another store, whose rows will be copied into this one.
    ///
    /// It is called before the first write.
    ///
    /// - Throws: Errors of the store.
    func continueVersions(of source: NSPersistentStore) throws

    /// Takes over what the engine itself has written into the metadata.
    func copyMetadataFromEngine()
}

extension EngineStore {
    package func open() throws {}

    package func writeMetadata() throws {}

    package var copiedMetadata: [String: Any] { metadata ?? [:] }

    package func continueVersions(of source: NSPersistentStore) throws {}

    package func copyMetadataFromEngine() {}

    package func move(to url: URL) -> Bool {
        self.url = url
        return true
    }
}

extension NSPersistentStore {
    /// The object that answers requests to the store: its engine, or a custom store itself.
    ///
    /// - Throws: `persistentStoreInvalidType` (134000) for a class that is neither.
    package var rows: any RowStore {
        get throws {
            switch self {
            case let store as any EngineStore: return try store.engine
            case let store as any CustomStore: return store
            default:
                throw CocoaError.described(
                    .persistentStoreInvalidType,
                    userInfo: [NSLocalizedDescriptionKey: "Stores of class \(Swift.type(of: self)) cannot be added."]
                )
            }
        }
    }
}
