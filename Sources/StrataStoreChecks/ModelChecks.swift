import CoreData
import StrataRows
import StrataSQL
import StrataSQLiteStore

extension SQLiteSchema {
    /// Makes the schema for a model.
    ///
    /// The model is then in use, and cannot be changed any more.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - configuration: The configuration whose entities the store holds, or `nil` for all.
    /// - Throws: The problem of the model.
    package init(for model: NSManagedObjectModel, configuration: String? = nil) throws {
        try model.tryFreeze()
        self.init(try SQLMapping(model.frozen.schema, configuration: configuration))
    }
}

extension StoreVerifier {
    /// Opens a file for checking.
    ///
    /// - Parameters:
    ///   - storeURL: The file.
    ///   - model: The model that it should fit. The model is then in use.
    /// - Throws: The problem of the model, and `CocoaError`s for a file that cannot be read at all.
    package init(storeURL: URL, model: NSManagedObjectModel) throws {
        try model.tryFreeze()
        try self.init(storeURL: storeURL, schema: model.frozen.schema) { metadata in
            let configuration = model.configuration(ofStoreMetadata: metadata)
            return Identity(
                configuration: configuration,
                differing: model.entitiesThatDiffer(fromStoreMetadata: metadata, configuration: configuration)
            )
        }
    }
}
