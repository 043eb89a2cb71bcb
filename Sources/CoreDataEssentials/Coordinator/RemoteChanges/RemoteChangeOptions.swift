import Foundation

/// Option of a SQLite or PostgreSQL store: a Boolean; the coordinator posts notifications of writes to the store.
///
/// It posts `NSNotification.Name.NSPersistentStoreRemoteChange` when this process or another has written to the store.
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
    /// ``NSPersistentStoreURLKey``. If the store keeps history, then the user info also has the token of its newest
    /// transaction under ``NSPersistentHistoryTokenKey``. Writes within 5 milliseconds are reported as one.
    ///
    /// Posted on a private queue of the store, when the write can be read. The delay is a few milliseconds if the
    /// system reports writes to files (inotify), and at most 50 milliseconds otherwise. On a file system that hides the
    /// writes of other processes, such as a network file system, it is at most a second.
    public static let NSPersistentStoreRemoteChange = NSNotification.Name("NSPersistentStoreRemoteChangeNotification")
}
