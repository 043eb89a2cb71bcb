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
/// User info: the store before and after its migration to another place, which gives it another UUID.
public let NSUUIDChangedPersistentStoresKey = "changed"

extension NSNotification.Name {
    /// A coordinator's stores are about to change; the user info has the stores to be added and removed.
    public static let NSPersistentStoreCoordinatorStoresWillChange = NSNotification.Name(
        "NSPersistentStoreCoordinatorStoresWillChange"
    )
    /// A coordinator's stores have changed; the user info has the stores added, removed and changed.
    public static let NSPersistentStoreCoordinatorStoresDidChange = NSNotification.Name(
        "NSPersistentStoreCoordinatorStoresDidChange"
    )
    /// A store is about to be removed; the object is the coordinator.
    public static let NSPersistentStoreCoordinatorWillRemoveStore = NSNotification.Name(
        "NSPersistentStoreCoordinatorWillRemoveStore"
    )
}
