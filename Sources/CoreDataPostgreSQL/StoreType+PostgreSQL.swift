@_exported import CoreData
import StrataPostgreSQLStore

/// The store type of databases of PostgreSQL, as Apple's older API names types.
///
/// Use it, or ``CoreData/NSPersistentStore/StoreType/postgreSQL``, before the first store of the type is added: that makes the type known.
public var NSPostgreSQLStoreType: String { NSPersistentStore.StoreType.postgreSQL.rawValue }

extension NSPersistentStore.StoreType {
    /// A database of PostgreSQL, shared by many processes on many machines.
    ///
    /// The URL of such a store begins with `postgresql://`, and is one of libpq's connection URLs, without a password: that comes from a
    /// password file, a service file or the environment. `?schema=name` names the schema that the store has for itself (`strata` if
    /// there is none); it is made if it is not there.
    ///
    /// Servers that are not on this machine are believed only by `sslmode=verify-full`, unless the URL says otherwise.
    public static var postgreSQL: NSPersistentStore.StoreType {
        _ = Registration.once
        return NSPersistentStore.StoreType(rawValue: StoreMetadata.storeType)
    }

    /// Makes the type known, once.
    private enum Registration {
        static let once: Void = NSPersistentStoreCoordinator.registerStoreClass(
            PostgreSQLStore.self,
            forStoreType: StoreMetadata.storeType
        )
    }
}
