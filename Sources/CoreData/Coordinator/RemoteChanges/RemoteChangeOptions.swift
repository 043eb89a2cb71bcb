import Foundation

/// Option of a SQLite store: a Boolean; the coordinator posts `NSNotification.Name.NSPersistentStoreRemoteChange`
/// when this process or another has written to the store.
///
/// Default false.
public let NSPersistentStoreRemoteChangeNotificationPostOptionKey =
    "NSPersistentStoreRemoteChangeNotificationPostOptionKey"

/// User info of a remote change: the URL of the store that was written to.
public let NSPersistentStoreURLKey = "storeURL"

extension NSNotification.Name {
    /// A store was written to, by this process or another.
    ///
    /// The object is the coordinator. The user info has the store's UUID under ``NSStoreUUIDKey`` and its URL under
    /// ``NSPersistentStoreURLKey``; of a store that keeps history also the token of its newest transaction under
    /// ``NSPersistentHistoryTokenKey``. Writes within 5 milliseconds are told as one.
    ///
    /// Posted on a queue of the store's own, after the write can be read: a few milliseconds after it where the system tells
    /// of writes to files (inotify), within 50 where it does not, and within a second if a file system hides the writes of
    /// others, as those in the network do.
    public static let NSPersistentStoreRemoteChange = NSNotification.Name("NSPersistentStoreRemoteChangeNotification")
}
