import StrataPredicates
import StrataRows

/// A store whose rows an engine keeps.
///
/// The store is what the public API shows, the engine what contexts ask: they know each other only here.
protocol EngineStore: NSPersistentStore {
    /// The engine, once the metadata was loaded.
    ///
    /// - Throws: `persistentStoreOpen` (134080) before that.
    var engine: any RowStore { get throws }

    /// Gets ready for requests, after the metadata was loaded and before anybody else knows the store.
    func open() throws
}

extension EngineStore {
    func open() throws {}
}

extension NSPersistentStore {
    /// What answers for the store: its engine, or a store of one's own itself.
    ///
    /// - Throws: `persistentStoreInvalidType` (134000) for a class that is neither.
    var rows: any RowStore {
        get throws {
            switch self {
            case let store as any EngineStore: return try store.engine
            case let store as any CustomStore: return store
            default:
                throw CocoaError(
                    .persistentStoreInvalidType,
                    userInfo: [NSLocalizedDescriptionKey: "Stores of class \(Swift.type(of: self)) cannot be added."]
                )
            }
        }
    }
}
