import CoreData
import Foundation
import StrataPostgreSQLStore

/// A PostgreSQL database with a schema for each tenant.
///
/// ```swift
/// let schemas = TenantSchemas(databaseURL, maximumConnections: 40)
/// let tenants = TenantContainer(managedObjectModel: model, at: schemas)
/// let acme = try await tenants.create("acme")
/// ```
///
/// The schema of the tenant `acme` is `tenant_acme`. A name may be any text with which the schema's name has at most 63 bytes. All stores share the
/// connections to the server, as ``NSPostgreSQLServerConnectionsOption`` says. A store that is open and idle needs no connection.
public struct TenantSchemas: TenantLocation {
    /// The database; its schema is not used.
    public let url: URL
    /// The text with which the names of schemas begin.
    public let prefix: String
    /// The most connections of all stores together.
    public let maximumConnections: Int

    /// The location in a database.
    ///
    /// - Parameters:
    ///   - url: The database, as for a store of one schema.
    ///   - prefix: The text with which the names of schemas begin, so that other schemas are not taken for tenants.
    ///   - maximumConnections: The most connections of this process to the server, from 1 to 10,000.
    public init(_ url: URL, prefix: String = "tenant_", maximumConnections: Int = 32) {
        self.url = url
        self.prefix = prefix
        self.maximumConnections = maximumConnections
    }

    /// The description of the store in a tenant's schema.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: A new description, whether or not the schema exists.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that is empty or too long.
    public func storeDescription(of name: String) throws -> NSPersistentStoreDescription {
        let description = NSPersistentStoreDescription(url: try schemaURL(of: name))
        description.type = NSPostgreSQLStoreType
        description.setOption(maximumConnections as NSNumber, forKey: NSPostgreSQLServerConnectionsOption)
        return description
    }

    /// The names of all tenants whose schemas have a store, in any order.
    ///
    /// - Returns: The names, without the prefix.
    /// - Throws: Errors of reading the database.
    public func names() throws -> [String] {
        // The first letter of a name may join the last one of the prefix, so bytes are dropped.
        try PostgreSQLEngine.stores(at: url, prefix: prefix)
            .map { String(decoding: $0.utf8.dropFirst(prefix.utf8.count), as: UTF8.self) }.filter { !$0.isEmpty }
    }

    /// Whether the schema of a tenant has a store.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Returns: Whether it has one.
    /// - Throws: `fileWriteInvalidFileName` (514) for a name that is empty or too long; errors of reading the database.
    public func exists(_ name: String) throws -> Bool {
        do {
            _ = try PostgreSQLEngine.metadata(at: try schemaURL(of: name), timeout: 30)
            return true
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return false
        }
    }

    /// Removes the store of a tenant, and its schema if nothing else is in it.
    ///
    /// - Parameter name: The name of the tenant.
    /// - Throws: `persistentStoreOperation` (134070) if another object, such as a view, depends on its tables; errors of the database.
    public func destroy(_ name: String) throws {
        try PostgreSQLEngine.destroy(at: try schemaURL(of: name), timeout: 30)
    }

    private func schemaURL(of name: String) throws -> URL {
        try TenantName.require(name, bytes: 63 - prefix.utf8.count)
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        let others = (parts?.queryItems ?? []).filter { $0.name != "schema" }
        parts?.queryItems = others + [URLQueryItem(name: "schema", value: prefix + name)]
        guard let result = parts?.url else {
            throw CocoaError.described(
                .persistentStoreOpen,
                userInfo: [NSLocalizedDescriptionKey: "\(url.placeName) is no URL of a database."]
            )
        }
        return result
    }
}
