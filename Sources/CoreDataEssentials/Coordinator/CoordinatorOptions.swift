import Foundation

// Keys of store options, of metadata, and of the coordinator's notifications.

/// Option: a Boolean; saves into the store are refused, and its file is not changed in any way.
public let NSReadOnlyPersistentStoreOption = "NSReadOnlyPersistentStoreOption"
/// Option: a dictionary of SQLite pragmas and their values, set on each connection.
public let NSSQLitePragmasOption = "NSSQLitePragmasOption"
/// Option: a Boolean; the file is analysed, for better query plans, when it is added.
public let NSSQLiteAnalyzeOption = "NSSQLiteAnalyzeOption"
/// Option: a Boolean; the file is rebuilt without free pages when it is added.
public let NSSQLiteManualVacuumOption = "NSSQLiteManualVacuumOption"
/// Option: the number of seconds that a call may wait in all, for other threads and processes, before it throws 134090.
///
/// Default 240. The error says which operation waited and how long. If the system reports it, the error also says which
/// process it waited for. If a save fails in this way, then its context stays as it was before.
public let NSPersistentStoreTimeoutOption = "NSPersistentStoreTimeoutOption"
/// Option: the maximum number of connections that read at the same time.
///
/// Default 8. A read that finds none free waits until the store's time-out, and then throws 134090.
public let NSPersistentStoreConnectionPoolMaxSizeKey = "NSPersistentStoreConnectionPoolMaxSize"
/// Option: a Boolean; the store is opened even if its version hashes do not fit the model.
///
/// Data may be lost.
public let NSIgnorePersistentStoreVersioningOption = "NSIgnorePersistentStoreVersioningOption"
/// Option: a Boolean; a store that was written with another version of the model is migrated when it is added.
///
/// Default false; the descriptions of a container set it to true. Without this option, adding such a store throws
/// 134100. If only this option is set, then only mapping models of the program's bundles are used; see
/// ``NSInferMappingModelAutomaticallyOption``. A store that may not be written is not migrated: 134100.
public let NSMigratePersistentStoresAutomaticallyOption = "NSMigratePersistentStoresAutomaticallyOption"
/// Option: a Boolean; if no mapping model fits, then a migration infers the mapping.
///
/// Default false; the descriptions of a container set it to true. It has no effect unless
/// ``NSMigratePersistentStoresAutomaticallyOption`` is true too. The old version of the model need not be present: the
/// store keeps a copy.
public let NSInferMappingModelAutomaticallyOption = "NSInferMappingModelAutomaticallyOption"
/// Option: a Boolean, or a dictionary as in Apple's framework; a SQLite or PostgreSQL store records the changes that are
/// saved.
///
/// See ``NSPersistentHistoryChangeRequest``. If a SQLite store has been opened with this option once, then it is
/// read-only without the option, so that its history has no gap. A PostgreSQL store goes on recording. The option has no
/// effect on other stores.
public let NSPersistentHistoryTrackingKey = "NSPersistentHistoryTrackingKey"
/// Option for destroying a store: a Boolean; the file is removed even if it cannot be opened.
public let NSPersistentStoreForceDestroyOption = "NSPersistentStoreForceDestroyOption"
/// Option: a file's protection class on iOS.
///
/// It has no effect on Linux.
public let NSPersistentStoreFileProtectionKey = "NSPersistentStoreFileProtectionKey"

/// Option of binary stores: a set of classes that may be decoded.
///
/// It has no effect: the attributes' transformers decode the values, and they know their classes.
public let NSBinaryStoreSecureDecodingClasses = "NSBinaryStoreSecureDecodingClasses"
/// Option of binary stores: a Boolean; classes that were not declared may be decoded.
///
/// It has no effect: the attributes' transformers decode the values.
public let NSBinaryStoreInsecureDecodingCompatibilityOption = "NSBinaryStoreInsecureDecodingCompatibilityOption"

/// User info: the ``NSPersistentHistoryToken`` of a change.
///
/// It is in remote-change notifications, and in the notifications of history transactions.
public let NSPersistentHistoryTokenKey = "historyToken"

/// Metadata: the oldest system that can read the store.
///
/// Stores of Apple's framework contain it. It is kept if it is present; stores made here do not have it.
public let NSPersistentStoreOSCompatibility = "NSPersistentStoreOSCompatibility"

/// User info: the stores that were added.
public let NSAddedPersistentStoresKey = "added"
/// User info: the stores that were removed.
public let NSRemovedPersistentStoresKey = "removed"
/// User info: an array of a migrated store, the store that replaced it, and an array of IDs.
///
/// The new store has another UUID. The third element has the ``NSManagedObjectID`` of each object in the new store, in
/// the order in which the objects were copied.
public let NSUUIDChangedPersistentStoresKey = "changed"

extension NSNotification.Name {
    /// A coordinator's stores are about to change without a call by the program, for example with an iCloud account.
    ///
    /// It is never posted here: only calls of the program add, remove or migrate stores, and for those Apple's
    /// framework does not post it either.
    public static let NSPersistentStoreCoordinatorStoresWillChange = NSNotification.Name(
        "NSPersistentStoreCoordinatorStoresWillChange"
    )
    /// A coordinator's stores have changed; the user info has the stores added, removed and changed.
    public static let NSPersistentStoreCoordinatorStoresDidChange = NSNotification.Name(
        "NSPersistentStoreCoordinatorStoresDidChange"
    )
    /// A store is about to leave its coordinator, because it is removed or migrated, or because the coordinator goes away.
    ///
    /// The object is the ``NSPersistentStore``. There is no user info.
    public static let NSPersistentStoreCoordinatorWillRemoveStore = NSNotification.Name(
        "NSPersistentStoreCoordinatorWillRemoveStore"
    )
}
