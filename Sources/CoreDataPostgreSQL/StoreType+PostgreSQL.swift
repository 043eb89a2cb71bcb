@_exported import CoreData
import StrataPostgreSQLStore

/// The store type of PostgreSQL databases, in the form that Apple's older API uses.
///
/// Use it, or ``CoreData/NSPersistentStore/StoreType/postgreSQL``, before the first store of the type is added, because
/// its use registers the type.
public var NSPostgreSQLStoreType: String { NSPersistentStore.StoreType.postgreSQL.rawValue }

extension NSPersistentStore.StoreType {
    /// A database of PostgreSQL, shared by many processes on many machines.
    ///
    /// The URL of such a store begins with `postgresql://` and is one of libpq's connection URLs, without a password.
    /// The password comes from a password file, a service file or the environment. `?schema=name` names the schema that
    /// the store has for itself (`strata` by default); it is created if it does not exist.
    ///
    /// Servers that are not on this machine are trusted only with `sslmode=verify-full`, unless the URL says otherwise.
    public static var postgreSQL: NSPersistentStore.StoreType {
        _ = Registration.once
        return NSPersistentStore.StoreType(rawValue: StoreMetadata.storeType)
    }

    /// Registers the type, once.
    private enum Registration {
        static let once: Void = NSPersistentStoreCoordinator.registerStoreClass(
            PostgreSQLStore.self,
            forStoreType: StoreMetadata.storeType
        )
    }
}
