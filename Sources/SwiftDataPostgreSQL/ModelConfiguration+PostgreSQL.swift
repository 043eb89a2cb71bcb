import CoreDataPostgreSQL
import Foundation
@_exported import SwiftData

extension ModelConfiguration {
    /// Describes a store in a database of PostgreSQL, which processes on many machines share.
    ///
    /// The tables are in a schema of the database, `strata` unless the URL names another one with `?schema=name`. The
    /// schema is made if it does not exist.
    ///
    /// ```swift
    /// let database = URL(string: "postgresql://guide@db.example.org/shop?schema=trips")!
    /// let container = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(postgreSQL: database))
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - schema: The classes of this store; `nil` for all of the container's.
    ///   - url: A connection URL of libpq, which begins with `postgresql://` and has no password.
    ///   - allowsSave: Whether the store may be written to. If not, then the tables must exist.
    public init(_ name: String? = nil, schema: Schema? = nil, postgreSQL url: URL, allowsSave: Bool = true) {
        self.init(
            name: name,
            schema: schema,
            url: url,
            // The use of the type makes it known to coordinators.
            storeType: NSPersistentStore.StoreType.postgreSQL.rawValue,
            allowsSave: allowsSave
        )
    }
}
