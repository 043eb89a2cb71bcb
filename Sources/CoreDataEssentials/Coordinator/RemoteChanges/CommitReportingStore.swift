/// A store that can notify its coordinator of the commits of other processes.
package protocol CommitReportingStore: NSPersistentStore {
    /// Whether it does.
    var reportsCommits: Bool { get }

    /// Posts a notification for each commit from now on.
    ///
    /// The option `NSPersistentStoreRemoteChangeNotificationPostOptionKey` does the same when the store is added.
    func reportCommits() throws
}
