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
/// Option: for how many seconds a call waits in all, for other threads and other processes, before it throws 134090.
///
/// Default 240. The error says who waited, how long, and for which process where the system tells; a context whose save
/// failed so is as it was before.
public let NSPersistentStoreTimeoutOption = "NSPersistentStoreTimeoutOption"
/// Option: the most connections that read at the same time.
public let NSPersistentStoreConnectionPoolMaxSizeKey = "NSPersistentStoreConnectionPoolMaxSize"
/// Option: a Boolean; the store is opened though its version hashes do not fit the model.
///
/// Data may be lost.
public let NSIgnorePersistentStoreVersioningOption = "NSIgnorePersistentStoreVersioningOption"
/// Option: a Boolean; a store that was written with another version of the model is migrated when it is added.
///
/// Default false; the descriptions of a container set it. Without it adding such a store throws 134100. With it alone only mapping models of the
/// program's bundles are used; see ``NSInferMappingModelAutomaticallyOption``. A store that may not be written is not migrated: 134100.
public let NSMigratePersistentStoresAutomaticallyOption = "NSMigratePersistentStoresAutomaticallyOption"
/// Option: a Boolean; where no mapping model fits, a migration works out by itself what becomes what.
///
/// Default false; the descriptions of a container set it. Without effect unless ``NSMigratePersistentStoresAutomaticallyOption`` is true too. The
/// old version of the model need not be there: the store keeps a copy.
public let NSInferMappingModelAutomaticallyOption = "NSInferMappingModelAutomaticallyOption"
/// Option: a Boolean, or a dictionary as Apple's framework takes it; what is saved into a SQLite store is recorded.
///
/// See ``NSPersistentHistoryChangeRequest``. A store that has been opened with it once is read-only without it, so that its
/// history has no gap. Without effect on other stores.
public let NSPersistentHistoryTrackingKey = "NSPersistentHistoryTrackingKey"
/// Option for destroying a store: a Boolean; the file goes even if it cannot be opened.
public let NSPersistentStoreForceDestroyOption = "NSPersistentStoreForceDestroyOption"
/// Option: a file's protection class on iOS.
///
/// Without effect on Linux.
public let NSPersistentStoreFileProtectionKey = "NSPersistentStoreFileProtectionKey"

/// Option of binary stores: a set of classes that may be decoded.
///
/// Without effect: the transformers of the attributes decode their values, and they know their classes.
public let NSBinaryStoreSecureDecodingClasses = "NSBinaryStoreSecureDecodingClasses"
/// Option of binary stores: a Boolean; classes that were not declared may be decoded.
///
/// Without effect: the transformers of the attributes decode their values.
public let NSBinaryStoreInsecureDecodingCompatibilityOption = "NSBinaryStoreInsecureDecodingCompatibilityOption"

/// User info: the ``NSPersistentHistoryToken`` of what was changed, in remote-change notifications and in those of a history's
/// transactions.
public let NSPersistentHistoryTokenKey = "historyToken"

/// Metadata: the oldest system that can read the store, which stores of Apple's framework tell.
///
/// It is kept where it is; stores made here do not have it.
public let NSPersistentStoreOSCompatibility = "NSPersistentStoreOSCompatibility"

/// User info: the stores that were added.
public let NSAddedPersistentStoresKey = "added"
/// User info: the stores that were removed.
public let NSRemovedPersistentStoresKey = "removed"
/// User info: an array of the store before and after its migration to another place, which gives it another UUID, and of an
/// array with the ``NSManagedObjectID`` of each object in the new store, in the order in which they were copied.
public let NSUUIDChangedPersistentStoresKey = "changed"

extension NSNotification.Name {
    /// A coordinator's stores are about to change behind the program's back, as they do with an account for iCloud.
    ///
    /// Never posted here: nothing but calls of the program adds, removes or migrates stores, and for those Apple's framework
    /// does not post it either.
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
